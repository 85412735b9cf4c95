"""Values of options as text: flags, counts, sizes, versions of tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from storage.errors import InvalidValue

_SIZES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_VERSIONS: Final = ("asOf", "timestampAsOf", "versionAsOf")


@contextmanager
def told_of(name: str) -> Iterator[None]:
    """Put the name of the option before an error about the value."""
    try:
        yield
    except InvalidValue as error:
        error.message = f"{name} {error.message}"
        error.args = (error.message,)
        raise


def flag(parsed: Mapping[str, str], name: str, default: bool) -> bool:
    """Parse `true` or `false`.

    Raises:
        InvalidValue
    """
    text = parsed.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise InvalidValue(f"{name} is true or false, not {text!r}")
    return text.lower() == "true"


def count(parsed: Mapping[str, str], name: str) -> int | None:
    """Parse a whole number of 1 or more; None where the option is not given.

    Raises:
        InvalidValue
    """
    text = parsed.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text) >= 1):
        raise InvalidValue(f"{name} is a whole number of 1 or more, not {text[:80]!r}")
    return int(text)


def size(parsed: Mapping[str, str], name: str) -> int | None:
    """Parse a number of bytes, such as `64k`; None where the option is not given.

    Raises:
        InvalidValue
    """
    text = parsed.get(name)
    if text is None:
        return None
    digits = text.lower().removesuffix("b").rstrip("kmg")
    factor = _SIZES.get(text.lower().removesuffix("b")[len(digits) :])
    if factor is None or not (digits.isascii() and digits.isdecimal() and len(digits) <= 12 and int(digits)):
        raise InvalidValue(f"{name} is a number of bytes such as 65536, 64k or 16m, not {text[:80]!r}")
    return int(digits) * factor


def version(parsed: Mapping[str, str]) -> int | None:
    """Parse the version of a table to read, in nanoseconds since 1970, `NOW` for the newest; None without one.

    `asOf` is `now`, a time, to the end of its millisecond, or a version; `timestampAsOf` a time and `versionAsOf` a
    version, as other sources of Spark have them.

    Raises:
        InvalidValue
    """
    given = [name for name in _VERSIONS if name in parsed]
    if not given:
        return None
    if len(given) > 1:
        raise InvalidValue(f"{' and '.join(given)} give the version twice", hint="Leave one of them out.")
    from txnctl.output.timestamp import NOW, milliseconds, moment

    (name,) = given
    text = parsed[name]
    with told_of(name):
        version = moment(text.strip())
        is_time = milliseconds(text.strip()) is not None
    if version is None or (name == "timestampAsOf" and not is_time) or (name == "versionAsOf" and is_time):
        hints = {
            "asOf": "Write now, RFC 3339 with a zone, a date, milliseconds since 1970, or a row's timestamp.",
            "timestampAsOf": "Write RFC 3339 with a zone (2024-05-01 10:00:00Z), a date, or milliseconds since 1970.",
            "versionAsOf": "Write the timestamp of a row, in nanoseconds since 1970.",
        }
        kind = "version" if name == "versionAsOf" else "time"
        raise InvalidValue(f"{name} {text[:80]!r} is not a {kind}", hint=hints[name])
    if name == "versionAsOf" and version == NOW:
        raise InvalidValue("versionAsOf 'now' is not a version", hint="asOf reads the newest version: `now`.")
    return version

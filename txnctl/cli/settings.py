"""Settings from options, environment variables and defaults: the value of each setting, and the source.

An option counts before the environment variable, the variable before the default. A variable that is set but empty is
refused where the option refuses an empty value: `export NAME=$(command)` leaves one behind where the command fails. An
empty TXNCTL_STORE is an unset one, by design.
"""

from __future__ import annotations

from os import environ, getuid
from os.path import isabs, join

from storage.errors import InvalidValue, PlatformUnsupported
from storage.process.machine import home
from storage.values.store_name import is_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LOCK_TIMEOUT_DEFAULT = "5s"

_STORE = "TXNCTL_STORE"

ALL_FORMATS = ("table", "wide", "json", "ndjson", "name", "value")
"""What TXNCTL_OUTPUT may be; not every command knows every one."""


class Setting:
    """A value and the source: `option --store`, `environment TXNCTL_STORE`, `default`."""

    __slots__ = ("name", "source", "value", "variable")

    def __init__(self, name: str, value: str | None, source: str, variable: str | None) -> None:
        self.name = name
        self.value = value
        self.source = source
        self.variable = variable


def resolve(name: str, option: str, typed: str | None, variable: str, default: str | None) -> Setting:
    """The setting from the first of the three sources."""
    if typed is not None:
        return Setting(name, typed, f"option {option}", variable)
    from_environment = environ.get(variable)
    if from_environment is not None and (from_environment or variable != _STORE):
        return Setting(name, from_environment, f"environment {variable}", variable)
    return Setting(name, default, "default", variable)


def store(typed: str | None) -> Setting:
    """Where the store is: a directory, or the URL of a server.

    Raises:
        InvalidValue: the option is a URL with a password, or no URL that can be read.
        PlatformUnsupported: no store is named, and the user has no home.
    """
    setting = resolve("store", "--store", typed, _STORE, None)
    if setting.value is None:
        data_home = environ.get("XDG_DATA_HOME", "")
        # The XDG rules: a relative path there is to be ignored.
        if not isabs(data_home):
            place = home()
            if place is None:
                raise PlatformUnsupported(
                    f"no default store: HOME is not set, and user {getuid()} has no passwd entry",
                    hint="Set TXNCTL_STORE, or give --store; XDG_DATA_HOME or HOME will do as well.",
                    missing="HOME",
                )
            data_home = join(place, ".local", "share")
        setting.value = join(data_home, "txnctl", "store")
    elif typed is not None:
        check_typed_store(typed)
    return setting


def check_typed_store(name: str) -> None:
    """Refuse the name of a store on a command line that would show a password to every user of the machine.

    Raises:
        InvalidValue
    """
    if is_url(name):
        from storage.disk.stores import check_typed

        check_typed(name)


def shown_store(name: str) -> str:
    """The name of a store as people see it: a path as it is, a URL without a password.

    Raises:
        InvalidValue: the URL cannot be read.
    """
    if not is_url(name):
        return name
    from storage.disk.stores import resolved

    return resolved(name)


def lock_timeout(typed: float | None) -> float:
    """Seconds to wait for a lock."""
    if typed is not None:
        return typed
    from txnctl.cli.value_types import DURATION

    text = environ.get("TXNCTL_LOCK_TIMEOUT", LOCK_TIMEOUT_DEFAULT)
    seconds = DURATION.read(text)
    if seconds is None:
        raise InvalidValue(
            f"TXNCTL_LOCK_TIMEOUT: {text[:80]!r} {DURATION.objection(text)}",
            hint=DURATION.hint(),
            value=text[:80],
        )
    return seconds


def output_format(typed: str | None, formats: Sequence[str], default: str) -> str:
    """The format to print in. TXNCTL_OUTPUT speaks to all commands: a command without that format uses the default."""
    if typed is not None:
        return typed
    from txnctl.cli.value_types import NamedConstant

    text = environ.get("TXNCTL_OUTPUT", default)
    format_ = NamedConstant("format", ALL_FORMATS).read(text)
    if format_ is None:
        raise InvalidValue(
            f"TXNCTL_OUTPUT: {text[:80]!r} is not a format",
            hint=f"Expected: one of {', '.join(ALL_FORMATS)}.",
            value=text[:80],
        )
    return format_ if format_ in formats else default


def colored(typed: str | None, terminal: bool) -> bool:
    """Whether to colour output to a stream, a terminal or not."""
    if typed in ("always", "never"):
        return typed == "always"
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def every(*, store_typed: str | None, output_typed: str | None, color_typed: str | None) -> list[Setting]:
    """All settings, for `config show`."""
    try:
        place = store(store_typed)
    except PlatformUnsupported:
        place = Setting("store", None, "no home directory", "TXNCTL_STORE")
    return [
        Setting(place.name, place.value and shown_store(place.value), place.source, place.variable),
        resolve("output", "--output", output_typed, "TXNCTL_OUTPUT", "table"),
        resolve("lockTimeout", "--lock-timeout", None, "TXNCTL_LOCK_TIMEOUT", LOCK_TIMEOUT_DEFAULT),
        resolve("transaction", "--txn", None, "TXNCTL_TXN", None),
        resolve("session", "--session", None, "TXNCTL_SESSION", None),
        _color(color_typed),
    ]


def _color(typed: str | None) -> Setting:
    if typed is not None:
        return Setting("color", typed, "option --color", "NO_COLOR")
    if environ.get("NO_COLOR"):
        return Setting("color", "never", "environment NO_COLOR", "NO_COLOR")
    if environ.get("TERM") == "dumb":
        return Setting("color", "never", "environment TERM", "NO_COLOR")
    return Setting("color", "auto", "default", "NO_COLOR")

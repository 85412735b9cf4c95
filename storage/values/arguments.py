"""Checks of the arguments of the Python API that are no names and no constants: numbers, times, lists.

Names and constants are in `names.py`, positions in `position.py`.
"""

from __future__ import annotations

from storage.errors import InvalidValue
from storage.limits import DELAY_S_MAX
from storage.values.position import MessageId


def check_count(noun: str, value: object, least: int = 0) -> int:
    """Return a whole number of at least `least`.

    Args:
        noun: of the value, with its article: `a limit`.

    Raises:
        InvalidValue
    """
    if type(value) is not int or value < least:
        raise InvalidValue(f"{noun} is a whole number, {least} or more, not {value!r}")
    return value


def check_time_ms(noun: str, value: object) -> int:
    """Return a time in milliseconds since 1970, before 1970 too.

    Raises:
        InvalidValue
    """
    if type(value) is not int:
        raise InvalidValue(f"{noun} is milliseconds since 1970, not {value!r}")
    return value


def check_flags(**flags: object) -> None:
    """See that each option is True or False: a text such as "no" would count as True.

    Args:
        flags: the options by name.

    Raises:
        InvalidValue
    """
    for name, value in flags.items():
        if type(value) is not bool:
            raise InvalidValue(f"{name} is True or False, not {value!r}")


def check_delay_ns(noun: str, seconds: object, *, for_ever: bool = False) -> int:
    """Return a delay in nanoseconds: 0 seconds to 100 years.

    Args:
        for_ever: a longer delay, or an infinite one, counts as 100 years.

    Raises:
        InvalidValue
    """
    if for_ever and type(seconds) in (int, float) and seconds > DELAY_S_MAX:  # type: ignore[operator]
        seconds = DELAY_S_MAX
    if type(seconds) not in (int, float) or not 0 <= seconds <= DELAY_S_MAX:  # type: ignore[operator]
        raise InvalidValue(f"{noun} is 0 to {DELAY_S_MAX} seconds, not {seconds!r}")
    return int(seconds * 1e9)  # type: ignore[operator]


def check_many(noun: str, values: object) -> None:
    """See that a text or message id is not given where a list is due: each is a sequence too, of its parts.

    Args:
        noun: of the values, in the plural.

    Raises:
        InvalidValue
    """
    if isinstance(values, str | bytes | MessageId):
        raise InvalidValue(f"{noun} are a list, not {values!r}", hint="Put a single one into a list.")

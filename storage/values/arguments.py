"""Checks of the arguments of the Python API that are no names and no constants: numbers, times, lists.

Names and constants are in `names.py`, positions in `position.py`.
"""

from __future__ import annotations

from storage.errors import InvalidValue
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


def check_many(noun: str, values: object) -> None:
    """See that a text or message id is not given where a list is due: each is a sequence too, of its parts.

    Args:
        noun: of the values, in the plural.

    Raises:
        InvalidValue
    """
    if isinstance(values, str | bytes | MessageId):
        raise InvalidValue(f"{noun} are a list, not {values!r}", hint="Put a single one into a list.")

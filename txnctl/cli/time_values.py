"""Points in time as options take them, in one grammar everywhere: an age, a date, RFC 3339, or milliseconds since 1970.

An age (`2h`) means that long ago, by the clock of the store (`of_now.py`). Each form may follow an `@`, as a position
in a topic does (`--from @2h`).
"""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.of_now import OfNow, age, mapped
from txnctl.cli.value_types import DURATION, DURATION_MS, POSITION_OR_TIME, Grammar

_FORMS = "an age such as 2h, 2024-05-01T10:00:00Z, a date, or milliseconds since 1970"


class Time(Grammar):
    """A point in time, as milliseconds since 1970."""

    name = "time"
    expected = _FORMS
    sample = "2h"

    def read(self, text: str) -> int | OfNow | None:
        """Milliseconds since 1970, or None.

        Raises:
            InvalidValue: a number that is mostly meant otherwise; see `milliseconds`.
        """
        from txnctl.output.timestamp import milliseconds

        plain = text.removeprefix("@")
        age_ms = DURATION_MS.read(plain)
        return milliseconds(plain) if age_ms is None else age(int(age_ms))

    def objection(self, text: str) -> str:
        """An age that is too long is told the longest."""
        of_age = DURATION.objection(text.removeprefix("@"))
        return of_age if "longest" in of_age else super().objection(text)


class FutureTime(Time):
    """A point in time that is mostly still to come: an age is refused, since `2h` would be meant as in two hours."""

    expected = "2024-05-01T10:00:00Z, a date, or milliseconds since 1970"
    sample = "2030-05-01T10:00:00Z"

    def read(self, text: str) -> int | OfNow | None:
        """Milliseconds since 1970, or None.

        Raises:
            InvalidValue: an age, and as `Time.read`.
        """
        if DURATION_MS.read(text.removeprefix("@")) is not None:
            raise InvalidValue(
                f"{text[:80]!r} is an age, which has passed", hint="--deliver-after takes a duration."
            )
        return super().read(text)


class Moment(Time):
    """A point in the history of tables: now, a time up to the end of the millisecond, or the version of a row."""

    expected = f"now, {_FORMS}, or a version as `tables scan` shows it"

    def read(self, text: str) -> int | OfNow | None:
        """Nanoseconds since 1970, NOW, or None.

        Raises:
            InvalidValue: as `Time.read`.
        """
        from txnctl.output.timestamp import moment

        version = moment(text.removeprefix("@"))
        if version is not None:
            return version
        time_ms = super().read(text)
        return None if time_ms is None else mapped(time_ms, lambda at_ms: at_ms * 1_000_000 + 999_999)


class PositionText(Grammar):
    """A position in a topic or `@TIME`, as text for an option of Spark: an age is resolved to a time."""

    name = "position"
    expected = POSITION_OR_TIME.expected
    sample = POSITION_OR_TIME.sample

    def read(self, text: str) -> str | OfNow:
        """The position unchanged, or `@` and RFC 3339."""
        from storage.values.timestamps import rfc3339
        from txnctl.cli.at_time import AtTime

        return mapped(
            POSITION_OR_TIME.read(text),
            lambda start: f"@{rfc3339(start.time_ms)}" if isinstance(start, AtTime) else text,
        )


TIME = Time()
FUTURE_TIME = FutureTime()
MOMENT = Moment()
POSITION_TEXT = PositionText()

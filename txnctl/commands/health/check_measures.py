"""Measures of `txnctl check`, and the comparison with thresholds: pure functions of the overview.

A measure is beyond a threshold when greater; space, when less. Monitoring plugins read thresholds in the same way, so
the performance data agrees.
"""

from __future__ import annotations

from typing import NamedTuple

from storage.errors import InvalidValue
from txnctl.cli.value_types import Duration, Size
from txnctl.output.human import count, duration, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnctl.output.row import Row

STATES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
"""In the order of their exit codes."""


class Measure(NamedTuple):
    """One measure: name, unit (`` for a number, ms, bytes), the function of the overview, and default thresholds."""

    name: str
    unit: str
    what: str
    of: Callable[[Row], tuple[int, str | None]]
    warn: int | None = None
    critical: int | None = None
    less_is_worse: bool = False

    def shown(self, value: int) -> str:
        """The value for people."""
        return {"ms": duration, "bytes": size}.get(self.unit, count)(value)

    def is_beyond(self, value: int, limit: int | None) -> bool:
        """Whether a value is on the wrong side of a threshold."""
        if limit is None:
            return False
        return value < limit if self.less_is_worse else value > limit

    def read(self, text: str) -> int:
        """A threshold in the form of an option: a number, a duration or a size, as the unit is.

        Raises:
            InvalidValue
        """
        limit: float | int | None
        if not self.unit:
            limit, expected = (int(text) if text.isdecimal() and text.isascii() else None), "a whole number"
        else:
            grammar = Duration(milliseconds=True) if self.unit == "ms" else Size()
            limit, expected = grammar.read(text), grammar.expected
        if limit is None:
            raise InvalidValue(
                f"threshold {self.name}={text[:80]!r} cannot be read", hint=f"Expected: {expected}."
            )
        return int(limit)


def _late(row: Row) -> tuple[int, str | None]:
    late = row["transactions"]["late"]
    return len(late), f"first {late[0]['txnId']}" if late else None


def _blocked_age(row: Row) -> tuple[int, str | None]:
    """Where the oldest blocked message is too far away to search, the age of the blocker, which is no less."""
    ages = [
        (
            topic["blockedByAgeMs"]
            if topic["oldestBlockedMs"] is None
            else max(0, row["asOfMs"] - topic["oldestBlockedMs"]),
            f"{topic['name']} behind {topic['blockedBy']}",
        )
        for topic in row["topics"]
        if topic["blockedBy"] is not None
    ]
    return max(ages, default=(0, None))


def _lag(row: Row) -> tuple[int, str | None]:
    worst = max(row["subscriptions"], key=lambda subscription: int(subscription["visible"]), default=None)
    if worst is None or not worst["visible"]:
        return 0, None
    return worst["visible"], f"{worst['subscription']} of {worst['name']}"


def _stopped(row: Row) -> tuple[int, str | None]:
    """Stopped processes in the way of others, the findings of `doctor`."""
    return _found(row, "owner-stopped", "consumer-stopped", "producers-waiting")


def _held(row: Row) -> tuple[int, str | None]:
    """Subscriptions and tables held by idle transactions, the findings of `doctor`."""
    return _found(row, "acknowledgements-held", "intents-held")


def _found(row: Row, *codes: str) -> tuple[int, str | None]:
    findings = [finding for finding in row["findings"] if finding["code"] in codes]
    return len(findings), findings[0]["what"] if findings else None


def _waiting(row: Row) -> tuple[int, str | None]:
    worst = max(row["producers"], key=lambda queue: int(queue["waiting"]), default=None)
    return (0, None) if worst is None else (worst["waiting"], f"first {worst['name']}")


def _gate(row: Row) -> tuple[int, str | None]:
    gate = row["writerGate"]
    is_stopped = gate is not None and gate["state"] == "stopped"
    return int(is_stopped), f"held by stopped process {gate['pid']}" if is_stopped else None


MEASURES = (
    Measure("gate", "", "1 while a stopped process holds the writer gate", _gate, critical=0),
    Measure("late", "", "open transactions that are overdue or orphaned", _late, warn=0),
    Measure(
        "blocked-age", "ms", "how long the oldest blocked message has waited", _blocked_age, 60_000, 600_000
    ),
    Measure("stopped", "", "stopped consumers, producers and owners of transactions", _stopped, warn=0),
    Measure(
        "held", "", "subscriptions and tables of which an idle transaction holds acknowledgements or keys", _held, 0
    ),
    Measure("waiting", "", "producers that wait on the topic with the most", _waiting),
    Measure("lag", "", "messages that wait on the subscription with the most", _lag),
    Measure(
        "space", "bytes", "what the disk has left", lambda row: (row["store"]["diskFreeBytes"], None),
        1 << 30, 128 << 20, less_is_worse=True,
    ),
    Measure("readers", "", "places for readers that are taken", lambda row: (row["readers"]["inUse"], None), 400, 500),
)  # fmt: skip


def thresholds(typed: Sequence[str], option: str) -> dict[str, int]:
    """`late=3`, `blocked-age=2m` and so on, by name; the last of a name counts.

    Raises:
        InvalidValue
    """
    known, limits = {measure.name: measure for measure in MEASURES}, {}
    for text in typed:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise InvalidValue(
                f"{option} {text[:80]!r} names no measure",
                hint=f"Expected: NAME=VALUE, of {', '.join(known)}.",
            )
        limits[name] = known[name].read(value)
    return limits


def judge(row: Row, warn: dict[str, int], critical: dict[str, int]) -> list[Row]:
    """Every measure: name, value, unit, thresholds, state and place, as rows."""
    rows = []
    for measure in MEASURES:
        value, where = measure.of(row)
        limits = warn.get(measure.name, measure.warn), critical.get(measure.name, measure.critical)
        beyond = [measure.is_beyond(value, limit) for limit in limits]
        state = "CRITICAL" if beyond[1] else "WARNING" if beyond[0] else "OK"
        rows.append({
            "name": measure.name, "state": state, "value": value, "unit": measure.unit or None,
            "warn": limits[0], "critical": limits[1], "where": where, "what": measure.what,
        })  # fmt: skip
    return rows


def worst(measures: Sequence[Row]) -> str:
    """The state of the whole."""
    return max((row["state"] for row in measures), key=STATES.index, default="OK")

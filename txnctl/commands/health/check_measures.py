"""Measures of `txnctl check`, and the comparison with thresholds: pure functions of the overview.

A measure is beyond a threshold when greater; space, when less. Monitoring plugins read thresholds in the same way, so
the performance data agrees.
"""

from __future__ import annotations

from typing import Final, Generic, NamedTuple, TypeVar

from storage.errors import InvalidValue
from storage.reports import holder_findings
from storage.reports.finding import some
from txnctl.cli.value_types import Duration, Size
from txnctl.output.human import count, duration, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage.reports.activity import RecentEnds
    from storage.reports.overview import Overview

_ENDED_MIN = 10
"""Ended transactions from which on they have an abort rate."""

STATES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
"""In the order of their exit codes."""


S = TypeVar("S")


_UNKNOWN_SPACE: Final = (1 << 63) - 1


class Measure(NamedTuple, Generic[S]):
    """One measure.

    Attributes:
        unit: `` for a number, ms, bytes, percent.
        of: the function of the overview, or of the transactions ended of late.
        warn, critical: default thresholds.
    """

    name: str
    unit: str
    what: str
    of: Callable[[S], tuple[int, str | None]]
    warn: int | None = None
    critical: int | None = None
    less_is_worse: bool = False

    def shown(self, value: int) -> str:
        """The value for people."""
        return {"ms": duration, "bytes": size, "percent": "{} %".format}.get(self.unit, count)(value)

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
        if self.unit in ("", "percent"):
            limit, expected = (int(text) if text.isdecimal() and text.isascii() else None), "a whole number"
        else:
            grammar = Duration(milliseconds=True) if self.unit == "ms" else Size()
            limit, expected = grammar.read(text), grammar.expected
        if limit is None:
            raise InvalidValue(
                f"threshold {self.name}={text[:80]!r} cannot be read", hint=f"Expected: {expected}."
            )
        return int(limit)


class Judged(NamedTuple):
    """A measure of one store: value, unit, thresholds, state, and the place of the worst."""

    name: str
    state: str
    value: int
    unit: str | None
    warn: int | None
    critical: int | None
    where: str | None
    what: str


def _late(overview: Overview) -> tuple[int, str | None]:
    late = overview.facts.transactions.late
    return _named([str(row.txn_id) for row in late])


def _blocked_age(overview: Overview) -> tuple[int, str | None]:
    """Where the oldest blocked message is too far away to search, the age of the blocker, which is no less."""
    as_of_ms = overview.facts.as_of_at_ms
    ages = [
        (
            topic.blocked_by_age_ms or 0
            if topic.oldest_blocked_at_ms is None
            else max(0, as_of_ms - topic.oldest_blocked_at_ms),
            f"{topic.name} behind {topic.blocked_by}",
        )
        for topic in overview.facts.topics
        if topic.blocked_by is not None
    ]
    return max(ages, default=(0, None))


def _lag(overview: Overview) -> tuple[int, str | None]:
    slowest = max(overview.facts.subscriptions, key=lambda subscription: subscription.visible, default=None)
    if slowest is None or not slowest.visible:
        return 0, None
    return slowest.visible, f"{slowest.subscription} of {slowest.name}"


def _stopped(overview: Overview) -> tuple[int, str | None]:
    """Stopped processes in the way of others, the findings of `doctor`."""
    return _named(holder_findings.stopped_holders(overview.facts))


def _held(overview: Overview) -> tuple[int, str | None]:
    """Subscriptions and tables held by idle transactions, the findings of `doctor`."""
    return _named(holder_findings.held_objects(overview.facts))


def _quiet(overview: Overview) -> tuple[int, str | None]:
    """The consumer that acknowledges nothing for longest, the finding of `doctor`."""
    longest = next(iter(overview.facts.quiet_consumers), None)
    if longest is None:
        return 0, None
    return longest.quiet_ms, f"{longest.consumer_name} of {longest.subscription} of {longest.name}"


def _livelocks(overview: Overview) -> tuple[int, str | None]:
    """Groups of jobs that keep losing keys of a table to each other, the findings of `doctor`."""
    return _found(overview, "livelock")


def _found(overview: Overview, *codes: str) -> tuple[int, str | None]:
    findings = [finding for finding in overview.findings if finding.code in codes]
    return len(findings), findings[0].what if findings else None


def _named(names: list[str]) -> tuple[int, str | None]:
    """The number of things, and the first of them by name."""
    return len(names), some(names) if names else None


def _waiting(overview: Overview) -> tuple[int, str | None]:
    longest = max(overview.facts.producers, key=lambda queue: queue.waiting, default=None)
    return (0, None) if longest is None else (longest.waiting, f"first {longest.name}")


def _gate(overview: Overview) -> tuple[int, str | None]:
    gate = overview.facts.writer_gate
    if gate is None or gate.state != "stopped":
        return 0, None
    return 1, f"held by stopped process {gate.pid}"


def _space(overview: Overview) -> tuple[int, str | None]:
    free = overview.facts.store.disk.disk_free_bytes
    return (_UNKNOWN_SPACE, "the disk is the server's") if free is None else (free, None)


def _conflicts(ends: RecentEnds) -> tuple[int, str | None]:
    return ends.conflicts, ends.contended and f"most of table {ends.contended}"


def _abort_rate(ends: RecentEnds) -> tuple[int, str | None]:
    """In percent, rounded down; 0 where few have ended, of which one would be many percent."""
    ended = ends.committed + ends.aborted
    if ended < _ENDED_MIN:
        return 0, None
    return 100 * ends.aborted // ended, f"{count(ends.aborted)} of {count(ended)}"


def _readers(overview: Overview) -> tuple[int, str | None]:
    return overview.facts.readers.in_use, None


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
    Measure(
        "quiet", "ms", "how long a living consumer has held messages and acknowledged none", _quiet, 60_000
    ),
    Measure("livelocks", "", "tables of which jobs keep losing keys to each other", _livelocks, warn=0),
    Measure("waiting", "", "producers that wait on the topic with the most", _waiting),
    Measure("lag", "", "messages that wait on the subscription with the most", _lag),
    Measure(
        "space", "bytes", "what the disk has left", _space,
        1 << 30, 128 << 20, less_is_worse=True,
    ),
    Measure("readers", "", "places for readers that are taken", _readers, 400, 500),
)  # fmt: skip
"""Measures of the overview."""

ACTIVITY_MEASURES = (
    Measure("conflicts", "", "transactions that lost a key of a table in the last 5 minutes", _conflicts),
    Measure(
        "abort-rate", "percent", "aborted transactions, of those ended in the last 5 minutes", _abort_rate
    ),
)
"""Measures of the transactions ended of late."""

EVERY: tuple[Measure[Overview] | Measure[RecentEnds], ...] = (*MEASURES, *ACTIVITY_MEASURES)


def thresholds(typed: Sequence[str], option: str) -> dict[str, int]:
    """`late=3`, `blocked-age=2m` and so on, by name; the last of a name counts.

    Raises:
        InvalidValue
    """
    known, limits = {measure.name: measure for measure in EVERY}, {}
    for text in typed:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            from txnctl.cli.near_names import did_you_mean

            raise InvalidValue(
                f"{option} {text[:80]!r} names no measure",
                hint=f"{did_you_mean(name, known)}Expected: NAME=VALUE, of {', '.join(known)}.",
            )
        limits[name] = known[name].read(value)
    return limits


def judge(
    overview: Overview, ends: RecentEnds, warn: dict[str, int], critical: dict[str, int]
) -> list[Judged]:
    """Compare every measure with the thresholds, given or default."""
    values = [measure.of(overview) for measure in MEASURES] + [
        measure.of(ends) for measure in ACTIVITY_MEASURES
    ]
    judged = []
    for measure, (value, where) in zip(EVERY, values, strict=True):
        warn_at = warn.get(measure.name, measure.warn)
        critical_at = critical.get(measure.name, measure.critical)
        if measure.is_beyond(value, critical_at):
            state = "CRITICAL"
        else:
            state = "WARNING" if measure.is_beyond(value, warn_at) else "OK"
        unit = measure.unit or None
        judged.append(Judged(measure.name, state, value, unit, warn_at, critical_at, where, measure.what))
    return judged


def worst(measures: Sequence[Judged]) -> str:
    """The state of the whole."""
    return max((measure.state for measure in measures), key=STATES.index, default="OK")

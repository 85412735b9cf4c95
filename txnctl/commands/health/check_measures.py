"""Measures of `txnctl check`, and the comparison with thresholds: pure functions of the overview.

A measure is beyond a threshold when greater; space, when less. Monitoring plugins read thresholds in the same way, so
the performance data agrees.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from storage.errors import InvalidValue
from storage.reports import holder_findings, server_findings
from storage.reports.finding import some
from txnctl.cli.value_types import Duration, Size
from txnctl.input.names_once import named_once
from txnctl.output.human import count, duration, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage.disk.server_status import ServerStatus
    from storage.reports.activity import RecentEnds
    from storage.reports.overview import Overview

_ENDED_MIN = 10
"""Ended transactions from which on they have an abort rate."""

STATES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
"""In the order of their exit codes."""


S = TypeVar("S")


class Measure(NamedTuple, Generic[S]):
    """One measure.

    Attributes:
        unit: `` for a number, ms, bytes, percent.
        of: the function of the overview, or of the transactions ended of late; None for an unknown value.
        warn, critical: default thresholds.
        of_server: whether only a store on a server has the measure.
    """

    name: str
    unit: str
    what: str
    of: Callable[[S], tuple[int | None, str | None]]
    warn: int | None = None
    critical: int | None = None
    less_is_worse: bool = False
    of_server: bool = False

    def shown(self, value: int) -> str:
        """The value for people."""
        return {"ms": duration, "bytes": size, "percent": "{} %".format}.get(self.unit, count)(value)

    def is_beyond(self, value: int | None, limit: int | None) -> bool:
        """Whether a value is on the wrong side of a threshold; an unknown one is not."""
        if limit is None or value is None:
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
    """A measure of one store: value (None if unknown), unit, thresholds, state, and the place of the worst."""

    name: str
    state: str
    value: int | None
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
    if gate is None or not gate.stops_writers:
        return 0, None
    if gate.state == "stopped":
        return 1, f"held by stopped process {gate.pid}"
    return 1, f"held for {duration(gate.held_ms)} by {gate.holder}"


def _space(overview: Overview) -> tuple[int | None, str | None]:
    return overview.facts.store.disk.disk_free_bytes, None


def _conflicts(ends: RecentEnds) -> tuple[int, str | None]:
    return ends.conflicts, ends.contended and f"most of table {ends.contended}"


def _abort_rate(ends: RecentEnds) -> tuple[int, str | None]:
    """In percent, rounded down; 0 where few have ended, of which one would be many percent."""
    ended = ends.committed + ends.aborted
    if ended < _ENDED_MIN:
        return 0, None
    return 100 * ends.aborted // ended, f"{count(ends.aborted)} of {count(ended)}"


def _readers(overview: Overview) -> tuple[int | None, str | None]:
    return overview.facts.readers.in_use, None


def _server(overview: Overview) -> ServerStatus:
    server = overview.facts.store.info.server
    assert server is not None, "only stores on a server have the measure"
    return server


def _standby(overview: Overview) -> tuple[int | None, str | None]:
    server = _server(overview)
    return server_findings.missing_standbys(server), server.synchronous_standby_names or None


def _standby_lag(overview: Overview) -> tuple[int | None, str | None]:
    standbys = _server(overview).standbys
    if standbys is None:
        return None, None
    last = max(standbys, key=lambda standby: standby.behind_bytes or 0, default=None)
    return (0, None) if last is None else (last.behind_bytes or 0, f"standby {last.name}")


def _vacuum(overview: Overview) -> tuple[int, str | None]:
    oldest = next(iter(_server(overview).transactions), None)
    return (0, None) if oldest is None else (oldest.age_ms or 0, oldest.holder)


def _connections(overview: Overview) -> tuple[int, str | None]:
    """In percent, rounded up: none left is 100."""
    server = _server(overview)
    percent = -(-100 * server.connections // max(1, server.connections_max))
    return percent, f"{server.connections:,} of {server.connections_max:,}"


MEASURES = (
    Measure("gate", "", "1 while a process that does not go on holds the writer gate", _gate, critical=0),
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
    Measure(
        "standby", "", "synchronous standbys that changes wait for in vain", _standby,
        critical=0, of_server=True,
    ),
    Measure(
        "standby-lag", "bytes", "log that the last standby lacks", _standby_lag,
        server_findings.BEHIND_MAX_BYTES, of_server=True,
    ),
    Measure(
        "vacuum", "ms", "age of the oldest transaction of the database, for which dead rows stay", _vacuum,
        server_findings.TRANSACTION_LONG_MS, of_server=True,
    ),
    Measure(
        "connections", "percent", "connections of the server that are in use", _connections,
        server_findings.CONNECTIONS_HIGH_PERCENT, 98, of_server=True,
    ),
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
    """`late=3`, `blocked-age=2m` and so on, by name.

    Raises:
        InvalidValue
    """
    known: dict[str, Measure[Any]] = {measure.name: measure for measure in EVERY}
    limits: list[tuple[str, int]] = []
    for text in typed:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            from txnctl.cli.near_names import did_you_mean

            raise InvalidValue(
                f"{option} {text[:80]!r} names no measure",
                hint=f"{did_you_mean(name, known)}Expected: NAME=VALUE, of {', '.join(known)}."
                f" {_example(option, known['lag'])}",
            )
        try:
            limits.append((name, known[name].read(value)))
        except InvalidValue as error:
            error.hint = f"{error.hint} {_example(option, known[name])}"
            raise
    return named_once(limits, f"{option}: ")


def _example(option: str, measure: Measure[Any]) -> str:
    """A command with a threshold of the measure."""
    from txnctl.output.shell import line

    value = {"ms": "5m", "bytes": "1G", "percent": "10"}.get(measure.unit, "1000")
    return f"For example: {line('check', **{option.lstrip('-'): f'{measure.name}={value}'})}"


def judge(
    overview: Overview, ends: RecentEnds, warn: dict[str, int], critical: dict[str, int]
) -> list[Judged]:
    """Compare every measure of this kind of store with the thresholds, given or default."""
    is_served = overview.facts.store.info.server is not None
    measures: list[Measure[Overview]] = [
        measure for measure in MEASURES if is_served or not measure.of_server
    ]
    values = [measure.of(overview) for measure in measures] + [
        measure.of(ends) for measure in ACTIVITY_MEASURES
    ]
    judged = []
    every: list[Measure[Overview] | Measure[RecentEnds]] = [*measures, *ACTIVITY_MEASURES]
    for measure, (value, where) in zip(every, values, strict=True):
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

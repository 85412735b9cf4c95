"""How `txnctl check` tells monitoring: as a plugin of Nagios does, as metrics of Prometheus, as JSON."""

from __future__ import annotations

from txnctl.commands.health.check_measures import MEASURES, STATES, worst
from txnctl.fields.subscription import living
from txnctl.output.escape import printable
from txnctl.output.prometheus import Metric
from txnctl.output.shell import spell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from storage.errors import TxnctlError
    from storage.reports.facts import Facts, SubscriptionFacts, TableFacts, TopicFacts
    from storage.reports.overview import Overview
    from txnctl.cli.error_report import Failure
    from txnctl.commands.health.check_measures import Judged

_BY_NAME = {measure.name: measure for measure in MEASURES}
_LESS_IS_WORSE = {measure.name for measure in MEASURES if measure.less_is_worse}


def state_without_store(error: TxnctlError) -> str:
    """CRITICAL where the store is broken or full; UNKNOWN where the store could not be read from here at this
    moment.
    """
    unseen = ("store-not-found", "not-permitted", "store-in-use", "platform-unsupported")
    return "UNKNOWN" if error.code in unseen or error.exit_code == 2 else "CRITICAL"


def nagios(measures: Sequence[Judged]) -> Iterator[str]:
    """One line with the state and performance data, then a line for each measure beyond a threshold."""
    bad = sorted(
        (measure for measure in measures if measure.state != "OK"),
        key=lambda measure: -STATES.index(measure.state),
    )
    facts = [f"{measure.name} {_value(measure)}" for measure in bad]
    facts = facts or ["all measures are within their thresholds"]
    performance = " ".join([_performance(measure) for measure in measures])
    yield f"TXNCTL {worst(measures)} - {_plain(', '.join(facts))} | {performance}"
    for measure in bad:
        where = f" ({measure.where})" if measure.where else ""
        compared = f"{measure.name} {_value(measure)} {_limit_passed(measure)}"
        yield _plain(f"{measure.state}: {compared}{where}: {measure.what}")


def nagios_without_store(error: TxnctlError | Failure, state: str) -> Iterator[str]:
    """What is known: the store could not be read."""
    yield f"TXNCTL {state} - {_plain(error.message)}"
    if error.hint:
        yield _plain(spell(error.hint))


def _value(measure: Judged) -> str:
    return _BY_NAME[measure.name].shown(measure.value)


def _limit_passed(measure: Judged) -> str:
    """`> 5m00s`: the side of the threshold that the value is on, and the threshold."""
    limit = measure.critical if measure.state == "CRITICAL" else measure.warn
    assert limit is not None, "a measure without a threshold is OK"
    sign = "<" if measure.name in _LESS_IS_WORSE else ">"
    return f"{sign} {_BY_NAME[measure.name].shown(limit)}"


def _plain(text: str) -> str:
    """Without characters that end the text for a monitoring system."""
    return printable(text).replace("|", "/")


def _performance(measure: Judged) -> str:
    """`late=2;0;;0`: value with unit, the two thresholds as ranges, the least there can be."""
    name = measure.name.replace("-", "_")
    sign = ":" if measure.name in _LESS_IS_WORSE else ""
    warn, critical = [
        "" if limit is None else _base(measure, limit) + sign for limit in (measure.warn, measure.critical)
    ]
    unit = {"ms": "s", "bytes": "B"}.get(measure.unit or "", "")
    return f"{name}={_base(measure, measure.value)}{unit};{warn};{critical};0"


def _base(measure: Judged, value: int) -> str:
    """A value in the unit that performance data has: seconds, bytes, or a number."""
    return f"{value / 1000:.3f}".rstrip("0").rstrip(".") if measure.unit == "ms" else str(value)


def prometheus(overview: Overview, measures: Sequence[Judged]) -> Iterator[str]:
    """All gauges of a store."""
    facts = overview.facts
    for metric in (
        *_of_store(facts, measures),
        *_of_topics(facts),
        *_of_subscriptions(facts.subscriptions),
        *_of_tables(facts.tables),
    ):
        yield from metric.lines()


def prometheus_without_store() -> Iterator[str]:
    """Only the failure to read the store."""
    yield from _up(0).lines()


def _up(value: int) -> Metric:
    return Metric("txnctl_up", "Whether the store could be opened and read.", [({}, value)])


def _of_store(facts: Facts, measures: Sequence[Judged]) -> Iterator[Metric]:
    store, transactions = facts.store, facts.transactions
    values = {measure.name: measure.value for measure in measures}
    oldest = transactions.oldest
    yield _up(1)
    for name, help, value in (
        ("open_transactions", "Open transactions.", transactions.open),
        ("late_transactions", "Open transactions that are overdue or orphaned.", len(transactions.late)),
        ("oldest_transaction_age_seconds", "Since the oldest began.", oldest and oldest.age_ms / 1000),
        (
            "blocked_age_seconds",
            "How long the oldest blocked message has waited.",
            values["blocked-age"] / 1000,
        ),
        ("disk_free_bytes", "What the disk of the store has left.", store.disk.disk_free_bytes),
        ("data_bytes", "The size of the data file.", store.info.data_bytes),
        ("used_bytes", "What of the data file was ever in use.", store.info.used_bytes),
        ("in_use_bytes", "What of the data file holds something now.", store.info.in_use_bytes),
        ("readers", "Places for readers that are taken.", facts.readers.in_use),
        ("readers_max", "Places for readers.", facts.readers.max),
        ("stopped_holders", "Stopped processes that hold what others wait for.", values["stopped"]),
        ("held_objects", "Subscriptions and tables that idle transactions hold.", values["held"]),
        ("writer_gate_stopped", "1 while a stopped process holds the writer gate.", values["gate"]),
    ):
        yield Metric(f"txnctl_{name}", help, [({}, value)])
    states = [({"measure": measure.name}, STATES.index(measure.state)) for measure in measures]
    yield Metric("txnctl_check_state", "0 OK, 1 WARNING, 2 CRITICAL, by the thresholds of the check.", states)


_TOPIC_GAUGES: tuple[tuple[str, str, Callable[[TopicFacts], int]], ...] = (
    ("messages", "Stored messages.", lambda topic: topic.msg_count),
    (
        "blocked_messages",
        "Committed messages behind an open transaction.",
        lambda topic: topic.blocked_messages,
    ),
    ("uncommitted_messages", "Messages of open transactions.", lambda topic: topic.uncommitted_messages),
    (
        "open_transactions",
        "Open transactions with messages on the topic.",
        lambda topic: topic.ongoing_txn_count,
    ),
)
_SUBSCRIPTION_GAUGES: tuple[tuple[str, str, Callable[[SubscriptionFacts], int]], ...] = (
    ("visible_messages", "What could be handed out now, in flight included.", lambda row: row.visible),
    ("blocked_messages", "Committed, but behind an open transaction.", lambda row: row.blocked),
    ("uncommitted_messages", "Of open transactions.", lambda row: row.uncommitted),
    ("pending_messages", "Acknowledged in a transaction that is open.", lambda row: row.pending),
    ("unacked_messages", "In flight.", lambda row: row.unacked_messages),
    ("consumers", "Consumers whose process lives.", living),
)
_TABLE_GAUGES: tuple[tuple[str, str, Callable[[TableFacts], int]], ...] = (
    ("keys", "Keys of the table.", lambda table: table.keys),
    ("versions", "Superseded versions that are kept.", lambda table: table.versions),
    ("intents", "Writes that are not decided, or not finalised.", lambda table: table.intents),
)


def _of_topics(facts: Facts) -> Iterator[Metric]:
    for name, help, figure in _TOPIC_GAUGES:
        samples = [({"topic": topic.topic}, figure(topic)) for topic in facts.topics]
        yield Metric(f"txnctl_topic_{name}", help, samples)
    waiting = [({"topic": queue.topic}, queue.waiting) for queue in facts.producers]
    yield Metric("txnctl_topic_waiting_producers", "Living producers that wait for their turn.", waiting)


def _of_subscriptions(rows: Sequence[SubscriptionFacts]) -> Iterator[Metric]:
    labels = [
        {
            "topic": row.topic,
            "subscription": row.subscription,
            "subscriptionIsolationLevel": row.subscription_isolation_level,
            "subscriptionType": row.type,
        }
        for row in rows
    ]
    for name, help, figure in _SUBSCRIPTION_GAUGES:
        values = [figure(row) for row in rows]
        yield Metric(f"txnctl_subscription_{name}", help, list(zip(labels, values, strict=True)))


def _of_tables(tables: Sequence[TableFacts]) -> Iterator[Metric]:
    for name, help, figure in _TABLE_GAUGES:
        samples = [({"table": table.table}, figure(table)) for table in tables]
        yield Metric(f"txnctl_table_{name}", help, samples)

"""The metrics of `txnctl check --format prometheus`: gauges of the overview, counters since the boot."""

from __future__ import annotations

from storage.reports.server_findings import missing_standbys
from storage.values import counters as numbers
from txnctl.commands.health.check_measures import STATES
from txnctl.fields.subscription import living
from txnctl.output.prometheus import COUNTER, Histogram, Metric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from storage.disk.counters import Counters
    from storage.reports.activity import StoreActivity
    from storage.reports.facts import Facts, SubscriptionFacts, TableFacts, TopicFacts
    from storage.reports.overview import Overview
    from txnctl.commands.health.check_measures import Judged


def prometheus(overview: Overview, activity: StoreActivity, measures: Sequence[Judged]) -> Iterator[str]:
    """All metrics of a store."""
    facts = overview.facts
    for metric in (
        *_of_store(facts, measures),
        *_of_server(facts),
        *_of_topics(facts),
        *_of_subscriptions(facts.subscriptions),
        _oldest_visible(facts, activity),
        *_of_tables(facts.tables),
        *_of_events(activity.counters),
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
    yield Metric("txnctl_check_timestamp_seconds", "When the check ran.", [({}, facts.as_of_at_ms / 1000)])
    for name, help, value in (
        ("open_transactions", "Open transactions.", transactions.open),
        ("late_transactions", "Open transactions that are overdue or orphaned.", len(transactions.late)),
        ("oldest_transaction_age_seconds", "Since the oldest began.", oldest and oldest.age_ms / 1000),
        (
            "blocked_age_seconds",
            "How long the oldest blocked message has waited.",
            (values["blocked-age"] or 0) / 1000,
        ),
        ("disk_free_bytes", "What the disk of the store has left.", store.disk.disk_free_bytes),
        ("data_bytes", "The size of the data file; on a server of the tables.", store.info.data_bytes),
        ("used_bytes", "What of the data file was ever in use.", store.info.used_bytes),
        ("in_use_bytes", "What of that holds something now.", store.info.in_use_bytes),
        ("readers", "Places for readers that are taken.", facts.readers.in_use),
        ("readers_max", "Places for readers.", facts.readers.max),
        ("stopped_holders", "Stopped processes that hold what others wait for.", values["stopped"]),
        ("held_objects", "Subscriptions and tables that idle transactions hold.", values["held"]),
        (
            "writer_gate_stopped",
            "1 while a process that does not go on holds the writer gate.",
            values["gate"],
        ),
    ):
        yield Metric(f"txnctl_{name}", help, [({}, value)])
    states = [({"measure": measure.name}, STATES.index(measure.state)) for measure in measures]
    yield Metric("txnctl_check_state", "0 OK, 1 WARNING, 2 CRITICAL, by the thresholds of the check.", states)


def _of_server(facts: Facts) -> Iterator[Metric]:
    server = facts.store.info.server
    if server is None:
        return
    is_replicated = server.durability == "replicated"
    oldest = max([held.age_ms or 0 for held in server.transactions], default=0)
    for name, help, value in (
        ("connections", "Connections of the server in use.", server.connections),
        ("connections_max", "Connections that clients may have.", server.connections_max),
        ("replicated", "1 if changes of the store wait for a synchronous standby.", int(is_replicated)),
        ("standbys_missing", "Synchronous standbys that changes wait for in vain.", missing_standbys(server)),
        ("oldest_transaction_age_seconds", "Of all clients of the database: VACUUM waits.", oldest / 1000),
    ):
        yield Metric(f"txnctl_server_{name}", help, [({}, value)])
    behind = [
        ({"standby": standby.name, "syncState": standby.sync_state or ""}, standby.behind_bytes)
        for standby in server.standbys or ()
    ]
    yield Metric("txnctl_standby_behind_bytes", "Log that a standby lacks.", behind)


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
    ages = [
        ({"topic": topic.topic}, _age_s(facts, topic.oldest_blocked_at_ms))
        for topic in facts.topics
        if topic.oldest_blocked_at_ms is not None or not topic.blocked_messages
    ]
    yield Metric(
        "txnctl_topic_oldest_blocked_age_seconds",
        "Since the oldest blocked message was published; 0 if none.",
        ages,
    )
    waiting = [({"topic": queue.topic}, queue.waiting) for queue in facts.producers]
    yield Metric("txnctl_topic_waiting_producers", "Living producers that wait for their turn.", waiting)


def _of_subscriptions(rows: Sequence[SubscriptionFacts]) -> Iterator[Metric]:
    labels = [_labels(row) for row in rows]
    for name, help, figure in _SUBSCRIPTION_GAUGES:
        values = [figure(row) for row in rows]
        yield Metric(f"txnctl_subscription_{name}", help, list(zip(labels, values, strict=True)))


def _labels(row: SubscriptionFacts) -> dict[str, str]:
    return {
        "topic": row.topic,
        "subscription": row.subscription,
        "subscriptionIsolationLevel": row.subscription_isolation_level,
        "subscriptionType": row.type,
    }


def _oldest_visible(facts: Facts, activity: StoreActivity) -> Metric:
    """Overview and activity are of two views: a subscription of one of them alone is left out."""
    published = {(row.topic, row.subscription): row.published_at_ms for row in activity.oldest_visible}
    samples = [
        (_labels(row), _age_s(facts, published[row.topic, row.subscription] if row.visible else None))
        for row in facts.subscriptions
        if (row.topic, row.subscription) in published
    ]
    return Metric(
        "txnctl_subscription_oldest_visible_age_seconds",
        "Since the oldest visible message that is not acknowledged was published; 0 if there is none.",
        samples,
    )


def _age_s(facts: Facts, published_at_ms: int | None) -> float:
    return 0 if published_at_ms is None else max(0, facts.as_of_at_ms - published_at_ms) / 1000


def _of_tables(tables: Sequence[TableFacts]) -> Iterator[Metric]:
    for name, help, figure in _TABLE_GAUGES:
        samples = [({"table": table.table}, figure(table)) for table in tables]
        yield Metric(f"txnctl_table_{name}", help, samples)


_EVENTS = (
    ("messages_total", "Messages written, those of transactions included.", numbers.MESSAGES_WRITTEN),
    ("deliveries_total", "Messages given to a consumer.", numbers.DELIVERIES),
    (
        "redeliveries_total",
        "Messages given to a consumer that had been delivered before.",
        numbers.REDELIVERIES,
    ),
    ("commits_total", "Committed transactions, single writes to a table included.", numbers.COMMITS),
    ("conflicts_total", "Transactions that lost a key of a table.", numbers.CONFLICTS_LOST),
    ("takeovers_total", "Take-overs of a topic from connected producers.", numbers.TAKEOVERS),
)


def _of_events(counters: Counters) -> Iterator[Metric | Histogram]:
    for name, help, number in _EVENTS:
        yield Metric(f"txnctl_{name}", help, [({}, counters.events[number])], COUNTER)
    aborts = [({"reason": reason}, counters.events[number]) for reason, number in numbers.ABORTS.items()]
    yield Metric("txnctl_aborts_total", "Aborted transactions.", aborts, COUNTER)
    flushes = sum(counters.buckets)
    yield Metric("txnctl_flushes_total", "Flushes of the store to the disk.", [({}, flushes)], COUNTER)
    yield Histogram(
        "txnctl_flush_duration_seconds",
        "Commit latency: from asking for the writer gate to the end of the flush.",
        [bound_ms / 1000 for bound_ms in numbers.DURATION_BOUNDS_MS],
        counters.buckets,
        counters.duration_ns / 1e9,
    )
    since = None if counters.since_ms is None else counters.since_ms / 1000
    yield Metric("txnctl_counters_start_timestamp_seconds", "When the counters began at zero.", [({}, since)])

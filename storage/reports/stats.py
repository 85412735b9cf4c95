"""Statistics of topics and subscriptions, each from one view.

Names in the JSON are Apache Pulsar's where Pulsar has the same figure, so that jq scripts for `pulsar-admin topics
stats` and `stats-internal` carry over. Unknown is None, never 0.
"""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.json_form import Flat
from storage.process.identity import ProcessIdentity
from storage.process.locks import Locks
from storage.reports import backlog as backlogs, compaction, producers, skipped
from storage.reports.compaction import CompactionRow
from storage.reports.producers import ProducerRow
from storage.reports.skipped import HeldBack
from storage.subscription import (
    attached_consumers,
    catalogue as subscriptions,
    cursor as cursors,
)
from storage.subscription.attached_consumers import AttachedConsumer
from storage.subscription.cursor import Cursor
from storage.subscription.isolation import SubscriptionType
from storage.subscription.subscription import Subscription
from storage.topic import catalogue as topics, log, state as topic_states
from storage.topic.catalogue import Topic
from storage.topic.producers.errors import shown_epoch
from storage.topic.state import TopicState
from storage.txn import record as records, uncommitted_entries
from storage.txn.blocked_count import blocked_behind
from storage.txn.owner_state import users_of
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.values.txn_id import TxnID


class TopicCounts(NamedTuple):
    """Positions and counts of a topic."""

    msg_in_counter: int
    bytes_in_counter: int
    msg_count: int
    marker_count: int
    storage_size: int
    first_position: Position | None
    max_read_position: Position
    last_confirmed_entry: Position
    topic_epoch: int | None
    ongoing_txn_count: int
    aborted_txn_count: int
    uncommitted_messages: int
    aborted_messages: int
    last_publish_at_ms: int | None


class TopicRow(NamedTuple):
    """One topic of a list."""

    topic: str
    name: str
    counts: Flat[TopicCounts]


class Readable(NamedTuple):
    """Messages that a READ_COMMITTED reader from the beginning receives, and messages behind maxReadPosition."""

    readable_messages: int
    skipped_messages: int
    blocked_messages: int
    oldest_blocked_at_ms: int | None


class Blocker(NamedTuple):
    """The open transaction that holds maxReadPosition."""

    txn_id: TxnID
    first_position: Position
    begin_at_ms: int
    age_ms: int
    owner: ProcessIdentity
    owner_state: str
    last_user: ProcessIdentity
    last_user_state: str


class PendingIn(NamedTuple):
    """Messages that a transaction has pending on a subscription."""

    txn_id: TxnID
    messages: int


class ConsumerRow(NamedTuple):
    """An attached consumer."""

    consumer_name: str
    owner: ProcessIdentity
    pid: int
    state: str
    unacked_messages: int
    connected_since_at_ms: int


class SubscriptionStats(NamedTuple):
    """Level, cursor, backlog by class, verdict and consumers of a subscription."""

    type: str
    subscription_isolation_level: str
    on_open: str
    mark_delete_position: Position
    read_position: Position
    msg_backlog: int
    visible: int
    blocked: int
    delayed: int
    uncommitted: int
    pending: int
    pending_in: list[PendingIn]
    unacked_messages: int
    acknowledged_ahead: int
    aborted_ahead: int
    backlog_size: int
    msg_out_counter: int
    msg_redeliver_counter: int
    msg_aborted_drop_counter: int
    msg_lost_counter: int
    msg_expired_counter: int
    dead_letter_topic: str | None
    max_redeliver_count: int | None
    held_by: list[HeldBack]
    verdict: str
    created_at_ms: int
    without_consumer_since_at_ms: int | None
    consumers: list[ConsumerRow]


class SubscriptionRow(NamedTuple):
    """One subscription of a list."""

    topic: str
    subscription: str
    as_of_at_ms: int
    stats: Flat[SubscriptionStats]


class OneSubscription(NamedTuple):
    """A subscription with the bounds and the blocker of its topic."""

    row: Flat[SubscriptionRow]
    max_read_position: Position
    last_confirmed_entry: Position
    blocked_by: Blocker | None


class TopicStats(NamedTuple):
    """One topic with its subscriptions, producers and blocker."""

    topic: str
    name: str
    as_of_at_ms: int
    created_at_ms: int
    counts: Flat[TopicCounts]
    readable: Flat[Readable]
    ledger_entries_max: int | None
    ledger_bytes_max: int | None
    ledger_age_max_ms: int | None
    blocked_by: Blocker | None
    waiting_publishers: int
    publishers: list[ProducerRow]
    subscriptions: dict[str, SubscriptionStats]
    compaction: CompactionRow | None


def list_topics(connection: Connection) -> list[TopicRow]:
    """Positions and counts of every topic."""
    with connection.view() as view:
        return [
            TopicRow(
                topic.full_name, topic.name, _counts(view, topic, topic_states.load(view, topic.topic_id))
            )
            for topic in topics.every(view)
        ]


def topic_stats(connection: Connection, name: str) -> TopicStats:
    """One topic."""
    with connection.view() as view:
        topic = topics.get(view, name)
        topic_state = topic_states.load(view, topic.topic_id)
        locks = connection.environment.locks
        publishers, waiting = producers.publishers(view, locks, topic, topic_state)
        return TopicStats(
            topic=topic.full_name, name=topic.name,
            as_of_at_ms=connection.clock.wall_ms(), created_at_ms=topic.created_ms,
            counts=_counts(view, topic, topic_state), readable=readable(view, topic, topic_state),
            ledger_entries_max=topic_state.ledger_entries_max, ledger_bytes_max=topic_state.ledger_bytes_max,
            ledger_age_max_ms=topic_state.ledger_age_max_ms,
            blocked_by=_blocker(view, locks, topic),
            waiting_publishers=waiting, publishers=publishers,
            subscriptions={
                subscription.name: subscription_of(view, locks, topic_state, subscription)
                for subscription in subscriptions.every(view, topic.topic_id)
            },
            compaction=compaction.row_of(view, topic.topic_id),
        )  # fmt: skip


def _counts(view: ReadView, topic: Topic, topic_state: TopicState) -> TopicCounts:
    first = log.first_entry(view, topic.topic_id)
    return TopicCounts(
        msg_in_counter=topic_state.messages, bytes_in_counter=topic_state.bytes,
        msg_count=topic_state.messages - topic_state.messages_trimmed, marker_count=topic_state.markers,
        storage_size=topic_state.bytes - topic_state.bytes_trimmed,
        first_position=first.position if first else None,
        max_read_position=topic_state.max_read_position, last_confirmed_entry=topic_state.last_confirmed_position,
        topic_epoch=shown_epoch(topic_state.epoch),
        ongoing_txn_count=topic_state.open_txns, aborted_txn_count=topic_state.aborted_txns,
        uncommitted_messages=topic_state.uncommitted, aborted_messages=topic_state.aborted_messages,
        last_publish_at_ms=topic_state.last_publish_ms or None,
    )  # fmt: skip


def readable(
    view: ReadView, topic: Topic, topic_state: TopicState, oldest_steps: int | None = None
) -> Readable:
    """Count on both sides of maxReadPosition.

    Args:
        oldest_steps: how far to look for the oldest blocked message; None as far as the statistics of a topic do.
    """
    from storage.txn import aborted

    topic_id = topic.topic_id
    below = log.messages_through(view, topic_id, topic_state, topic_state.max_read)
    aborted_below = aborted.messages_between(
        view, topic_id, topic_state, Position(0, -1), topic_state.max_read
    )
    blocked = blocked_behind(view, topic_id, topic_state, topic_state.max_read)
    oldest = None
    if blocked:
        from storage.reports.blocking_chain import OLDEST_STEPS_OF_STATS, oldest_blocked_ms

        oldest = oldest_blocked_ms(view, topic_id, topic_state, oldest_steps or OLDEST_STEPS_OF_STATS)
    return Readable(below - topic_state.messages_trimmed - aborted_below, aborted_below, blocked, oldest)


def _blocker(view: ReadView, locks: Locks, topic: Topic) -> Blocker | None:
    first = uncommitted_entries.first_open(view, topic.topic_id)
    if first is None:
        return None
    record = records.get(view, first[0])
    age_ms = record.age_ms(view.clock.wall_ms())
    return Blocker(record.id, first[1], record.begun_ms, age_ms, *users_of(view, locks, record))


def one_subscription(connection: Connection, topic_name: str, name: str) -> OneSubscription:
    """One subscription of a topic."""
    with connection.view() as view:
        topic, locks = topics.get(view, topic_name), connection.environment.locks
        topic_state = topic_states.load(view, topic.topic_id)
        subscription = subscriptions.get(view, topic, name)
        stats = subscription_of(view, locks, topic_state, subscription)
        return OneSubscription(
            SubscriptionRow(topic.full_name, name, connection.clock.wall_ms(), stats),
            topic_state.max_read_position, topic_state.last_confirmed_position, _blocker(view, locks, topic),
        )  # fmt: skip


def list_subscriptions(connection: Connection, topic_name: str | None = None) -> list[SubscriptionRow]:
    """The subscriptions of one topic, or of all topics."""
    rows: list[SubscriptionRow] = []
    locks, now_ms = connection.environment.locks, connection.clock.wall_ms()
    with connection.view() as view:
        for topic in [topics.get(view, topic_name)] if topic_name is not None else topics.every(view):
            topic_state = topic_states.load(view, topic.topic_id)
            rows += [
                SubscriptionRow(
                    topic.full_name, subscription.name, now_ms, subscription_of(view, locks, topic_state, subscription)
                )
                for subscription in subscriptions.every(view, topic.topic_id)
            ]  # fmt: skip
    return rows


def subscription_of(
    view: ReadView, locks: Locks, topic_state: TopicState, subscription: Subscription
) -> SubscriptionStats:
    """The figures of one subscription."""
    cursor = cursors.load(view, subscription.subscription_id)
    backlog = backlogs.count(view, topic_state, subscription, cursor)
    attached = attached_consumers.every(view, subscription.subscription_id)
    living = [consumer for consumer in attached if locks.leases.is_held(consumer.lease)]
    consumers = _consumers(view, locks, attached, backlog.in_flight, subscription.subscription_id)
    is_frozen = _is_frozen(subscription, backlog, living, consumers)
    _, acknowledged_bytes = log.counts_through(view, subscription.topic_id, topic_state, cursor.mark_delete)
    return SubscriptionStats(
        type=subscription.type.value, subscription_isolation_level=subscription.level.value,
        on_open=subscription.on_open.value,
        mark_delete_position=Position(*cursor.mark_delete), read_position=Position(*cursor.read),
        msg_backlog=backlog.visible + backlog.blocked + backlog.delayed + backlog.uncommitted,
        visible=backlog.visible, blocked=backlog.blocked, delayed=backlog.delayed, uncommitted=backlog.uncommitted,
        pending=backlog.pending,
        pending_in=_pending_in(view, topic_state, subscription, cursor) if backlog.pending else [],
        unacked_messages=backlog.in_flight,
        acknowledged_ahead=backlog.acknowledged, aborted_ahead=backlog.aborted,
        backlog_size=topic_state.bytes - acknowledged_bytes,
        msg_out_counter=cursor.delivered, msg_redeliver_counter=cursor.redelivered,
        msg_aborted_drop_counter=cursor.aborted_dropped,
        msg_lost_counter=cursor.lost, msg_expired_counter=cursor.expired,
        dead_letter_topic=subscription.dead_letter_topic, max_redeliver_count=subscription.max_redeliver_count,
        held_by=skipped.held_back(view, subscription, cursor),
        verdict=backlog.verdict(len(living), is_frozen=is_frozen), created_at_ms=subscription.created_ms,
        without_consumer_since_at_ms=None if living else cursor.vacated_ms, consumers=consumers,
    )  # fmt: skip


def _is_frozen(
    subscription: Subscription,
    backlog: backlogs.Backlog,
    living: list[AttachedConsumer],
    consumers: list[ConsumerRow],
) -> bool:
    """Whether stopped consumers keep every visible message.

    So it is where each living consumer is stopped, where the active consumer of a Failover subscription is, and where
    every visible message is in flight at a stopped one.
    """
    stopped = {row.consumer_name: row.unacked_messages for row in consumers if row.state == "stopped"}
    if not stopped:
        return False
    at_work = living
    if subscription.type is SubscriptionType.FAILOVER:
        active = attached_consumers.active(living)
        at_work = [active] if active is not None else living
    return all(consumer.name in stopped for consumer in at_work) or sum(stopped.values()) >= backlog.visible


def _pending_in(
    view: ReadView, topic_state: TopicState, subscription: Subscription, cursor: Cursor
) -> list[PendingIn]:
    pending = backlogs.pending_by_transaction(view, topic_state, subscription, cursor)
    return [PendingIn(TxnID(txn), messages) for txn, messages in pending.items() if messages]


def _consumers(
    view: ReadView, locks: Locks, attached: list[AttachedConsumer], in_flight: int, subscription_id: int
) -> list[ConsumerRow]:
    rows = []
    is_shared_out = len(attached) > 1 and in_flight
    held = attached_consumers.messages_held(view, subscription_id) if is_shared_out else None
    for consumer in attached:
        owner = consumer.owner
        unacked = in_flight if held is None else held[consumer.consumer_id]
        state = locks.leases.state_of(consumer.lease, owner, view.clock.boot_id())
        rows.append(ConsumerRow(consumer.name, owner, owner.pid, state, unacked, consumer.connected_ms))
    return rows

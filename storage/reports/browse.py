"""Browse a topic without consuming: its log, its last message, the next messages of a subscription."""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.limits import PEEK_KEY_ENTRIES_MAX
from storage.subscription import (
    acks,
    catalogue as subscriptions,
    cursor as cursors,
    delivery as deliveries,
    message_set,
    pending_ack,
)
from storage.subscription.cursor import Cursor
from storage.subscription.dispatch.visible_set import VisibleSet
from storage.subscription.isolation import IsolationLevel
from storage.subscription.start_position import start_after
from storage.subscription.subscription import Subscription
from storage.topic import catalogue as topics, log, other_lives, publish_times, state as topic_states, trim
from storage.topic.entry import ABORT_MARKER, COMMIT_MARKER, MESSAGES, Entry
from storage.topic.message import Message, MessageOrigin
from storage.topic.open_topic import OpenTopic
from storage.topic.producers.errors import shown_epoch
from storage.txn import record as records, runs
from storage.values.arguments import check_count, check_time_ms
from storage.values.named_tuple import NamedTuple
from storage.values.names import chosen
from storage.values.position import EARLIEST, Extreme, MessageId, Position, start_of
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState

_KINDS = {MESSAGES: "messages", COMMIT_MARKER: "commit", ABORT_MARKER: "abort"}


class KeyMessages(NamedTuple):
    """Messages of a key.

    Attributes:
        looked_through: the last entry looked at, where the look ended before the end of the topic; None otherwise.
    """

    messages: list[Message]
    looked_through: Position | None


class EntryRow(NamedTuple):
    """An entry of the log: a batch of messages, or the marker of a transaction."""

    position: Position
    kind: str
    messages: int
    size: int
    publish_time_at_ms: int
    delivery_time_ms: int | None
    producer_name: str | None
    sequence_id: int | None
    epoch: int | None
    txn_id: TxnID | None
    txn_state: TransactionState | None


def list_entries(
    connection: Connection,
    name: str,
    start: Position | MessageId | Extreme = EARLIEST,
    limit: int | None = None,
) -> Iterator[EntryRow]:
    """Every entry from `start` on, markers included, in order. Each page comes from a view of its own.

    Raises:
        TopicNotFound: also if the topic is deleted between two pages.
        MessageNotFound: entries from `start` on, or between two pages, were trimmed, or the topic never had the start.
    """
    with connection.view() as view:
        topic = topics.get(view, name)
        opened = OpenTopic.load(view, topic.topic_id, topic.name)
        other_lives.check_start(opened, start_of(start))
        after = start_after(opened.state, start_of(start), IsolationLevel.READ_UNCOMMITTED)
        through = opened.state.last_confirmed
    left, is_earliest = limit if limit is not None else 1 << 62, start is EARLIEST
    while left > 0:
        with connection.view() as view:
            opened = OpenTopic.load(view, topic.topic_id, topic.name)
            if is_earliest:
                after, is_earliest = max(after, Position(opened.state.first_ledger, -1)), False
            trim.check_kept(opened, after)
            page = log.page(view, topic.topic_id, after, through)
            rows = [_entry_row(view, entry) for entry in page[:left]]
        if not rows:
            return
        left -= len(rows)
        after = page[-1].position
        yield from rows


def _entry_row(view: ReadView, entry: Entry) -> EntryRow:
    is_marker = entry.kind != MESSAGES
    return EntryRow(
        position=entry.position, kind=_KINDS[entry.kind], messages=entry.count, size=entry.size,
        publish_time_at_ms=entry.publish_time,
        delivery_time_ms=min((time for time in entry.delivery_times or () if time is not None), default=None),
        producer_name=None if is_marker else entry.producer_name,
        sequence_id=None if is_marker else entry.sequence_ids[0],
        epoch=shown_epoch(entry.epoch),
        txn_id=entry.txn_id if entry.txn else None,
        txn_state=records.state_of(view, entry.txn) if entry.txn else None,
    )  # fmt: skip


def last_message_id(
    connection: Connection,
    name: str,
    level: IsolationLevel | str = IsolationLevel.READ_COMMITTED,
    subscription_name: str | None = None,
) -> MessageId | None:
    """The largest visible message: at READ_COMMITTED at or below maxReadPosition, and not aborted.

    None in a topic without visible messages.

    Args:
        subscription_name: as this subscription sees the topic, at its own level.

    Raises:
        TopicNotFound, SubscriptionNotFound, InvalidName, InvalidValue
    """
    asked = chosen(IsolationLevel, level, "isolation level")
    with connection.view() as view:
        topic = topics.get(view, name)
        topic_state = topic_states.load(view, topic.topic_id)
        subscription = Subscription(topic.topic_id, "", 0)
        subscription.level = asked
        if subscription_name is not None:
            subscription = subscriptions.get(view, topic, subscription_name)
        visible_set = VisibleSet(view, topic_state, subscription)
        at = visible_set.through
        while at[1] >= 0:
            entry = log.stored(view, topic.topic_id, at)
            shown = visible_set.of(entry)
            if shown:
                return entry.message_id(shown.bit_length() - 1)
            if visible_set.state(entry) is TransactionState.OPEN:
                at = runs.start_of_run(view, topic.topic_id, entry.txn, entry.position)
            at = log.previous_position(view, topic.topic_id, at)
    return None


def peek(connection: Connection, name: str, subscription_name: str, count: int) -> list[Message]:
    """The next visible messages that a subscription has not acknowledged; nothing is delivered."""
    return _peek(connection, name, subscription_name, count, None).messages


def peek_key(
    connection: Connection, name: str, subscription_name: str, key: bytes, count: int
) -> KeyMessages:
    """The same, of one key, among the next `PEEK_KEY_ENTRIES_MAX` entries."""
    return _peek(connection, name, subscription_name, count, key)


def _peek(
    connection: Connection, name: str, subscription_name: str, count: int, key: bytes | None
) -> KeyMessages:
    check_count("a number of messages", count)
    messages: list[Message] = []
    store = connection.incarnation
    with connection.view() as view:
        topic = topics.get(view, name)
        origin = MessageOrigin(topic.name, topic.topic_id, store)
        subscription = subscriptions.get(view, topic, subscription_name)
        cursor = cursors.load(view, subscription.subscription_id)
        topic_state = topic_states.load(view, topic.topic_id)
        visible_set = VisibleSet(view, topic_state, subscription)
        for looked, entry in enumerate(
            log.scan(view, topic.topic_id, cursor.mark_delete, visible_set.through)
        ):
            if len(messages) >= count:
                break
            if key is not None and looked >= PEEK_KEY_ENTRIES_MAX:
                return KeyMessages(messages, log.previous_position(view, topic.topic_id, entry.position))
            shown = message_set.everything(entry.count) if key is None else of_key(entry, key)
            if shown:
                shown &= unacknowledged(view, subscription, cursor, visible_set, entry)
            entry.txn_state = visible_set.state(entry)
            messages += [entry.message(index, origin) for index in message_set.indexes(shown)]
    return KeyMessages(messages[:count], None)


def of_key(entry: Entry, key: bytes) -> int:
    """The messages of an entry that have a key."""
    return sum([1 << index for index, known in enumerate(entry.keys or ()) if known == key])


def unacknowledged(
    view: ReadView, subscription: Subscription, cursor: Cursor, visible_set: VisibleSet, entry: Entry
) -> int:
    """The visible messages of an entry that a subscription has not acknowledged, in a transaction or outside."""
    at, shown = entry.position, visible_set.of(entry)
    shown &= ~acks.acknowledged(view, subscription.subscription_id, cursor, at, entry.count)
    delivery = deliveries.find(view, subscription.subscription_id, at) if shown else None
    shown &= ~(delivery.of(deliveries.PENDING) if delivery else 0)
    return shown & ~pending_ack.covered(cursor, at, entry.count)


def position_at(connection: Connection, name: str, time_ms: int) -> Position:
    """The first position in the log published at or after a time; the end of the topic if there is none."""
    check_time_ms("a publish time", time_ms)
    with connection.view() as view:
        topic = topics.get(view, name)
        return publish_times.first_at(view, topic.topic_id, topic_states.load(view, topic.topic_id), time_ms)

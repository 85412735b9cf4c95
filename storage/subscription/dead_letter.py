"""The dead-letter topic: where a message goes that was redelivered too often.

The copy and the acknowledgement are one store transaction. The topic comes into being with its first letter.
"""

from __future__ import annotations

from storage.disk.view import WriteBatch
from storage.errors import InvalidName, InvalidValue
from storage.limits import NAME_BYTES_MAX, REDELIVERIES_MAX
from storage.subscription import cursor as cursors, delivery as deliveries, message_set
from storage.subscription.catalogue import Subscription
from storage.subscription.cursor import Cursor
from storage.subscription.delivery import Delivery
from storage.topic import catalogue as topics, log, sequence_ids, state
from storage.topic.catalogue import LedgerLimits, Topic
from storage.topic.entry import MESSAGES, Columns, Entry
from storage.values.names import LETTERS_PREFIX, full_topic_name
from storage.values.position import Position


def topic_name(topic: str, subscription: str) -> str:
    """Pulsar's name for it."""
    return f"{topic}-{subscription}-DLQ"


def check_policy(
    topic: Topic, subscription: str, dead_letter_topic: str | None, max_redeliver_count: int | None
) -> None:
    """That letters could be sent.

    Raises:
        InvalidName: the topic's name, or the one made from topic and subscription, is none.
        InvalidValue: a topic cannot be its own dead-letter topic, nor a count be negative or beyond its bound.
    """
    if max_redeliver_count is not None and not 0 <= max_redeliver_count <= REDELIVERIES_MAX:
        raise InvalidValue(f"a redelivery count is 0 to {REDELIVERIES_MAX:,}, not {max_redeliver_count}")
    if dead_letter_topic is not None and full_topic_name(dead_letter_topic) == topic.full_name:
        raise InvalidValue(f"{topic.name} cannot be its own dead-letter topic")
    if max_redeliver_count is not None and dead_letter_topic is None:
        try:
            full_topic_name(topic_name(topic.full_name, subscription))
        except InvalidName as error:
            raise InvalidName(
                f"the dead-letter topic's name would not be valid: {error.message}",
                hint="Name one with --dead-letter-topic.",
            ) from None


def send(
    batch: WriteBatch,
    topic: Topic,
    subscription: Subscription,
    cursor: Cursor,
    exhausted: list[tuple[Entry, Delivery, int]],
) -> int:
    """Copy these messages and acknowledge them; how many. The caller advances and saves the cursor."""
    target = subscription.dead_letter_topic or topic_name(topic.full_name, subscription.name)
    letters = topics.find(batch, target) or topics.create(batch, target, LedgerLimits())
    head = state.load(batch, letters.topic_id)
    sent = 0
    for entry, delivery, messages in exhausted:
        columns = _letters(entry, message_set.indexes(messages), topic, subscription)
        count, name = len(columns.values), f"{LETTERS_PREFIX}{subscription.name}"[:NAME_BYTES_MAX]
        first = sequence_ids.assign(batch, letters.topic_id, name, count, 0)
        body = columns.body(name, first)
        log.append(batch, letters.topic_id, head, MESSAGES, count, 0, head.epoch, body)
        delivery.take(messages)
        deliveries.save(batch, subscription.subscription_id, cursor, delivery)
        cursors.acknowledge(
            batch, topic.topic_id, subscription.subscription_id, cursor, delivery.at, delivery.count, messages
        )
        sent += count
    state.save(batch, letters.topic_id, head)
    return sent


def _letters(entry: Entry, indexes: list[int], topic: Topic, subscription: Subscription) -> Columns:
    """The copies, with properties that say where they come from."""
    columns = Columns(entry.values, entry.keys, entry.properties, entry.event_times).pick(indexes)
    origin = Position(entry.ledger_id, entry.entry_id)
    properties = []
    for place, index in enumerate(indexes):
        mine = dict((columns.properties[place] if columns.properties else None) or {})
        mine["REAL_TOPIC"], mine["REAL_SUBSCRIPTION"] = topic.full_name, subscription.name
        mine["ORIGIN_MESSAGE_ID"] = str(entry.message_id(index)) if entry.count > 1 else str(origin)
        properties.append(mine)
    columns.properties = properties
    return columns

"""The dead-letter topic: the topic of messages that were redelivered too often.

The copy and the acknowledgement are one store transaction. The topic is created with the first letter. A message of an
aborted transaction, which only READ_UNCOMMITTED delivers, is acknowledged without a copy.
"""

from __future__ import annotations

from storage.actions import Hint, Keyword
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidName, InvalidValue
from storage.limits import NAME_BYTES_MAX, REDELIVERIES_MAX
from storage.subscription import message_set
from storage.subscription.delivery import Delivery
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.topic import catalogue as topics, log
from storage.topic.catalogue import Topic
from storage.topic.entry import MESSAGES, Columns, Entry
from storage.topic.open_topic import OpenTopic
from storage.topic.sequence_ids import LastUse, SequenceIds
from storage.txn import record as records
from storage.values.names import LETTERS_PREFIX, full_topic_name
from storage.values.position import MessageId
from storage.values.txn_state import TransactionState

Exhausted = tuple[Entry, Delivery, int]
"""An entry, its delivery, and the messages that were redelivered as often as the policy allows."""


def topic_name(topic: str, subscription: str) -> str:
    """Pulsar's name for the dead-letter topic of a subscription."""
    return f"{topic}-{subscription}-DLQ"


def topic_of(topic: Topic, subscription: Subscription) -> str:
    """The name of the dead-letter topic that a subscription has, set or by default."""
    return subscription.dead_letter_topic or topic_name(topic.full_name, subscription.name)


def check_policy(
    topic: Topic, subscription: str, dead_letter_topic: str | None, max_redeliver_count: int | None
) -> None:
    """Check that letters could be sent.

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
                hint=Hint("Name one with {}.", Keyword("dead_letter_topic")),
            ) from None


def retire(opened: OpenSubscription[WriteBatch], topic: Topic, exhausted: list[Exhausted]) -> None:
    """Acknowledge exhausted messages, and copy those to the dead-letter topic that count.

    A letter is a plain message, so messages of aborted transactions are acknowledged without a copy, and counted.
    """
    kept = [(entry, messages) for entry, _, messages in exhausted if not is_aborted(opened.view, entry)]
    if kept:
        _send_letters(opened, topic, kept)
    letters = sum(messages.bit_count() for _, messages in kept)
    for _, delivery, messages in exhausted:
        delivery.take(messages)
        opened.deliveries.put(delivery)
        opened.acks.acknowledge(delivery.at, delivery.count, messages)
    opened.cursor.aborted_dropped += sum(messages.bit_count() for *_, messages in exhausted) - letters


def is_aborted(view: ReadView, entry: Entry) -> bool:
    """Whether an entry is of an aborted transaction."""
    return entry.txn != 0 and records.state_of(view, entry.txn) is TransactionState.ABORTED


def _send_letters(
    opened: OpenSubscription[WriteBatch], topic: Topic, exhausted: list[tuple[Entry, int]]
) -> None:
    batch, subscription = opened.view, opened.subscription
    target = topics.find_or_create(batch, topic_of(topic, subscription))
    letters = OpenTopic.load(batch, target.topic_id)
    name = f"{LETTERS_PREFIX}{subscription.name}"[:NAME_BYTES_MAX]
    sequence_ids = SequenceIds(batch, letters.topic_id, name)
    for entry, messages in exhausted:
        columns = _letters(entry, message_set.indexes(messages), topic, subscription)
        first = sequence_ids.assign(columns.count, 0, LastUse.now(letters))
        body = columns.body(name, first)
        log.append(letters, MESSAGES, columns.count, 0, body)


def origins(letters: Entry, topic: Topic, subscription: Subscription) -> list[tuple[int, MessageId]]:
    """The letters of one subscription in an entry of a dead-letter topic: batch index, and id of the original message.

    Only the store publishes under the name of letters, so the properties are the store's. A letter without the id of
    the subscription is of an earlier release, and belongs to the subscription by name.
    """
    if letters.kind != MESSAGES or not letters.producer_name.startswith(LETTERS_PREFIX):
        return []
    number = str(subscription.subscription_id)
    return [
        (index, MessageId.parse(pairs["ORIGIN_MESSAGE_ID"]))
        for index, pairs in enumerate(letters.properties or ())
        if pairs
        and (pairs["REAL_TOPIC"], pairs["REAL_SUBSCRIPTION"]) == (topic.full_name, subscription.name)
        and pairs.get("REAL_SUBSCRIPTION_ID", number) == number
    ]


def _letters(entry: Entry, indexes: list[int], topic: Topic, subscription: Subscription) -> Columns:
    """Make the copies, with properties that name the origin."""
    columns = Columns(entry.values, entry.keys, entry.properties, entry.event_times).pick(indexes)
    properties = []
    for number, index in enumerate(indexes):
        pairs = dict((columns.properties[number] if columns.properties else None) or {})
        pairs["REAL_TOPIC"], pairs["REAL_SUBSCRIPTION"] = topic.full_name, subscription.name
        pairs["REAL_SUBSCRIPTION_ID"] = str(subscription.subscription_id)
        pairs["ORIGIN_MESSAGE_ID"] = str(entry.message_id(index) if entry.count > 1 else entry.position)
        properties.append(pairs)
    columns.properties = properties
    return columns

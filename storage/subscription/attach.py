"""Attaching a consumer: to a subscription that is there, changed where it may be, or to one that is created for it.

All of it is one store transaction, in which dead consumers are taken off first.
"""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.view import WriteBatch
from storage.errors import InvalidValue
from storage.subscription import catalogue as subscriptions, cursor as cursors, dead_letter, update
from storage.subscription.catalogue import AttachedConsumer, Subscription
from storage.subscription.isolation import IsolationLevel, OnOpen, SubscriptionType
from storage.subscription.read_position import subscription_start
from storage.topic import catalogue as topics, state
from storage.topic.catalogue import Topic
from storage.txn import reaper
from storage.txn.coordinator import Coordinator
from storage.values.names import named
from storage.values.position import LATEST, Start, start_of


class SubscribeOptions:
    """What is asked of a subscription, checked.

    What is None is taken from the subscription; of a new one it is the default.

    Attributes:
        start: where a new subscription begins.
        dead_letter_topic, max_redeliver_count: where a message goes that was redelivered so often.
    """

    __slots__ = (
        "dead_letter_topic",
        "level",
        "max_redeliver_count",
        "name",
        "on_open",
        "start",
        "topic",
        "type",
    )

    def __init__(
        self,
        topic: str,
        name: str,
        *,
        type_: SubscriptionType | str | None = None,
        level: IsolationLevel | str | None = None,
        on_open: OnOpen | str | None = None,
        start: Start = LATEST,
        dead_letter_topic: str | None = None,
        max_redeliver_count: int | None = None,
    ) -> None:
        """Raises:
        InvalidValue, InvalidPosition
        """
        if max_redeliver_count is not None and max_redeliver_count < 0:
            raise InvalidValue(f"a redelivery count is 0 or more, not {max_redeliver_count}")
        self.topic = topic
        self.name = name
        self.type = named(SubscriptionType, type_, "subscription type")
        self.level = named(IsolationLevel, level, "isolation level")
        self.on_open = named(OnOpen, on_open, "on-open")
        self.start = start_of(start)
        self.dead_letter_topic = dead_letter_topic
        self.max_redeliver_count = max_redeliver_count


def attach(
    connection: Connection, coordinator: Coordinator, ask: SubscribeOptions, consumer_name: str | None
) -> tuple[Topic, Subscription, AttachedConsumer]:
    """Attach a consumer as asked; topic, subscription and consumer.

    Raises:
        TopicNotFound, InvalidName, InvalidValue
        SubscriptionBusy: consumers attached ask for another type, level or on-open, or it is Exclusive.
        ObjectHeld: the type would change while acknowledgements are pending.
    """

    def join_or_create(batch: WriteBatch) -> tuple[Topic, Subscription, AttachedConsumer]:
        topic = topics.get(batch, ask.topic)
        mine = subscriptions.find(batch, topic, ask.name)
        if mine is None:
            mine = create(batch, topic, ask)
        else:
            _join(batch, coordinator, connection, topic, mine, ask)
        lease = connection.lease(batch)
        attached = subscriptions.attach(batch, mine, consumer_name, lease, connection.owner)
        return topic, mine, attached

    return connection.write(join_or_create)


def create(batch: WriteBatch, topic: Topic, ask: SubscribeOptions) -> Subscription:
    """A new subscription as asked, with nobody attached.

    Raises:
        AlreadyExists, InvalidName, InvalidValue
    """
    level = ask.level or IsolationLevel.READ_COMMITTED
    after, inside = subscription_start(state.load(batch, topic.topic_id), ask.start, level)
    dead_letter.check_policy(topic, ask.name, ask.dead_letter_topic, ask.max_redeliver_count)
    return subscriptions.create(
        batch, topic, ask.name, ask.type or SubscriptionType.EXCLUSIVE, level, after, inside,
        ask.dead_letter_topic, ask.max_redeliver_count, ask.on_open or OnOpen.BLOCK,
    )  # fmt: skip


def _join(
    batch: WriteBatch,
    coordinator: Coordinator,
    connection: Connection,
    topic: Topic,
    mine: Subscription,
    ask: SubscribeOptions,
) -> None:
    """See that a consumer that asks this may join, and change the subscription as far as it may be."""
    living = subscriptions.sweep(
        batch, mine, lambda within, lease: reaper.end_owned(within, coordinator, lease, connection.owner)
    )
    cursor = cursors.load(batch, mine.subscription_id)
    subscriptions.check_mode(topic, mine, living, ask.type, ask.level, ask.on_open)
    update.update(batch, mine, cursor, ask.type, ask.level, ask.on_open)
    if ask.dead_letter_topic is not None:
        mine.dead_letter_topic = ask.dead_letter_topic
    if ask.max_redeliver_count is not None:
        mine.max_redeliver_count = ask.max_redeliver_count
    dead_letter.check_policy(topic, mine.name, mine.dead_letter_topic, mine.max_redeliver_count)
    subscriptions.save(batch, mine)
    cursors.save(batch, mine.subscription_id, cursor)

"""Attach a consumer to an existing subscription, changed as far as the rules allow, or to a new subscription.

Attaching is one store transaction, which removes dead consumers first.
"""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.disk.view import WriteBatch
from storage.subscription import attached_consumers, catalogue as subscriptions, dead_letter, update
from storage.subscription.attached_consumers import AttachedConsumer
from storage.subscription.isolation import (
    IsolationLevel,
    OnOpen,
    SubscriptionMode,
    SubscriptionType,
    check_compacted,
)
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.start_position import subscription_start
from storage.subscription.subscription import Subscription
from storage.topic import catalogue as topics, other_lives
from storage.topic.catalogue import Topic
from storage.topic.compaction import compacted_view
from storage.topic.open_topic import OpenTopic
from storage.txn import reaper
from storage.txn.coordinator import Coordinator
from storage.values.arguments import check_count, check_flags
from storage.values.position import LATEST, Start, start_of


class DeadLetterPolicy:
    """The rule for messages that were redelivered too often.

    Attributes:
        topic: the name of the dead-letter topic; None for Pulsar's name.
        max_redeliver_count: the number of redeliveries after which a message goes there; None for no limit.
    """

    __slots__ = ("max_redeliver_count", "topic")

    def __init__(self, topic: str | None = None, max_redeliver_count: int | None = None) -> None:
        """Raises:
        InvalidValue: the count is negative.
        """
        if max_redeliver_count is not None:
            check_count("a redelivery count", max_redeliver_count)
        self.topic = topic
        self.max_redeliver_count = max_redeliver_count


class SubscribeOptions:
    """The checked options of a consumer or a new subscription.

    A value of None is taken from the existing subscription, or is the default of a new one.

    Attributes:
        start: the begin of a new subscription.
        reads_compacted: whether the consumer reads the compacted view, and then the log behind its horizon.
    """

    __slots__ = ("dead_letters", "mode", "name", "reads_compacted", "start", "topic")

    def __init__(
        self,
        topic: str,
        name: str,
        mode: SubscriptionMode,
        start: Start = LATEST,
        dead_letters: DeadLetterPolicy | None = None,
        *,
        reads_compacted: bool = False,
    ) -> None:
        """Raises:
        InvalidPosition
        """
        self.reads_compacted = reads_compacted
        self.topic = topic
        self.name = name
        self.mode = mode
        self.start = start_of(start)
        self.dead_letters = dead_letters or DeadLetterPolicy()


def attach(
    connection: Connection, coordinator: Coordinator, options: SubscribeOptions, consumer_name: str | None
) -> tuple[Topic, Subscription, AttachedConsumer]:
    """Attach a consumer; return topic, subscription and consumer.

    Raises:
        TopicNotFound, InvalidName, InvalidValue
        SubscriptionBusy: consumers attached ask for another type, level or on-open, or it is Exclusive.
        ObjectHeld: the type would change while acknowledgements are pending.
    """
    check_flags(read_compacted=options.reads_compacted)

    def end_owned(batch: WriteBatch, lease: int) -> None:
        reaper.end_owned(batch, coordinator, lease, connection.identity)

    def join_or_create(batch: WriteBatch) -> tuple[Topic, Subscription, AttachedConsumer]:
        topic = topics.get(batch, options.topic)
        subscription = subscriptions.find(batch, topic, options.name)
        if subscription is None:
            subscription = create(batch, topic, options)
        else:
            looked_at = dead if attached_consumers.joins_any(subscription, options.mode) else None
            living = attached_consumers.sweep(batch, subscription, end_owned, looked_at)
            _join(batch, topic, subscription, options, living)
        if options.reads_compacted:
            check_compacted(subscription.level, subscription.type)
        lease = connection.lease(batch)
        attached = attached_consumers.attach(batch, subscription, consumer_name, lease, connection.identity)
        attached.reads_compacted = options.reads_compacted
        return topic, subscription, attached

    dead = _find_dead(connection, options)
    return connection.write(join_or_create, share=ReserveShare.PART)


def _find_dead(connection: Connection, options: SubscribeOptions) -> list[AttachedConsumer]:
    """The dead consumers of a subscription. All are looked at, in a view: the writer gate is not held for that."""
    with connection.view() as view:
        topic = topics.find(view, options.topic)
        subscription = None if topic is None else subscriptions.find(view, topic, options.name)
        if subscription is None:
            return []
        return attached_consumers.dead(view, connection.environment.locks, subscription.subscription_id)


def create(batch: WriteBatch, topic: Topic, options: SubscribeOptions) -> Subscription:
    """Create a subscription without consumers.

    Raises:
        AlreadyExists, InvalidName, InvalidValue
        MessageNotFound: the topic never had the start.
    """
    mode, dead_letters = options.mode, options.dead_letters
    level = mode.level or IsolationLevel.READ_COMMITTED
    first = compacted_view.before_first(batch, topic.topic_id) if options.reads_compacted else None
    opened = OpenTopic.load(batch, topic.topic_id, topic.name)
    other_lives.check_start(opened, options.start)
    after, inside = subscription_start(opened.state, options.start, level, first)
    dead_letter.check_policy(topic, options.name, dead_letters.topic, dead_letters.max_redeliver_count)
    subscription = Subscription(topic.topic_id, options.name)
    subscription.type = mode.type or SubscriptionType.EXCLUSIVE
    subscription.level, subscription.on_open = level, mode.on_open or OnOpen.BLOCK
    subscription.dead_letter_topic = dead_letters.topic
    subscription.max_redeliver_count = dead_letters.max_redeliver_count
    subscription.start = after
    subscriptions.create(batch, topic, subscription, inside)
    return subscription


def _join(
    batch: WriteBatch,
    topic: Topic,
    subscription: Subscription,
    options: SubscribeOptions,
    living: list[AttachedConsumer],
) -> None:
    """Check that a consumer with these options may join, and change the subscription as far as the rules allow.

    Args:
        living: the attached consumers, which may refuse the options.
    """
    attached_consumers.check_mode(topic, subscription, living, options.mode)
    update.update(OpenSubscription(batch, subscription), options.mode)
    dead_letters = options.dead_letters
    if dead_letters.topic is not None:
        subscription.dead_letter_topic = dead_letters.topic
    if dead_letters.max_redeliver_count is not None:
        subscription.max_redeliver_count = dead_letters.max_redeliver_count
    dead_letter.check_policy(
        topic, subscription.name, subscription.dead_letter_topic, subscription.max_redeliver_count
    )
    subscriptions.save(batch, subscription)

"""The catalogue of subscriptions and their consumers: create, find, attach, change.

The type and the isolation level belong to the subscription and are fixed while consumers are attached. A consumer is
attached while the lease of its process is held; the next process that attaches, dispatches or waits finds a dead one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum

from storage.actions import Action, Hint
from storage.disk.codec import key1, key2, pack, unpack
from storage.disk.schema import ACKS, AWAITED, CONSUMERS, DELIVERIES, HELD, PENDING, SUBSCRIPTIONS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import AlreadyExists, SubscriptionBusy, SubscriptionNotFound
from storage.process.identity import ProcessIdentity, is_stopped
from storage.subscription import cursor as cursors
from storage.subscription.isolation import SubscriptionMode, SubscriptionType, check_on_open
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.topic.catalogue import Topic
from storage.values.names import check_name
from storage.values.position import MessageId, Position


class AttachedConsumer:
    """The record of a consumer."""

    __slots__ = ("connected_ms", "consumer_id", "lease", "name", "owner_fields")

    def __init__(
        self, consumer_id: int, name: str, lease: int, owner_fields: list[object], connected_ms: int
    ) -> None:
        self.consumer_id = consumer_id
        self.name = name
        self.lease = lease
        self.owner_fields = owner_fields
        self.connected_ms = connected_ms

    @property
    def owner(self) -> ProcessIdentity:
        return ProcessIdentity.of(self.owner_fields)


def find(view: ReadView, topic: Topic, name: str) -> Subscription | None:
    """Find the subscription of a name, or None."""
    check_name("subscription name", name)
    key = key1(topic.topic_id) + name.encode("ascii")
    payload = view.get(SUBSCRIPTIONS, key)
    return None if payload is None else Subscription.decode(key, payload)


def get(view: ReadView, topic: Topic, name: str) -> Subscription:
    """Raises:
    SubscriptionNotFound: naming the subscriptions of the topic.
    """
    subscription = find(view, topic, name)
    if subscription is None:
        names = ", ".join(member.name for member in every(view, topic.topic_id))
        create = Action("store.admin.subscriptions.create_subscription")
        hint = f"It has {names}." if names else Hint("It has none: `{}` makes one.", create)
        raise SubscriptionNotFound(
            f"topic {topic.name} has no subscription {name}",
            hint=hint,
            topic=topic.full_name,
            subscription=name,
        )
    return subscription


def every(view: ReadView, topic_id: int) -> Iterator[Subscription]:
    """Yield the subscriptions of a topic by name."""
    for key, payload in view.scan(SUBSCRIPTIONS, key1(topic_id)):
        yield Subscription.decode(key, payload)


def save(batch: WriteBatch, subscription: Subscription) -> None:
    """Write the record of a subscription."""
    batch.put(
        SUBSCRIPTIONS, key1(subscription.topic_id) + subscription.name.encode("ascii"), subscription.encode()
    )


def create(
    batch: WriteBatch, topic: Topic, subscription: Subscription, inside: MessageId | None = None
) -> None:
    """Write a new subscription, whose backlog begins after its start, and give the subscription an id.

    Args:
        inside: the message at which the backlog begins, if it lies inside the entry that follows the start.

    Raises:
        AlreadyExists, InvalidName
        InvalidValue: the type or level does not go with `on_open`.
    """
    name = subscription.name
    check_on_open(subscription.type, subscription.level, subscription.on_open)
    if find(batch, topic, name) is not None:
        raise AlreadyExists(
            f"topic {topic.name} has a subscription {name} already", topic=topic.full_name, subscription=name
        )
    batch.superblock.last_subscription += 1
    subscription.subscription_id = batch.superblock.last_subscription
    subscription.created_ms = batch.now_ms
    save(batch, subscription)
    cursors.create(batch, subscription.subscription_id, subscription.start)
    if inside is not None:
        OpenSubscription(batch, subscription).acks.begin_inside(inside)


def delete(batch: WriteBatch, subscription: Subscription) -> None:
    """Remove a subscription with all records. No acknowledgement may be pending, no consumer attached."""
    prefix = key1(subscription.subscription_id)
    batch.delete(SUBSCRIPTIONS, key1(subscription.topic_id) + subscription.name.encode("ascii"))
    cursors.delete(batch, subscription.subscription_id)
    for database in (ACKS, DELIVERIES, AWAITED, HELD, CONSUMERS, PENDING):
        batch.delete_prefix(database, prefix)


def consumers(view: ReadView, subscription_id: int) -> list[AttachedConsumer]:
    """The recorded consumers in the order of attachment, dead ones that are not yet removed included."""
    return [
        AttachedConsumer(int.from_bytes(key[8:], "big"), *unpack(payload)[:4])
        for key, payload in view.scan(CONSUMERS, key1(subscription_id))
    ]


def sweep(
    batch: WriteBatch, subscription: Subscription, end_owned: Callable[[WriteBatch, int], None]
) -> list[AttachedConsumer]:
    """Remove dead consumers and free their messages; return the living consumers.

    Args:
        end_owned: ends the transactions of a dead owner's lease, so that messages pending in them are free as well.
    """
    attached = consumers(batch, subscription.subscription_id)
    living = [consumer for consumer in attached if batch.lock_file.leases.is_held(consumer.lease)]
    dead = [consumer for consumer in attached if consumer not in living]
    for lease in {consumer.lease for consumer in dead}:
        end_owned(batch, lease)
    if dead:
        opened = OpenSubscription(batch, subscription)
        for consumer in dead:
            detach(opened, consumer.consumer_id, {})
    return living


def attach(
    batch: WriteBatch, subscription: Subscription, name: str | None, lease: int, owner: ProcessIdentity
) -> AttachedConsumer:
    """Add a consumer.

    Raises:
        InvalidName
    """
    if name is not None:
        check_name("consumer name", name)
    batch.superblock.last_consumer += 1
    number = batch.superblock.last_consumer
    consumer = AttachedConsumer(number, name or f"consumer-{number}", lease, owner.fields(), batch.now_ms)
    record = [consumer.name, lease, consumer.owner_fields, consumer.connected_ms]
    batch.put(CONSUMERS, key2(subscription.subscription_id, number), pack(record))
    return consumer


def detach(opened: OpenSubscription[WriteBatch], consumer_id: int, untouched: dict[Position, int]) -> int:
    """Remove a consumer and free the messages in flight there; return the number of messages.

    Args:
        untouched: by entry, the messages that the consumer never gave to its application.
    """
    opened.view.delete(CONSUMERS, key2(opened.subscription_id, consumer_id))
    return opened.deliveries.release(consumer_id, untouched)


def is_attached(view: ReadView, subscription_id: int, consumer_id: int) -> bool:
    """Whether the consumer is recorded: not closed, evicted, or found dead."""
    return view.has(CONSUMERS, key2(subscription_id, consumer_id))


def check_alone(topic: Topic, subscription: Subscription, living: list[AttachedConsumer]) -> None:
    """Raises:
    SubscriptionBusy: naming the consumers that are attached.
    """
    if living:
        raise SubscriptionBusy(
            f"subscription {subscription.name} of {topic.name} ({subscription.type.value}, {subscription.level.value}) "
            f"has consumers attached: {', '.join(consumer.name for consumer in living[:5])}",
            hint=Hint(
                "Close them, or `{}`.",
                Action("store.admin.subscriptions.evict_consumers", topic.name, subscription.name),
            ),
            topic=topic.full_name,
            subscription=subscription.name,
            attached=[member.name for member in living],
        )


def check_mode(
    topic: Topic, subscription: Subscription, living: list[AttachedConsumer], asked: SubscriptionMode
) -> None:
    """Check that a consumer asking for this type, level and on-open may join the attached consumers.

    Raises:
        SubscriptionBusy: naming both values, and the attached consumers.
    """
    if not living:
        return
    who = ", ".join(f"{consumer.name} ({consumer.owner})" for consumer in living[:3])
    details = {
        "topic": topic.full_name,
        "subscription": subscription.name,
        "attached": [consumer.name for consumer in living],
    }
    compared: tuple[tuple[str, Enum | None, Enum], ...] = (
        ("type", asked.type, subscription.type),
        ("isolation level", asked.level, subscription.level),
        ("on-open", asked.on_open, subscription.on_open),
    )
    for word, value, has in compared:
        if value is not None and value is not has:
            raise SubscriptionBusy(
                f"subscription {subscription.name} of {topic.name} has {word} {has.value}, not {value.value}, "
                f"which cannot change while {who} is attached",
                hint=f"Ask for {has.value}, or close the consumers first.",
                **details,
            )
    if subscription.type is SubscriptionType.EXCLUSIVE:
        raise SubscriptionBusy(
            f"subscription {subscription.name} of {topic.name} is Exclusive and {who} is attached{_stopped(living)}",
            hint=_way_in(topic, subscription, living),
            **details,
        )


def _stopped(living: list[AttachedConsumer]) -> str:
    return ", and stopped" if is_stopped(living[0].owner.pid, living[0].owner.started) else ""


def _way_in(topic: Topic, subscription: Subscription, living: list[AttachedConsumer]) -> str:
    """The hint about the one consumer of an Exclusive subscription."""
    if not _stopped(living):
        return "Wait until it is closed, or use a Shared, Key_Shared or Failover subscription."
    consumer = living[0]
    return Hint(
        "{} lets it go on; `{}` detaches it, and what it held goes to others.",
        Action("resume_process", consumer.owner.pid),
        Action("store.admin.subscriptions.evict_consumers", topic.name, subscription.name, consumer.name),
    )

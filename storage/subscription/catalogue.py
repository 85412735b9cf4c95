"""The catalogue of subscriptions and their consumers: create, find, attach, change.

The type and the isolation level belong to the subscription and are fixed while consumers are attached. A consumer is
attached while the lease of its process is held; a dead one is found by whoever attaches, dispatches or waits next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum

from storage.disk.codec import key1, key2, pack, unpack
from storage.disk.schema import ACKS, AWAITED, CONSUMERS, CURSORS, DELIVERIES, HELD, PENDING, SUBSCRIPTIONS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import AlreadyExists, SubscriptionBusy, SubscriptionNotFound
from storage.process.identity import ProcessIdentity, is_stopped
from storage.subscription import cursor as cursors, delivery as deliveries
from storage.subscription.cursor import Cursor
from storage.subscription.isolation import IsolationLevel, OnOpen, SubscriptionType, bound, check_on_open
from storage.topic.catalogue import Topic
from storage.topic.state import TopicState
from storage.values.names import check_name
from storage.values.position import MessageId


class Subscription:
    """The record of a subscription.

    Attributes:
        on_open: what open transactions do to it; part of the isolation level.
        dead_letter_topic, max_redeliver_count: where a message goes that was redelivered so often; None: nowhere.
        start: where its cursor began; what lies before was never its backlog.
    """

    __slots__ = (
        "created_ms", "dead_letter_topic", "level", "max_redeliver_count", "name", "on_open", "start",
        "subscription_id", "topic_id", "type",
    )  # fmt: skip

    def __init__(self, topic_id: int, name: str, subscription_id: int) -> None:
        self.topic_id = topic_id
        self.name = name
        self.subscription_id = subscription_id
        self.type = SubscriptionType.EXCLUSIVE
        self.level = IsolationLevel.READ_COMMITTED
        self.on_open = OnOpen.BLOCK
        self.created_ms = 0
        self.dead_letter_topic: str | None = None
        self.max_redeliver_count: int | None = None
        self.start: tuple[int, int] = (0, -1)

    @property
    def skips(self) -> bool:
        """READ_COMMITTED that passes over open transactions."""
        return self.on_open is OnOpen.SKIP

    @property
    def keeps_keys(self) -> bool:
        return self.type is SubscriptionType.KEY_SHARED

    def bound(self, head: TopicState) -> tuple[int, int]:
        """The last position that it may be handed."""
        return bound(self.level, head.max_read, head.last_confirmed, self.on_open)

    def encode(self) -> bytes:
        return pack(
            [
                self.subscription_id, self.type.value, self.level.value, self.on_open.value, self.created_ms,
                self.dead_letter_topic, self.max_redeliver_count, self.start,
            ]
        )  # fmt: skip

    @classmethod
    def decode(cls, key: bytes, payload: memoryview) -> Subscription:
        fields = unpack(payload)
        found = cls(int.from_bytes(key[:8], "big"), key[8:].decode("ascii"), fields[0])
        found.type, found.level = SubscriptionType(fields[1]), IsolationLevel(fields[2])
        found.on_open, found.created_ms = OnOpen(fields[3]), fields[4]
        found.dead_letter_topic, found.max_redeliver_count = fields[5:7]
        found.start = tuple(fields[7])
        return found


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
    """The subscription of that name, or None."""
    check_name("subscription name", name)
    key = key1(topic.topic_id) + name.encode("ascii")
    payload = view.get(SUBSCRIPTIONS, key)
    return None if payload is None else Subscription.decode(key, payload)


def get(view: ReadView, topic: Topic, name: str) -> Subscription:
    """Raises:
    SubscriptionNotFound: with the names there are.
    """
    found = find(view, topic, name)
    if found is None:
        names = ", ".join(each.name for each in every(view, topic.topic_id))
        hint = f"It has {names}." if names else "It has none: `txnctl subscriptions create` makes one."
        raise SubscriptionNotFound(
            f"topic {topic.name} has no subscription {name}",
            hint=hint,
            topic=topic.full_name,
            subscription=name,
        )
    return found


def every(view: ReadView, topic_id: int) -> Iterator[Subscription]:
    """The subscriptions of a topic by name."""
    for key, payload in view.scan(SUBSCRIPTIONS, key1(topic_id)):
        yield Subscription.decode(key, payload)


def save(batch: WriteBatch, subscription: Subscription) -> None:
    """Write the record of a subscription."""
    batch.put(
        SUBSCRIPTIONS, key1(subscription.topic_id) + subscription.name.encode("ascii"), subscription.encode()
    )


def create(
    batch: WriteBatch,
    topic: Topic,
    name: str,
    type_: SubscriptionType,
    level: IsolationLevel,
    start: tuple[int, int],
    inside: MessageId | None = None,
    dead_letter_topic: str | None = None,
    max_redeliver_count: int | None = None,
    on_open: OnOpen = OnOpen.BLOCK,
) -> Subscription:
    """A new subscription whose backlog begins after `start`, or at the message `inside` of the entry that follows.

    Raises:
        AlreadyExists, InvalidName
        InvalidValue: the type or level does not go with `on_open`.
    """
    check_on_open(type_, level, on_open)
    if find(batch, topic, name) is not None:
        raise AlreadyExists(
            f"topic {topic.name} has a subscription {name} already", topic=topic.full_name, subscription=name
        )
    batch.superblock.last_subscription += 1
    made = Subscription(topic.topic_id, name, batch.superblock.last_subscription)
    made.type, made.level, made.start, made.created_ms = type_, level, start, batch.now_ms
    made.dead_letter_topic, made.max_redeliver_count, made.on_open = (
        dead_letter_topic,
        max_redeliver_count,
        on_open,
    )
    save(batch, made)
    cursor = Cursor(start)
    if inside is not None:
        cursors.begin_inside(batch, topic.topic_id, made.subscription_id, cursor, inside)
    cursors.save(batch, made.subscription_id, cursor)
    return made


def delete(batch: WriteBatch, subscription: Subscription) -> None:
    """Remove the subscription and all it knows. Nothing of it may be pending, nobody attached."""
    prefix = key1(subscription.subscription_id)
    batch.delete(SUBSCRIPTIONS, key1(subscription.topic_id) + subscription.name.encode("ascii"))
    for database in (CURSORS, ACKS, DELIVERIES, AWAITED, HELD, CONSUMERS, PENDING):
        batch.delete_prefix(database, prefix)


def consumers(view: ReadView, subscription_id: int) -> list[AttachedConsumer]:
    """Recorded consumers, in the order in which they attached; dead ones that nobody noticed yet included."""
    return [
        AttachedConsumer(int.from_bytes(key[8:], "big"), *unpack(payload)[:4])
        for key, payload in view.scan(CONSUMERS, key1(subscription_id))
    ]


def sweep(
    batch: WriteBatch, subscription: Subscription, end_owned: Callable[[WriteBatch, int], None]
) -> list[AttachedConsumer]:
    """Take what dead consumers held; the living ones. The cursor must be loaded after it.

    Args:
        end_owned: ends the transactions of a dead owner's lease, so that what was pending in them is free as well.
    """
    attached = consumers(batch, subscription.subscription_id)
    living = [each for each in attached if batch.lock_file.leases.is_held(each.lease)]
    dead = [each for each in attached if each not in living]
    for lease in {each.lease for each in dead}:
        end_owned(batch, lease)
    if dead:
        cursor = cursors.load(batch, subscription.subscription_id)
        for each in dead:
            detach(batch, subscription, cursor, each.consumer_id, {})
        cursors.save(batch, subscription.subscription_id, cursor)
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


def detach(
    batch: WriteBatch,
    subscription: Subscription,
    cursor: Cursor,
    consumer_id: int,
    untouched: dict[tuple[int, int], int],
) -> int:
    """Remove a consumer and release what it held; how many messages. The caller saves the cursor."""
    batch.delete(CONSUMERS, key2(subscription.subscription_id, consumer_id))
    return deliveries.release(batch, subscription.subscription_id, cursor, consumer_id, untouched)


def is_attached(view: ReadView, subscription_id: int, consumer_id: int) -> bool:
    """Whether the consumer is recorded: not closed, evicted, or found dead."""
    return view.has(CONSUMERS, key2(subscription_id, consumer_id))


def check_alone(topic: Topic, subscription: Subscription, living: list[AttachedConsumer]) -> None:
    """Raises:
    SubscriptionBusy: consumers are attached, which are named.
    """
    if living:
        raise SubscriptionBusy(
            f"subscription {subscription.name} of {topic.name} ({subscription.type.value}, {subscription.level.value}) "
            f"has consumers attached: {', '.join(each.name for each in living[:5])}",
            hint=f"Close them, or `txnctl subscriptions evict {topic.name} {subscription.name}`.",
            topic=topic.full_name,
            subscription=subscription.name,
            attached=[each.name for each in living],
        )


def check_mode(
    topic: Topic,
    subscription: Subscription,
    living: list[AttachedConsumer],
    type_: SubscriptionType | None,
    level: IsolationLevel | None,
    on_open: OnOpen | None = None,
) -> None:
    """That a consumer asking for this type, level and on-open may join those attached.

    Raises:
        SubscriptionBusy: naming both, and who is attached.
    """
    if not living:
        return
    who = ", ".join(f"{each.name} ({each.owner})" for each in living[:3])
    details = {
        "topic": topic.full_name,
        "subscription": subscription.name,
        "attached": [each.name for each in living],
    }
    asked: tuple[tuple[str, Enum | None, Enum], ...] = (
        ("type", type_, subscription.type),
        ("isolation level", level, subscription.level),
        ("on-open", on_open, subscription.on_open),
    )
    for word, wanted, has in asked:
        if wanted is not None and wanted is not has:
            raise SubscriptionBusy(
                f"subscription {subscription.name} of {topic.name} has {word} {has.value}, not {wanted.value}, "
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
    """What to do about the one consumer of an Exclusive subscription."""
    if not _stopped(living):
        return "Wait until it is closed, or use a Shared, Key_Shared or Failover subscription."
    evict = f"txnctl subscriptions evict {topic.name} {subscription.name} {living[0].name}"
    return f"kill -CONT {living[0].owner.pid} lets it go on; `{evict}` detaches it, and what it held goes to others."

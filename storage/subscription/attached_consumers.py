"""Attached consumers of a subscription: their records, which of them live, and which one is active.

A consumer is attached while the lease of its process is held; the next process that attaches, dispatches or waits finds
a dead one. The type and the isolation level of a subscription are fixed while consumers are attached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum
from itertools import islice

from storage.actions import Action, Hint, resume
from storage.disk.codec import key1, key2, pack, unpack_first
from storage.disk.schema import CONSUMERS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import SubscriptionBusy
from storage.limits import CONSUMERS_LOOKED_AT
from storage.process.identity import ProcessIdentity, is_stopped
from storage.process.locks import Locks
from storage.subscription import delivered_window, delivery as deliveries, span
from storage.subscription.delivered_window import UntouchedMessages
from storage.subscription.isolation import SubscriptionMode, SubscriptionType
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.topic.catalogue import Topic
from storage.values.names import check_name
from storage.values.position import Position


class AttachedConsumer:
    """The record of a consumer.

    Attributes:
        reads_compacted: in the process of the consumer alone, whether the compacted view is read; not recorded.
    """

    __slots__ = ("connected_ms", "consumer_id", "lease", "name", "owner_fields", "reads_compacted")

    def __init__(
        self, consumer_id: int, name: str, lease: int, owner_fields: list[object], connected_ms: int
    ) -> None:
        self.consumer_id = consumer_id
        self.name = name
        self.lease = lease
        self.owner_fields = owner_fields
        self.connected_ms = connected_ms
        self.reads_compacted = False

    @property
    def owner(self) -> ProcessIdentity:
        return ProcessIdentity.of(self.owner_fields)


def _recorded(view: ReadView, subscription_id: int, after: int = 0) -> Iterator[AttachedConsumer]:
    """Yield the recorded consumers behind one, in the order of attachment."""
    prefix = key1(subscription_id)
    for key, payload in view.scan(CONSUMERS, prefix, key2(subscription_id, after + 1) if after else None):
        yield AttachedConsumer(int.from_bytes(key[8:], "big"), *unpack_first(payload, 4))


def every(view: ReadView, subscription_id: int) -> list[AttachedConsumer]:
    """The recorded consumers in the order of attachment, dead ones that are not yet removed included."""
    return list(_recorded(view, subscription_id))


def number(opened: OpenSubscription[ReadView]) -> int:
    """The number of recorded consumers, as the cursor counts them; recounted where an earlier release wrote it."""
    if opened.cursor.consumers is None:
        opened.cursor.consumers = sum(1 for _ in opened.view.keys(CONSUMERS, key1(opened.subscription_id)))
    return opened.cursor.consumers


def in_turn(view: ReadView, subscription_id: int, after: int) -> list[AttachedConsumer]:
    """The next consumers to look at behind a consumer, a bounded number; behind the last comes the first."""
    chosen = list(islice(_recorded(view, subscription_id, after), CONSUMERS_LOOKED_AT))
    if len(chosen) < CONSUMERS_LOOKED_AT and after:
        known = {consumer.consumer_id for consumer in chosen}
        first = islice(_recorded(view, subscription_id), CONSUMERS_LOOKED_AT - len(chosen))
        chosen += [consumer for consumer in first if consumer.consumer_id not in known]
    return chosen


def through_active(view: ReadView, locks: Locks, subscription_id: int) -> list[AttachedConsumer]:
    """The consumers up to the first living one, which a Failover subscription delivers to; dead ones before it."""
    chosen = []
    for consumer in _recorded(view, subscription_id):
        chosen.append(consumer)
        if locks.leases.is_held(consumer.lease):
            break
    return chosen


def living(
    view: ReadView, locks: Locks, subscription_id: int, among: Sequence[AttachedConsumer] | None = None
) -> list[AttachedConsumer]:
    """The consumers whose process is alive, in the order of attachment; each process is looked for once.

    Args:
        among: the consumers to look at, if not all.
    """
    consumers = every(view, subscription_id) if among is None else among
    held = {lease for lease in {consumer.lease for consumer in consumers} if locks.leases.is_held(lease)}
    return [consumer for consumer in consumers if consumer.lease in held]


def dead(view: ReadView, locks: Locks, subscription_id: int) -> list[AttachedConsumer]:
    """The consumers whose process is dead, of all that are recorded."""
    consumers = every(view, subscription_id)
    held = {consumer.lease for consumer in living(view, locks, subscription_id, consumers)}
    return [consumer for consumer in consumers if consumer.lease not in held]


def active(consumers: Sequence[AttachedConsumer]) -> AttachedConsumer | None:
    """The consumer of a Failover subscription that receives: of the living consumers the one attached first."""
    return consumers[0] if consumers else None


def sweep(
    batch: WriteBatch,
    subscription: Subscription,
    end_owned: Callable[[WriteBatch, int], None],
    consumers: Sequence[AttachedConsumer] | None = None,
) -> list[AttachedConsumer]:
    """Remove dead consumers and free their messages; return the living consumers.

    Args:
        end_owned: ends the transactions of a dead owner's lease, so that messages pending in them are free as well.
        consumers: the consumers to look at, if not all.
    """
    consumers = every(batch, subscription.subscription_id) if consumers is None else consumers
    alive = living(batch, batch.locks, subscription.subscription_id, consumers)
    held = {consumer.lease for consumer in alive}
    gone = [consumer for consumer in consumers if consumer.lease not in held]
    for lease in {consumer.lease for consumer in gone}:
        end_owned(batch, lease)
    if gone:
        detach(OpenSubscription(batch, subscription), [consumer.consumer_id for consumer in gone])
    return alive


def attach(
    batch: WriteBatch, subscription: Subscription, name: str | None, lease: int, owner: ProcessIdentity
) -> AttachedConsumer:
    """Add a consumer.

    Raises:
        InvalidName
    """
    if name is not None:
        check_name("consumer name", name)
    opened = OpenSubscription(batch, subscription)
    opened.cursor.consumers = number(opened) + 1
    opened.cursor.vacated_ms = None
    batch.superblock.last_consumer += 1
    consumer_id = batch.superblock.last_consumer
    name = name or f"consumer-{consumer_id}"
    consumer = AttachedConsumer(consumer_id, name, lease, owner.fields(), batch.now_ms)
    record = [consumer.name, lease, consumer.owner_fields, consumer.connected_ms]
    batch.put(CONSUMERS, key2(subscription.subscription_id, consumer_id), pack(record))
    return consumer


def note_use(opened: OpenSubscription[WriteBatch]) -> None:
    """Note that a subscription without a consumer is in use now: the last one left, or an operator changed it."""
    if opened.view.first(CONSUMERS, key1(opened.subscription_id)) is None:
        opened.cursor.vacated_ms = opened.view.now_ms


def detach(
    opened: OpenSubscription[WriteBatch],
    consumers: Collection[int],
    untouched: dict[Position, int] | None = None,
) -> int:
    """Remove consumers and free the messages in flight there; return the number of messages.

    Args:
        untouched: by entry, the messages that a consumer never gave to its application, if the consumer tells; None
            for consumers that are dead or evicted, of which their marks tell.
    """
    if not consumers:
        return 0
    left = number(opened)
    for consumer_id in consumers:
        left -= opened.view.delete(CONSUMERS, key2(opened.subscription_id, consumer_id))
    opened.cursor.consumers = left
    if untouched is not None:
        queued, in_spans = untouched, span.by_span(untouched.items())
        released = opened.deliveries.release(
            consumers,
            lambda _, record, __: (in_spans if record.is_span else queued).get(record.at, 0),
            was_received=True,
        )
    else:
        noted = UntouchedMessages(opened)
        released = opened.deliveries.release(consumers, noted.among, was_received=False)
    for consumer_id in consumers:
        delivered_window.remove(opened, consumer_id)
    note_use(opened)
    return released


def is_attached(view: ReadView, subscription_id: int, consumer_id: int) -> bool:
    """Whether the consumer is recorded: not closed, evicted, or found dead."""
    return view.has(CONSUMERS, key2(subscription_id, consumer_id))


def check_alone(topic: Topic, subscription: Subscription, consumers: list[AttachedConsumer]) -> None:
    """Raises:
    SubscriptionBusy: naming the consumers that are attached.
    """
    if consumers:
        raise SubscriptionBusy(
            f"subscription {subscription.name} of {topic.name} ({subscription.type.value}, {subscription.level.value}) "
            f"has consumers attached: {', '.join(consumer.name for consumer in consumers[:5])}",
            hint=Hint(
                "Close them, or `{}`.",
                Action("store.admin.subscriptions.evict_consumers", topic.name, subscription.name),
            ),
            topic=topic.full_name,
            subscription=subscription.name,
            attached=[member.name for member in consumers],
        )


def _compared(
    subscription: Subscription, asked: SubscriptionMode
) -> tuple[tuple[str, Enum | None, Enum], ...]:
    """Type, level and on-open in words, as asked for (None: as it is) and as the subscription has them."""
    return (
        ("type", asked.type, subscription.type),
        ("isolation level", asked.level, subscription.level),
        ("on-open", asked.on_open, subscription.on_open),
    )


def joins_any(subscription: Subscription, asked: SubscriptionMode) -> bool:
    """Whether a consumer that asks so may join any attached ones: it changes nothing, and several may be attached."""
    is_same = all(value in (None, has) for _, value, has in _compared(subscription, asked))
    return is_same and subscription.type is not SubscriptionType.EXCLUSIVE


def check_mode(
    topic: Topic, subscription: Subscription, consumers: list[AttachedConsumer], asked: SubscriptionMode
) -> None:
    """Check that a consumer asking for this type, level and on-open may join the attached consumers.

    Raises:
        SubscriptionBusy: naming both values, and the attached consumers.
    """
    if not consumers:
        return
    who = ", ".join(f"{consumer.name} ({consumer.owner})" for consumer in consumers[:3])
    names = [consumer.name for consumer in consumers]
    for word, value, has in _compared(subscription, asked):
        if value is not None and value is not has:
            raise SubscriptionBusy(
                f"subscription {subscription.name} of {topic.name} has {word} {has.value}, not {value.value}, "
                f"which cannot change while {who} is attached",
                hint=f"Ask for {has.value}, or close the consumers first.",
                topic=topic.full_name,
                subscription=subscription.name,
                attached=names,
            )
    if subscription.type is SubscriptionType.EXCLUSIVE:
        raise SubscriptionBusy(
            f"subscription {subscription.name} of {topic.name} is Exclusive and {who} is attached{_stopped(consumers)}",
            hint=_way_in(topic, subscription, consumers),
            topic=topic.full_name,
            subscription=subscription.name,
            attached=names,
        )


def _stopped(consumers: list[AttachedConsumer]) -> str:
    return ", and stopped" if is_stopped(consumers[0].owner.pid, consumers[0].owner.started) else ""


def _way_in(topic: Topic, subscription: Subscription, consumers: list[AttachedConsumer]) -> str:
    """The hint about the one consumer of an Exclusive subscription."""
    if not _stopped(consumers):
        return "Wait until it is closed, or use a Shared, Key_Shared or Failover subscription."
    consumer = consumers[0]
    return Hint(
        "{} lets it go on; `{}` detaches it, and what it held goes to others.",
        resume(consumer.owner.pid, consumer.owner.host),
        Action("store.admin.subscriptions.evict_consumers", topic.name, subscription.name, consumer.name),
    )


def messages_held(view: ReadView, subscription_id: int) -> Counter[int]:
    """The messages in flight at each consumer, by consumer id."""
    held: Counter[int] = Counter()
    for delivery in deliveries.records(view, subscription_id):
        for part in delivery.parts:
            if part.holder > 0:
                held[part.holder] += part.messages.bit_count()
    return held

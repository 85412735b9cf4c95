"""Pending acknowledgements: a subscription as a participant of transactions.

Invariants: 7 (committed: never delivered again; aborted: pending nowhere and deliverable again) and 20 (a message is
consumed by at most one committed transaction per subscription), which holds because a message is pending in at most
one transaction, and acknowledging an acknowledged or pending message in a transaction is a conflict.
"""

from __future__ import annotations

from storage.actions import Action, Hint, Keyword
from storage.disk.codec import corrupt, decoded, key1, key2, key3, key4, missing, pack, part_key, unpack
from storage.disk.schema import DELIVERIES, PART_SUBSCRIPTION, PENDING, SUBSCRIPTIONS, TXN_PARTS, TXN_PENDING
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidValue, TransactionConflict, TxnctlError
from storage.limits import PENDING_ENTRIES_MAX
from storage.subscription import delivery as deliveries, message_set
from storage.subscription.cursor import Cursor
from storage.subscription.delivered_window import UntouchedMessages
from storage.subscription.delivery import NOBODY, Delivery, DeliveryPart
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.topic.compaction import compacted_view
from storage.txn.participant import SubscriptionEffect, SubscriptionWork
from storage.values.position import MessageId, Position
from storage.values.txn_id import TxnID

Acknowledgement = tuple[Position, int, int]
"""Position of an entry, number of its messages, and the chosen messages."""


class SubscriptionPart:
    """The acknowledgements of one transaction on one subscription.

    Attributes:
        topic_id: of the subscription.
        messages: number of messages acknowledged one by one.
        entries: number of entries with such messages.
        cumulative: the last message of the cumulative acknowledgement (batch index -1: the whole entry), or None.
    """

    __slots__ = ("cumulative", "entries", "messages", "topic_id")

    def __init__(self, topic_id: int) -> None:
        self.topic_id = topic_id
        self.messages = self.entries = 0
        self.cumulative: MessageId | None = None

    @classmethod
    def decode(cls, payload: memoryview) -> SubscriptionPart:
        fields = unpack(payload, 4)
        part = cls(fields[0])
        part.messages, part.entries = fields[1:3]
        part.cumulative = MessageId(*fields[3]) if fields[3] else None
        return part

    def encode(self) -> bytes:
        return pack([self.topic_id, self.messages, self.entries, self.cumulative])


def part_of(view: ReadView, txn: int, subscription: Subscription) -> SubscriptionPart:
    """The acknowledgements of a transaction on a subscription so far."""
    key = part_key(txn, PART_SUBSCRIPTION, subscription.subscription_id)
    payload = view.get(TXN_PARTS, key)
    if payload is None:
        return SubscriptionPart(subscription.topic_id)
    return decoded(TXN_PARTS, key, payload, SubscriptionPart.decode)


def _save_part(batch: WriteBatch, txn: int, subscription: Subscription, part: SubscriptionPart) -> None:
    batch.put(TXN_PARTS, part_key(txn, PART_SUBSCRIPTION, subscription.subscription_id), part.encode())


def holders(opened: OpenSubscription[ReadView], at: Position, count: int, messages: int) -> list[int]:
    """The transactions in which any of these messages of an entry is pending."""
    if not messages:
        return []
    txns = [
        int.from_bytes(key[24:], "big")
        for key, payload in opened.view.scan(PENDING, key3(opened.subscription_id, *at))
        if message_set.decode(payload, count) & messages
    ]
    cumulative = opened.cursor.pending_cumulative
    if cumulative is not None and covers(MessageId(*cumulative[1:4]), at, messages):
        txns.append(cumulative[0])
    return txns


def one_by_one(
    view: ReadView, subscription_id: int, at: Position | None = None
) -> list[tuple[Position, int, bytes]]:
    """The messages pending one by one, of one entry or of all: position, transaction, messages as stored."""
    prefix = key1(subscription_id) if at is None else key3(subscription_id, *at)
    return [
        (
            Position(int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:24], "big")),
            int.from_bytes(key[24:], "big"),
            bytes(payload),
        )
        for key, payload in view.scan(PENDING, prefix)
    ]


def covered(cursor: Cursor, at: Position, count: int) -> int:
    """The messages of an entry that a pending cumulative acknowledgement covers."""
    pending = cursor.pending_cumulative
    if pending is None or at > pending[1:3]:
        return 0
    every = message_set.everything(count)
    return every if at < pending[1:3] or pending[3] < 0 else every & message_set.through(pending[3])


def covers(cumulative: MessageId, at: Position, messages: int) -> bool:
    """Whether a cumulative acknowledgement covers any of these messages of an entry."""
    if at != cumulative[:2]:
        return at < cumulative[:2]
    return cumulative[2] < 0 or bool(messages & message_set.through(cumulative[2]))


def holders_through(opened: OpenSubscription[ReadView], through: MessageId) -> list[int]:
    """The transactions with anything pending up to and including a message (batch index -1: the whole entry)."""
    txns, last, index = set[int](), through.position, through.batch_index
    for key, payload in opened.view.scan(PENDING, key1(opened.subscription_id)):
        at = Position(int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:24], "big"))
        if at > last:
            break
        inside = at < last or index < 0 or not payload
        if inside or int.from_bytes(payload, "big") & message_set.through(index):
            txns.add(int.from_bytes(key[24:], "big"))
    if opened.cursor.pending_cumulative is not None:
        txns.add(opened.cursor.pending_cumulative[0])
    return sorted(txns)


def is_acknowledged_through(opened: OpenSubscription[ReadView], through: MessageId) -> bool:
    """Whether everything up to and including a message is acknowledged: markDeletePosition, or a batch in part."""
    at, index = through.position, through.batch_index
    if at <= opened.cursor.mark_delete:
        return True
    if index < 0 or not opened.acks.is_next(at):
        return False
    return opened.acks.has_all(at, message_set.through(index))


def conflict(subscription: Subscription, what: str, why: str, txn: int | None = None) -> TransactionConflict:
    """The error for a message that cannot be acknowledged now."""
    details: dict[str, str] = {"subscription": subscription.name}
    hint = "It needs no acknowledgement any more."
    if txn is not None:
        details["transaction"] = str(TxnID(txn))
        hint = Hint(
            "Wait for it (`{}`), or end it first with {}.",
            Action("store.reports.wait_for_transaction", TxnID(txn)),
            Keyword("force", True),
        )
    held_by = () if txn is None else (txn,)
    text = f"{what} of subscription {subscription.name} {why}"
    return TransactionConflict(text, hint=hint, held_by=held_by, **details)


def add(
    opened: OpenSubscription[WriteBatch], txn: int, acknowledged: list[Acknowledgement], consumer_id: int
) -> int:
    """Make acknowledgements pending in a transaction; return the number of messages.

    Args:
        consumer_id: the consumer that acknowledges; 0 for an operator.

    Raises:
        TransactionConflict: a message is acknowledged already, or pending in any transaction, this one included.
    """
    batch, subscription, subscription_id = opened.view, opened.subscription, opened.subscription_id
    part = part_of(batch, txn, subscription)
    for at, count, messages in acknowledged:
        what = f"message {at}"
        if opened.acks.of(at, count) & messages:
            raise conflict(subscription, what, "is acknowledged already")
        for holder in holders(opened, at, count, messages):
            raise conflict(
                subscription,
                what,
                f"is pending in transaction {TxnID(holder)}",
                holder if holder != txn else None,
            )
        key = key4(subscription_id, *at, txn)
        before = batch.get(PENDING, key)
        part.entries += before is None
        both = messages | (message_set.decode(before, count) if before is not None else 0)
        batch.put(PENDING, key, message_set.encode(both, count))
        batch.put(TXN_PENDING, key4(txn, subscription_id, *at), b"")
        _hold(opened, (at, count, messages), consumer_id)
        part.messages += messages.bit_count()
    if part.entries > PENDING_ENTRIES_MAX:
        raise InvalidValue(
            f"a transaction acknowledges messages of at most {PENDING_ENTRIES_MAX:,} entries one by one",
            hint="Acknowledge cumulatively, or commit more often.",
        )
    _save_part(batch, txn, subscription, part)
    return sum(messages.bit_count() for _, _, messages in acknowledged)


def _hold(opened: OpenSubscription[WriteBatch], acknowledged: Acknowledgement, consumer_id: int) -> None:
    """Take pending messages from their holders, so that no consumer receives them."""
    at, count, messages = acknowledged
    delivery = opened.deliveries.find(at) or Delivery(at, count, [])
    new = messages & ~delivery.known()
    cut = delivery.take(messages)
    opened.deliveries.note_taken(cut, consumer_id)
    for part in cut:
        delivery.give(DeliveryPart(part.messages, deliveries.PENDING, part.times))
    if new:
        delivery.give(DeliveryPart(new, deliveries.PENDING, 0))
    opened.deliveries.put(delivery)


def add_cumulative(
    opened: OpenSubscription[WriteBatch], txn: int, through: MessageId, consumer_id: int
) -> None:
    """Make a cumulative acknowledgement pending; it absorbs pending messages of the same transaction below.

    Nothing becomes pending where every message of the range is acknowledged already.

    Raises:
        TransactionConflict: `through` is at or below markDeletePosition or the transaction's earlier cumulative
            acknowledgement, or a different transaction has something pending in the range.
    """
    batch, subscription, cursor = opened.view, opened.subscription, opened.cursor
    subscription_id, last = opened.subscription_id, through.position
    what = f"message {last}"
    if last <= cursor.mark_delete:
        raise conflict(subscription, what, "is at or below markDeletePosition")
    earlier = cursor.pending_cumulative
    if earlier is not None and earlier[0] == txn and _order(through) <= _order(MessageId(*earlier[1:4])):
        raise conflict(subscription, what, f"is pending in transaction {TxnID(txn)} already")
    for holder in holders_through(opened, through):
        if holder != txn:
            raise conflict(
                subscription, what, f"covers what is pending in transaction {TxnID(holder)}", holder
            )
    if is_acknowledged_through(opened, through):
        return
    part = part_of(batch, txn, subscription)
    for at, messages in _all_pending(batch, txn, subscription_id, part):
        if at < last or (at == last and through.batch_index < 0):
            _drop(batch, txn, subscription_id, at)
            part.entries -= 1
            part.messages -= messages.bit_count() if messages else _count_of(opened, at)
    _hold_through(opened, through, consumer_id)
    part.cumulative = through
    cursor.pending_cumulative = (txn, *through)
    _save_part(batch, txn, subscription, part)


def _hold_through(opened: OpenSubscription[WriteBatch], through: MessageId, consumer_id: int) -> None:
    """Take the delivered messages up to a pending cumulative acknowledgement from their holders."""
    last = through.position
    for delivery in list(opened.deliveries.scan()):
        if delivery.at > last:
            break
        inside = message_set.everything(delivery.count)
        if delivery.at == last and through.batch_index >= 0:
            inside &= message_set.through(through.batch_index)
        taken = delivery.take(inside)
        opened.deliveries.note_taken(taken, consumer_id)
        for part in taken:
            delivery.give(DeliveryPart(part.messages, deliveries.PENDING, part.times))
        opened.deliveries.put(delivery)


def _order(through: MessageId) -> tuple[int, int, float]:
    """The order of cumulative acknowledgements: a whole entry comes after each message in it."""
    return (through[0], through[1], through[2] if through[2] >= 0 else float("inf"))


def _count_of(opened: OpenSubscription[ReadView], at: Position) -> int:
    delivery = opened.deliveries.find(at)
    return delivery.count if delivery else 1


def _pending_of(view: ReadView, txn: int, subscription_id: int) -> list[tuple[Position, int]]:
    """The messages of a transaction pending one by one: position and messages, 0 for all of an entry.

    Raises:
        CorruptStore: a pending message is found by transaction, and not by position.
    """
    pending = []
    for key in view.keys(TXN_PENDING, key2(txn, subscription_id)):
        at = Position(int.from_bytes(key[16:24], "big"), int.from_bytes(key[24:], "big"))
        by_position = key4(subscription_id, *at, txn)
        payload = view.get(PENDING, by_position)
        if payload is None:
            raise missing(PENDING, by_position)
        pending.append((at, int.from_bytes(payload, "big")))
    return pending


def _all_pending(
    view: ReadView, txn: int, subscription_id: int, part: SubscriptionPart
) -> list[tuple[Position, int]]:
    """The same for an open transaction, which counts its entries.

    Raises:
        CorruptStore: a pending message is missing.
    """
    pending = _pending_of(view, txn, subscription_id)
    if len(pending) != part.entries:
        why = f"{len(pending)} entries with pending messages are found; the transaction has {part.entries}"
        raise corrupt(TXN_PENDING, key2(txn, subscription_id), why)
    return pending


def _drop(batch: WriteBatch, txn: int, subscription_id: int, at: Position) -> None:
    batch.delete(PENDING, key4(subscription_id, *at, txn))
    batch.delete(TXN_PENDING, key4(txn, subscription_id, *at))


def _find_subscription(view: ReadView, topic_id: int, subscription_id: int) -> Subscription | None:
    for key, payload in view.scan(SUBSCRIPTIONS, key1(topic_id)):
        subscription = Subscription.decode(key, payload)
        if subscription.subscription_id == subscription_id:
            return subscription
    return None


def _held_delivery(opened: OpenSubscription[WriteBatch], at: Position, messages: int) -> Delivery:
    """The delivery of an entry with pending messages.

    Raises:
        CorruptStore: the delivery is missing, or has no such messages.
    """
    delivery, key = opened.deliveries.find(at), key3(opened.subscription_id, *at)
    if delivery is None:
        raise missing(DELIVERIES, key)
    if messages > message_set.everything(delivery.count):
        raise corrupt(PENDING, key, f"it has messages that an entry of {delivery.count} has not")
    return delivery


class PendingAcks:
    """A subscription as a participant of the coordinator."""

    kind = PART_SUBSCRIPTION

    def refusal(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TxnctlError | None:  # noqa: ARG002
        """A pending acknowledgement was checked when made, and stays until its transaction ends: nothing forbids it."""
        return None

    def decide(
        self, batch: WriteBatch, txn: int, object_id: int, part: memoryview, committed: bool
    ) -> SubscriptionEffect:
        """Apply all acknowledgements of the transaction, or release all."""
        pending = SubscriptionPart.decode(part)
        subscription = _find_subscription(batch, pending.topic_id, object_id)
        if subscription is None:
            # A subscription with pending acknowledgements is not deleted.
            raise corrupt(SUBSCRIPTIONS, key1(pending.topic_id), f"subscription {object_id} is not there")
        opened = OpenSubscription(batch, subscription)
        before = opened.cursor.mark_delete
        if committed:
            self._apply(opened, txn, pending)
        else:
            self._release(opened, txn, pending)
        opened.acks.advance()
        return SubscriptionEffect(
            pending.topic_id, opened.subscription.name, pending.messages,
            pending.cumulative.position if pending.cumulative else None, before, opened.cursor.mark_delete,
        )  # fmt: skip

    def _apply(self, opened: OpenSubscription[WriteBatch], txn: int, pending: SubscriptionPart) -> None:
        batch, subscription_id = opened.view, opened.subscription_id
        for at, messages in _all_pending(batch, txn, subscription_id, pending):
            delivery = _held_delivery(opened, at, messages)
            acknowledged = messages or message_set.everything(delivery.count)
            _drop(batch, txn, subscription_id, at)
            opened.deliveries.settle(at, acknowledged)
            opened.acks.acknowledge(at, delivery.count, acknowledged)
        if pending.cumulative is not None:
            opened.cursor.pending_cumulative = None
            acknowledge_cumulative(opened, pending.cumulative)

    def _release(self, opened: OpenSubscription[WriteBatch], txn: int, pending: SubscriptionPart) -> None:
        batch, subscription_id, cursor = opened.view, opened.subscription_id, opened.cursor
        first: tuple[Position, int] | None = None
        is_ordered = opened.subscription.type.is_ordered
        for at, messages in _all_pending(batch, txn, subscription_id, pending):
            _drop(batch, txn, subscription_id, at)
            delivery = _held_delivery(opened, at, messages)
            released = messages or message_set.everything(delivery.count)
            first = min(first or (at, released), (at, released))
            for cut in delivery.take(released):
                delivery.give(DeliveryPart(cut.messages, NOBODY, cut.times, recalled=is_ordered))
            opened.deliveries.put(delivery)
        if pending.cumulative is not None:
            cursor.pending_cumulative = None
            if pending.cumulative.position > cursor.read:
                cursor.recalled = pending.cumulative.position
            cursor.read = cursor.mark_delete
            recall(opened, cursor.mark_delete, -1)
        elif first is not None and is_ordered:
            # In the entry of the first released message, the messages before it stay in flight.
            recall(opened, first[0], -(first[1] & -first[1]))

    def describe(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> SubscriptionWork:
        """Subscription, and the pending messages."""
        pending = SubscriptionPart.decode(part)
        subscription = _find_subscription(view, pending.topic_id, object_id)
        name = f"(deleted, {object_id})" if subscription is None else subscription.name
        positions = [] if subscription is None else [at for at, _ in _pending_of(view, txn, object_id)[:100]]
        cumulative = pending.cumulative.position if pending.cumulative else None
        return SubscriptionWork(pending.topic_id, name, pending.messages, cumulative, positions)


def recall(opened: OpenSubscription[WriteBatch], first: Position, inside: int) -> None:
    """Restart delivery at a message that is free again: recall the messages in flight or held back from there on.

    Args:
        inside: the messages of the entry at `first` to recall; of later entries, all.
    """
    opened.cursor.generation += 1
    untouched = UntouchedMessages(opened)
    for delivery in list(opened.deliveries.scan(first)):
        still_pending = 0
        for _, _, messages in one_by_one(opened.view, opened.subscription_id, delivery.at):
            still_pending |= message_set.decode(messages, delivery.count)
        taken = (inside if delivery.at == first else -1) & ~still_pending
        for cut in untouched.uncount(delivery.at, delivery.take(taken)):
            due_ns = cut.due_ns if cut.holder == NOBODY else 0
            delivery.give(DeliveryPart(cut.messages, NOBODY, cut.times, due_ns, recalled=True))
        opened.deliveries.put(delivery)


def acknowledge_cumulative(
    opened: OpenSubscription[WriteBatch], through: MessageId, consumer_id: int = NOBODY
) -> None:
    """Acknowledge everything up to and including a message, for good. `Acks.advance` follows."""
    at, index = through.position, through.batch_index
    if index < 0:
        opened.deliveries.settle_through(at, consumer_id)
        opened.acks.acknowledge_through(at)
        return
    before = Position(at[0], at[1] - 1)
    opened.deliveries.settle_through(before, consumer_id)
    opened.acks.acknowledge_through(before)
    delivery = opened.deliveries.find(at)
    # A message in flight may have left the compacted view, which was all that had it.
    holder = delivery or compacted_view.stored_anywhere(opened.view, opened.topic_id, at)
    messages = message_set.through(index)
    opened.deliveries.settle(at, messages, consumer_id)
    opened.acks.acknowledge(at, holder.count, messages)

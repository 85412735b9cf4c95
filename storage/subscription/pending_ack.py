"""Acknowledgements that wait for their transaction, and a subscription's part in one.

Invariants: 7 (committed: never delivered again; aborted: pending nowhere and deliverable again) and 20 (a message is
consumed by at most one committed transaction per subscription), which holds because a message is pending in at most
one transaction and one that is acknowledged or pending is a conflict for every other.
"""

from __future__ import annotations

from typing import Any

from storage.disk.codec import key1, key2, key3, key4, pack, part_key, unpack
from storage.disk.schema import PART_SUBSCRIPTION, PENDING, SUBSCRIPTIONS, TXN_PARTS, TXN_PENDING
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidValue, TransactionConflict, TxnctlError
from storage.limits import PENDING_ENTRIES_MAX
from storage.subscription import cursor as cursors, delivery as deliveries, message_set
from storage.subscription.catalogue import Subscription
from storage.subscription.cursor import Cursor
from storage.subscription.delivery import NOBODY, Delivery, Part
from storage.topic import log
from storage.txn.participant import SubscriptionEffect, SubscriptionWork
from storage.values.position import Position
from storage.values.txn_id import TxnID


class SubscriptionPart:
    """What one transaction acknowledged on one subscription.

    Attributes:
        topic_id: of the subscription.
        messages: acknowledged one by one.
        entries: with such messages.
        cumulative: ledger, entry, batch index (-1 whole entry), or None.
    """

    __slots__ = ("cumulative", "entries", "messages", "topic_id")

    def __init__(self, topic_id: int) -> None:
        self.topic_id = topic_id
        self.messages = self.entries = 0
        self.cumulative: tuple[int, int, int] | None = None

    @classmethod
    def decode(cls, payload: memoryview) -> SubscriptionPart:
        fields = unpack(payload)
        part = cls(fields[0])
        part.messages, part.entries = fields[1:3]
        part.cumulative = tuple(fields[3]) if fields[3] else None
        return part

    def encode(self) -> bytes:
        return pack([self.topic_id, self.messages, self.entries, self.cumulative])


def part_of(view: ReadView, txn: int, subscription: Subscription) -> SubscriptionPart:
    """What a transaction acknowledged on a subscription so far."""
    payload = view.get(TXN_PARTS, part_key(txn, PART_SUBSCRIPTION, subscription.subscription_id))
    return SubscriptionPart(subscription.topic_id) if payload is None else SubscriptionPart.decode(payload)


def _save_part(batch: WriteBatch, txn: int, subscription: Subscription, part: SubscriptionPart) -> None:
    batch.put(TXN_PARTS, part_key(txn, PART_SUBSCRIPTION, subscription.subscription_id), part.encode())


def holders(
    view: ReadView, subscription_id: int, cursor: Cursor, at: tuple[int, int], count: int, messages: int
) -> list[int]:
    """The transactions in which any of these messages of an entry is pending."""
    if not messages:
        return []
    found = [
        int.from_bytes(key[24:], "big")
        for key, payload in view.scan(PENDING, key3(subscription_id, *at))
        if message_set.decode(payload, count) & messages
    ]
    cumulative = cursor.pending_cumulative
    if cumulative is not None and covers(cumulative[1:4], at, messages):
        found.append(cumulative[0])
    return found


def one_by_one(
    view: ReadView, subscription_id: int, at: tuple[int, int] | None = None
) -> list[tuple[Position, int, bytes]]:
    """What is pending one by one, of one entry or of all: position, transaction, messages as stored."""
    prefix = key1(subscription_id) if at is None else key3(subscription_id, *at)
    return [
        (
            Position(int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:24], "big")),
            int.from_bytes(key[24:], "big"),
            bytes(payload),
        )
        for key, payload in view.scan(PENDING, prefix)
    ]


def covered(cursor: Cursor, at: tuple[int, int], count: int) -> int:
    """The messages of an entry that a pending cumulative acknowledgement covers."""
    pending = cursor.pending_cumulative
    if pending is None or at > pending[1:3]:
        return 0
    every = message_set.everything(count)
    return every if at < pending[1:3] or pending[3] < 0 else every & message_set.through(pending[3])


def covers(cumulative: tuple[int, int, int], at: tuple[int, int], messages: int) -> bool:
    """Whether a cumulative acknowledgement covers any of these messages of an entry."""
    if at != cumulative[:2]:
        return at < cumulative[:2]
    return cumulative[2] < 0 or bool(messages & message_set.through(cumulative[2]))


def holders_through(
    view: ReadView, subscription_id: int, cursor: Cursor, through: tuple[int, int, int]
) -> list[int]:
    """The transactions with anything pending up to and including a message (batch index -1: the whole entry)."""
    found = []
    for key, payload in view.scan(PENDING, key1(subscription_id)):
        at = (int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:24], "big"))
        if at > through[:2]:
            break
        inside = at < through[:2] or through[2] < 0 or not payload
        if inside or int.from_bytes(payload, "big") & message_set.through(through[2]):
            found.append(int.from_bytes(key[24:], "big"))
    if cursor.pending_cumulative is not None:
        found.append(cursor.pending_cumulative[0])
    return sorted(set(found))


def conflict(subscription: Subscription, what: str, why: str, txn: int | None = None) -> TransactionConflict:
    """The error for a message that cannot be acknowledged now."""
    details: dict[str, Any] = {"subscription": subscription.name}
    hint = "It needs no acknowledgement any more."
    if txn is not None:
        details["transaction"] = str(TxnID(txn))
        hint = f"Wait for it (`txnctl transactions wait {TxnID(txn)}`), or end it first with --force."
    return TransactionConflict(f"{what} of subscription {subscription.name} {why}", hint=hint, **details)


def add(
    batch: WriteBatch,
    subscription: Subscription,
    cursor: Cursor,
    txn: int,
    items: list[tuple[tuple[int, int], int, int]],
    by: int,
) -> int:
    """Make acknowledgements pending; how many messages. The caller saves the cursor.

    Args:
        items: position, count and messages of each entry.
        by: the consumer that acknowledges; 0 from outside.

    Raises:
        TransactionConflict: one is acknowledged already, or pending in any transaction, this one too.
    """
    subscription_id = subscription.subscription_id
    part = part_of(batch, txn, subscription)
    for at, count, messages in items:
        what = f"message {Position(*at)}"
        if cursors.acknowledged(batch, subscription_id, cursor, at, count) & messages:
            raise conflict(subscription, what, "is acknowledged already")
        for holder in holders(batch, subscription_id, cursor, at, count, messages):
            raise conflict(subscription, what, f"is pending in transaction {TxnID(holder)}", holder)
        key = key4(subscription_id, *at, txn)
        before = batch.get(PENDING, key)
        part.entries += before is None
        both = messages | (message_set.decode(before, count) if before is not None else 0)
        batch.put(PENDING, key, message_set.encode(both, count))
        batch.put(TXN_PENDING, key4(txn, subscription_id, *at), b"")
        _hold(batch, subscription_id, cursor, at, count, messages, by)
        part.messages += messages.bit_count()
    if part.entries > PENDING_ENTRIES_MAX:
        raise InvalidValue(
            f"a transaction acknowledges messages of at most {PENDING_ENTRIES_MAX:,} entries one by one",
            hint="Acknowledge cumulatively, or commit more often.",
        )
    _save_part(batch, txn, subscription, part)
    return sum(messages.bit_count() for _, _, messages in items)


def _hold(
    batch: WriteBatch,
    subscription_id: int,
    cursor: Cursor,
    at: tuple[int, int],
    count: int,
    messages: int,
    by: int,
) -> None:
    """Pending messages go to nobody."""
    delivery = deliveries.find(batch, subscription_id, at) or Delivery(at, count, [])
    new = messages & ~delivery.known()
    cut = delivery.take(messages)
    deliveries.note_taken(cursor, cut, by)
    for part in cut:
        delivery.give(Part(part.messages, deliveries.PENDING, part.times))
    if new:
        delivery.give(Part(new, deliveries.PENDING, 0))
    deliveries.save(batch, subscription_id, cursor, delivery)


def add_cumulative(
    batch: WriteBatch,
    subscription: Subscription,
    cursor: Cursor,
    txn: int,
    through: tuple[int, int, int],
    by: int,
) -> None:
    """Make a cumulative acknowledgement pending; it moves up, and absorbs what this transaction had pending below.

    Raises:
        TransactionConflict: at or below markDeletePosition or its own earlier position, or another transaction has
            something pending in its range.
    """
    subscription_id = subscription.subscription_id
    what = f"message {Position(*through[:2])}"
    if through[:2] <= cursor.mark_delete:
        raise conflict(subscription, what, "is at or below markDeletePosition")
    earlier = cursor.pending_cumulative
    if earlier is not None and earlier[0] == txn and _order(through) <= _order(earlier[1:4]):
        raise conflict(subscription, what, f"is pending in transaction {TxnID(txn)} already", txn)
    for holder in holders_through(batch, subscription_id, cursor, through):
        if holder != txn:
            raise conflict(
                subscription, what, f"covers what is pending in transaction {TxnID(holder)}", holder
            )
    part = part_of(batch, txn, subscription)
    for at, messages in _pending_of(batch, txn, subscription_id):
        if at < through[:2] or (at == through[:2] and through[2] < 0):
            _drop(batch, txn, subscription_id, at)
            part.entries -= 1
            part.messages -= messages.bit_count() if messages else _count_of(batch, subscription_id, at)
    for found in list(deliveries.every(batch, subscription_id)):
        if found.at > through[:2]:
            break
        inside = message_set.everything(found.count)
        if found.at == through[:2] and through[2] >= 0:
            inside &= message_set.through(through[2])
        taken = found.take(inside)
        deliveries.note_taken(cursor, taken, by)
        for cut in taken:
            found.give(Part(cut.messages, deliveries.PENDING, cut.times))
        deliveries.save(batch, subscription_id, cursor, found)
    part.cumulative = through
    cursor.pending_cumulative = (txn, *through)
    _save_part(batch, txn, subscription, part)


def _order(through: tuple[int, int, int]) -> tuple[int, int, float]:
    """Cumulative acknowledgements in order: a whole entry comes after each message in it."""
    return (through[0], through[1], through[2] if through[2] >= 0 else float("inf"))


def _count_of(view: ReadView, subscription_id: int, at: tuple[int, int]) -> int:
    found = deliveries.find(view, subscription_id, at)
    return found.count if found else 1


def _pending_of(view: ReadView, txn: int, subscription_id: int) -> list[tuple[tuple[int, int], int]]:
    """What a transaction has pending one by one: position and messages, 0 for all of an entry."""
    found = []
    for key in view.keys(TXN_PENDING, key2(txn, subscription_id)):
        at = (int.from_bytes(key[16:24], "big"), int.from_bytes(key[24:], "big"))
        payload = view.get(PENDING, key4(subscription_id, *at, txn))
        assert payload is not None, "what is pending is found both ways"
        found.append((at, int.from_bytes(payload, "big")))
    return found


def _drop(batch: WriteBatch, txn: int, subscription_id: int, at: tuple[int, int]) -> None:
    batch.delete(PENDING, key4(subscription_id, *at, txn))
    batch.delete(TXN_PENDING, key4(txn, subscription_id, *at))


def _find_subscription(view: ReadView, topic_id: int, subscription_id: int) -> Subscription:
    for key, payload in view.scan(SUBSCRIPTIONS, key1(topic_id)):
        found = Subscription.decode(key, payload)
        if found.subscription_id == subscription_id:
            return found
    raise AssertionError("a subscription with something pending is not deleted")


class PendingAcks:
    """A subscription as a participant of the coordinator."""

    kind = PART_SUBSCRIPTION

    def refusal(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TxnctlError | None:  # noqa: ARG002
        """A pending acknowledgement was checked when it was made; nothing takes it away but its transaction's end."""
        return None

    def decide(
        self, batch: WriteBatch, txn: int, object_id: int, part: memoryview, committed: bool
    ) -> SubscriptionEffect:
        """Apply all acknowledgements of the transaction, or release all."""
        mine = SubscriptionPart.decode(part)
        subscription = _find_subscription(batch, mine.topic_id, object_id)
        cursor = cursors.load(batch, object_id)
        before = cursor.mark_delete
        if committed:
            self._apply(batch, subscription, cursor, txn, mine)
        else:
            self._release(batch, subscription, cursor, txn, mine)
        cursors.advance(batch, mine.topic_id, object_id, cursor)
        cursors.save(batch, object_id, cursor)
        return SubscriptionEffect(
            mine.topic_id, subscription.name, mine.messages,
            Position(*mine.cumulative[:2]) if mine.cumulative else None,
            Position(*before), Position(*cursor.mark_delete),
        )  # fmt: skip

    def _apply(
        self, batch: WriteBatch, subscription: Subscription, cursor: Cursor, txn: int, mine: SubscriptionPart
    ) -> None:
        subscription_id = subscription.subscription_id
        for at, messages in _pending_of(batch, txn, subscription_id):
            delivery = deliveries.find(batch, subscription_id, at)
            assert delivery is not None, "a pending message has a delivery"
            mine_here = messages or message_set.everything(delivery.count)
            _drop(batch, txn, subscription_id, at)
            deliveries.settle(batch, subscription_id, cursor, at, mine_here)
            cursors.acknowledge(
                batch, subscription.topic_id, subscription_id, cursor, at, delivery.count, mine_here
            )
        if mine.cumulative is not None:
            cursor.pending_cumulative = None
            acknowledge_cumulative(batch, subscription, cursor, mine.cumulative)

    def _release(
        self, batch: WriteBatch, subscription: Subscription, cursor: Cursor, txn: int, mine: SubscriptionPart
    ) -> None:
        subscription_id = subscription.subscription_id
        first: tuple[tuple[int, int], int] | None = None
        is_ordered = subscription.type.is_ordered
        for at, messages in _pending_of(batch, txn, subscription_id):
            _drop(batch, txn, subscription_id, at)
            found = deliveries.find(batch, subscription_id, at)
            assert found is not None, "a pending message has a delivery"
            released = messages or message_set.everything(found.count)
            first = min(first or (at, released), (at, released))
            for cut in found.take(released):
                found.give(Part(cut.messages, NOBODY, cut.times, recalled=is_ordered))
            deliveries.save(batch, subscription_id, cursor, found)
        if mine.cumulative is not None:
            cursor.pending_cumulative = None
            if mine.cumulative[:2] > cursor.read:
                cursor.recalled = mine.cumulative[:2]
            cursor.read = cursor.mark_delete
            self._withdraw(batch, subscription_id, cursor, cursor.mark_delete, -1)
        elif first is not None and is_ordered:
            # In the entry of the first released message, what comes before it stays where it is.
            self._withdraw(batch, subscription_id, cursor, first[0], -(first[1] & -first[1]))

    def _withdraw(
        self, batch: WriteBatch, subscription_id: int, cursor: Cursor, first: tuple[int, int], inside: int
    ) -> None:
        """Delivery restarts at the first released message: what is in flight, or held for it, is taken back.

        Args:
            inside: messages of the entry at `first` that are meant; of the entries after it, all.
        """
        cursor.generation += 1
        for found in list(deliveries.every(batch, subscription_id, first)):
            still_pending = 0
            for _, _, messages in one_by_one(batch, subscription_id, found.at):
                still_pending |= message_set.decode(messages, found.count)
            taken = (inside if found.at == first else -1) & ~still_pending
            for cut in found.take(taken):
                due_ns = cut.due_ns if cut.holder == NOBODY else 0
                found.give(Part(cut.messages, NOBODY, cut.times, due_ns, recalled=True))
            deliveries.save(batch, subscription_id, cursor, found)

    def describe(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> SubscriptionWork:
        """Pending acknowledgements on a subscription."""
        mine = SubscriptionPart.decode(part)
        try:
            name = _find_subscription(view, mine.topic_id, object_id).name
        except AssertionError:
            name = f"(deleted, {object_id})"
        is_there = view.has(SUBSCRIPTIONS, key1(mine.topic_id) + name.encode())
        positions = [Position(*at) for at, _ in _pending_of(view, txn, object_id)[:100]] if is_there else []
        cumulative = Position(*mine.cumulative[:2]) if mine.cumulative else None
        return SubscriptionWork(mine.topic_id, name, mine.messages, cumulative, positions)


def acknowledge_cumulative(
    batch: WriteBatch,
    subscription: Subscription,
    cursor: Cursor,
    through: tuple[int, int, int],
    by: int = NOBODY,
) -> None:
    """Acknowledge everything up to and including a message, for good. The caller advances and saves the cursor."""
    subscription_id, topic_id = subscription.subscription_id, subscription.topic_id
    at, index = through[:2], through[2]
    if index < 0:
        deliveries.settle_through(batch, subscription_id, cursor, at, by)
        cursors.acknowledge_through(batch, subscription_id, cursor, at)
        return
    before = (at[0], at[1] - 1)
    deliveries.settle_through(batch, subscription_id, cursor, before, by)
    cursors.acknowledge_through(batch, subscription_id, cursor, before)
    entry = log.read(batch, topic_id, at)
    assert entry is not None, "what is acknowledged exists"
    messages = message_set.through(index)
    deliveries.settle(batch, subscription_id, cursor, at, messages, by)
    cursors.acknowledge(batch, topic_id, subscription_id, cursor, at, entry.count, messages)

"""Pending acknowledgements: a subscription as a participant of transactions.

Invariants: 7 (committed: never delivered again; aborted: pending nowhere and deliverable again) and 20 (a message is
consumed by at most one committed transaction per subscription), which holds because a message is pending in at most
one transaction, and acknowledging an acknowledged or pending message in a transaction is a conflict.
"""

from __future__ import annotations

from storage.actions import Action, Hint, Keyword
from storage.disk.codec import corrupt, decoded, key2, pack, part_key, unpack
from storage.disk.schema import PART_SUBSCRIPTION, TXN_PARTS, TXN_PENDING
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidValue, TransactionConflict
from storage.limits import PENDING_ENTRIES_MAX
from storage.subscription import delivery as deliveries, message_set, pending_records, span
from storage.subscription.cursor import Cursor
from storage.subscription.delivered_window import UntouchedMessages
from storage.subscription.delivery import NOBODY, Delivery, DeliveryPart
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.pending_records import PendingRecord
from storage.subscription.subscription import Subscription
from storage.topic.compaction import compacted_view
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
    delivery, txns = opened.deliveries.find(at), list[int]()
    held = delivery.of(deliveries.PENDING) & messages if delivery is not None else 0
    if held:
        pending = pending_records.of_entry(opened.view, opened.subscription_id, at)
        txns = [txn for txn, stored in pending if message_set.decode(stored, count) & held]
    cumulative = opened.cursor.pending_cumulative
    if cumulative is not None and covers(MessageId(*cumulative[1:4]), at, messages):
        txns.append(cumulative[0])
    return txns


def covered(cursor: Cursor, at: Position, count: int) -> int:
    """The messages of an entry that a pending cumulative acknowledgement covers."""
    pending = cursor.pending_cumulative
    if pending is None or at > pending[1:3]:
        return 0
    every = message_set.everything(count)
    return every if at < pending[1:3] or pending[3] < 0 else every & message_set.through(pending[3])


def covered_of(cursor: Cursor, delivery: Delivery) -> int:
    """The messages of a delivery that a pending cumulative acknowledgement covers."""
    pending = cursor.pending_cumulative
    if pending is None:
        return 0
    return delivery.through(Position(*pending[1:3]), messages_through(MessageId(*pending[1:4])))


def messages_through(through: MessageId) -> int:
    """Of the entry of a message, the messages up to and including it (batch index -1: all)."""
    return -1 if through.batch_index < 0 else message_set.through(through.batch_index)


def covers(cumulative: MessageId, at: Position, messages: int) -> bool:
    """Whether a cumulative acknowledgement covers any of these messages of an entry."""
    if at != cumulative[:2]:
        return at < cumulative[:2]
    return cumulative[2] < 0 or bool(messages & message_set.through(cumulative[2]))


def holders_through(
    opened: OpenSubscription[ReadView], through: MessageId, records_max: int | None = None
) -> list[int]:
    """The transactions with anything pending up to and including a message (batch index -1: the whole entry).

    Args:
        records_max: records to look at, at most; then the list has a transaction if there is any, and may lack others.
    """
    txns = set[int]()
    if opened.cursor.pending_cumulative is not None:
        txns.add(opened.cursor.pending_cumulative[0])
    records = pending_records.through(opened.view, opened.subscription_id, through.position)
    for number, record in enumerate(records):
        if number == records_max and txns:
            break
        if record.txn not in txns and _is_through(record, through):
            txns.add(record.txn)
    return sorted(txns)


def is_any_through(opened: OpenSubscription[ReadView], last: Position) -> bool:
    """Whether anything is pending up to and including an entry."""
    return bool(holders_through(opened, MessageId(*last), 1))


def holds_through(opened: OpenSubscription[ReadView], txn: int, last: Position) -> bool:
    """Whether a transaction has anything pending up to and including an entry."""
    cumulative = opened.cursor.pending_cumulative
    if cumulative is not None and cumulative[0] == txn:
        return True
    records = pending_records.first_of_transaction(opened.view, txn, opened.subscription_id)
    return any(_is_through(record, MessageId(*last)) for record in records)


def _is_through(record: PendingRecord, through: MessageId) -> bool:
    """Whether a record has messages up to and including a message."""
    last = through.position
    if record.is_span:
        return bool(record.messages(0) & span.through(record.at, last, messages_through(through)))
    return record.at < last or (
        record.at == last and message_set.has_any(record.stored, messages_through(through))
    )


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
    opened: OpenSubscription[WriteBatch],
    txn: int,
    acknowledged: list[Acknowledgement],
    in_flight: list[tuple[Delivery, int]],
    consumer_id: int,
) -> int:
    """Make acknowledgements pending in a transaction; return the number of messages.

    Args:
        in_flight: further messages, in flight, of records of spans.
        consumer_id: the consumer that acknowledges; 0 for an operator.

    Raises:
        TransactionConflict: a message is acknowledged already, or pending in any transaction, this one included.
    """
    batch, subscription, subscription_id = opened.view, opened.subscription, opened.subscription_id
    part, in_spans = part_of(batch, txn, subscription), dict[Position, int]()
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
        if span.fits(count):
            first = span.first_of(at)
            in_spans[first] = in_spans.get(first, 0) | span.place(at, messages)
        else:
            part.entries += pending_records.add(batch, subscription_id, txn, at, count, messages)
        _hold(opened, (at, count, messages), consumer_id)
        part.messages += messages.bit_count()
    for delivery, messages in in_flight:
        _hold_taken(opened, delivery, messages, consumer_id)
        in_spans[delivery.at] = in_spans.get(delivery.at, 0) | messages
        part.messages += messages.bit_count()
    for first, messages in in_spans.items():
        part.entries += pending_records.add_to_span(batch, subscription_id, txn, first, messages)
    if part.entries > PENDING_ENTRIES_MAX:
        raise InvalidValue(
            f"a transaction acknowledges messages of at most {PENDING_ENTRIES_MAX:,} entries one by one",
            hint="Acknowledge cumulatively, or commit more often.",
        )
    _save_part(batch, txn, subscription, part)
    done = sum(messages.bit_count() for _, _, messages in acknowledged)
    return done + sum(messages.bit_count() for _, messages in in_flight)


def _hold(opened: OpenSubscription[WriteBatch], acknowledged: Acknowledgement, consumer_id: int) -> None:
    """Take pending messages from their holders, so that no consumer receives them."""
    at, count, messages = acknowledged
    delivery = opened.deliveries.find(at) or Delivery(at, count, [])
    new = messages & ~delivery.known()
    if new:
        delivery.give(DeliveryPart(new, deliveries.PENDING, 0))
    opened.delayed.remove(at, new)
    _hold_taken(opened, delivery, messages & ~new, consumer_id)


def _hold_taken(
    opened: OpenSubscription[WriteBatch], delivery: Delivery, messages: int, consumer_id: int
) -> None:
    """Take messages of a record from their holders."""
    taken = delivery.take(messages)
    opened.deliveries.note_taken(taken, consumer_id)
    for part in taken:
        delivery.give(DeliveryPart(part.messages, deliveries.PENDING, part.times))
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
    for record in all_pending(batch, txn, subscription_id, part):
        if record.is_span:
            # An entry that the acknowledgement covers in part keeps what is pending one by one.
            absorbed = span.through(record.at, last, -1 if through.batch_index < 0 else 0)
            part.entries -= pending_records.remove(batch, subscription_id, record, absorbed)
            part.messages -= (record.messages(0) & absorbed).bit_count()
        elif record.at < last or (record.at == last and through.batch_index < 0):
            part.entries -= pending_records.remove(batch, subscription_id, record)
            part.messages -= record.messages(_count_of(opened, record.at)).bit_count()
    _hold_through(opened, through, consumer_id)
    part.cumulative = through
    cursor.pending_cumulative = (txn, *through)
    _save_part(batch, txn, subscription, part)


def _hold_through(opened: OpenSubscription[WriteBatch], through: MessageId, consumer_id: int) -> None:
    """Take the delivered messages up to a pending cumulative acknowledgement from their holders."""
    last, inside = through.position, messages_through(through)
    for record in opened.deliveries.through(last):
        _hold_taken(opened, record, record.through(last, inside), consumer_id)


def _order(through: MessageId) -> tuple[int, int, float]:
    """The order of cumulative acknowledgements: a whole entry comes after each message in it."""
    return (through[0], through[1], through[2] if through[2] >= 0 else float("inf"))


def _count_of(opened: OpenSubscription[ReadView], at: Position) -> int:
    delivery = opened.deliveries.find(at)
    return delivery.count if delivery else 1


def all_pending(
    view: ReadView, txn: int, subscription_id: int, part: SubscriptionPart
) -> list[PendingRecord]:
    """The messages pending one by one in an open transaction, which counts their entries.

    Raises:
        CorruptStore: a pending message is missing.
    """
    pending = pending_records.of_transaction(view, txn, subscription_id)
    entries = sum(record.entries for record in pending)
    if entries != part.entries:
        why = f"{entries} entries with pending messages are found; the transaction has {part.entries}"
        raise corrupt(TXN_PENDING, key2(txn, subscription_id), why)
    return pending


def recall(opened: OpenSubscription[WriteBatch], first: Position, inside: int) -> None:
    """Restart delivery at a message that is free again: recall the messages in flight or held back from there on.

    Args:
        inside: the messages of the entry at `first` to recall; of later entries, all.
    """
    opened.cursor.generation += 1
    untouched, pending = UntouchedMessages(opened), _pending_by_record(opened)
    for record in opened.deliveries.records(first):
        chosen, still_pending = ~span.through(record.at, first, ~inside) if record.is_span else -1, 0
        if record.at == first and not record.is_span:
            chosen = inside
        for stored in pending.get((record.at, record.is_span), ()):
            still_pending |= (
                span.decode(stored) if record.is_span else message_set.decode(stored, record.count)
            )
        if not record.is_span and span.fits(record.count):
            for stored in pending.get((span.first_of(record.at), True), ()):
                still_pending |= span.of_entry(record.at, span.decode(stored))
        for cut in untouched.uncount(record, record.take(chosen & ~still_pending)):
            due_ns = cut.due_ns if cut.holder == NOBODY else 0
            record.give(DeliveryPart(cut.messages, NOBODY, cut.times, due_ns, recalled=True))
        opened.deliveries.put(record)


def _pending_by_record(opened: OpenSubscription[ReadView]) -> dict[tuple[Position, bool], list[bytes]]:
    """The messages pending one by one as stored, by the entry or the span."""
    pending: dict[tuple[Position, bool], list[bytes]] = {}
    for record in pending_records.of_subscription(opened.view, opened.subscription_id):
        pending.setdefault((record.at, record.is_span), []).append(record.stored)
    return pending


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

"""Acknowledging, plainly or in a transaction, one by one or cumulatively.

What a subscription cannot be handed yet cannot be acknowledged. A plain acknowledgement never overrides one that is
pending; `force` aborts the transaction that holds it, in the same store transaction.
"""

from __future__ import annotations

from storage import faults
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidPosition, InvalidValue, MessageNotFound, NotDeliverable
from storage.limits import ENTRY_MESSAGES_MAX
from storage.process.identity import ProcessIdentity
from storage.subscription import (
    consumed_bound,
    cursor as cursors,
    delivery as deliveries,
    message_set,
    pending_ack,
)
from storage.subscription.catalogue import Subscription
from storage.subscription.cursor import Cursor
from storage.subscription.dispatch import skipped_txns
from storage.subscription.isolation import IsolationLevel
from storage.topic import log, state as topic_head
from storage.topic.entry import MESSAGES, Entry
from storage.txn import record as records
from storage.txn.coordinator import Coordinator
from storage.values.position import MessageId, Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import AbortReason, TransactionState

Item = tuple[tuple[int, int], int]
"""A position, and messages of its entry by batch index; 0 for all of them."""

_WHOLE = 0


class Acknowledger:
    """Acknowledges on one subscription, within write batches."""

    __slots__ = ("_by", "_consumer_id", "_coordinator", "_subscription")

    def __init__(
        self, coordinator: Coordinator, subscription: Subscription, by: ProcessIdentity, consumer_id: int = 0
    ) -> None:
        self._coordinator = coordinator
        self._subscription = subscription
        self._by = by
        self._consumer_id = consumer_id

    def acknowledge(self, batch: WriteBatch, items: list[Item], txn: int, force: bool) -> int:
        """Acknowledge messages one by one; how many were not before.

        Raises:
            TransactionConflict, NotDeliverable, MessageNotFound, and of the transaction as `Coordinator.use`
        """
        faults.reach("subscription.before_acknowledge")
        subscription = self._subscription
        cursor = cursors.load(batch, subscription.subscription_id)
        resolved = [(at, *_resolve(batch, subscription, at, messages)) for at, messages in items]
        if txn:
            record = self._coordinator.use(batch, txn, self._by)
            consumed_bound.note(batch, subscription, record, [at for at, _, _ in resolved])
            record.acknowledgements += pending_ack.add(
                batch, subscription, cursor, txn, resolved, self._consumer_id
            )
            records.save(batch, record)
            cursors.save(batch, subscription.subscription_id, cursor)
            return sum(messages.bit_count() for _, _, messages in resolved)
        cursor = self._clear_holders(batch, cursor, resolved, force)
        done = 0
        for at, count, messages in resolved:
            done += cursors.acknowledge(
                batch, subscription.topic_id, subscription.subscription_id, cursor, at, count, messages
            ).bit_count()
            deliveries.settle(batch, subscription.subscription_id, cursor, at, messages, self._consumer_id)
        cursors.advance(batch, subscription.topic_id, subscription.subscription_id, cursor)
        cursors.save(batch, subscription.subscription_id, cursor)
        return done

    def _clear_holders(
        self, batch: WriteBatch, cursor: Cursor, resolved: list[tuple[tuple[int, int], int, int]], force: bool
    ) -> Cursor:
        """See that no transaction holds any of these messages; with `force` abort those that do."""
        subscription, holding = self._subscription, set()
        for at, count, messages in resolved:
            open_ = messages & ~cursors.acknowledged(batch, subscription.subscription_id, cursor, at, count)
            for txn in pending_ack.holders(batch, subscription.subscription_id, cursor, at, count, open_):
                if not force:
                    why = f"is pending in transaction {TxnID(txn)}"
                    raise pending_ack.conflict(subscription, f"message {Position(*at)}", why, txn)
                holding.add(txn)
        return self._abort_all(batch, cursor, holding)

    def _abort_all(self, batch: WriteBatch, cursor: Cursor, holding: set[int]) -> Cursor:
        for txn in sorted(holding):
            self._coordinator.abort(batch, txn, self._by, AbortReason.ASKED, "an acknowledgement was forced")
        return cursors.load(batch, self._subscription.subscription_id) if holding else cursor

    def acknowledge_cumulative(self, batch: WriteBatch, message_id: MessageId, txn: int, force: bool) -> None:
        """Acknowledge everything up to and including a message.

        Raises:
            InvalidValue: the subscription is Shared or Key_Shared.
            TransactionConflict, NotDeliverable, MessageNotFound
        """
        faults.reach("subscription.before_acknowledge")
        subscription = self._subscription
        self._check_ordered()
        at, index = (message_id.ledger_id, message_id.entry_id), message_id.batch_index
        cursor = cursors.load(batch, subscription.subscription_id)
        count, _ = _resolve(batch, subscription, at, 1 << index if index >= 0 else _WHOLE)
        through = (*at, -1 if index >= count - 1 else index)
        if txn:
            record = self._coordinator.use(batch, txn, self._by)
            _check_handed_out(batch, subscription, cursor, through)
            consumed_bound.note_through(batch, subscription, record, _looked_at(cursor, txn), at)
            pending_ack.add_cumulative(batch, subscription, cursor, txn, through, self._consumer_id)
            record.acknowledgements += 1
            records.save(batch, record)
            cursors.save(batch, subscription.subscription_id, cursor)
            return
        if at <= cursor.mark_delete:
            return
        holding = pending_ack.holders_through(batch, subscription.subscription_id, cursor, through)
        if holding and not force:
            why = f"covers what is pending in transaction {TxnID(holding[0])}"
            raise pending_ack.conflict(subscription, f"message {message_id}", why, holding[0])
        cursor = self._abort_all(batch, cursor, set(holding))
        if not force:
            _check_handed_out(batch, subscription, cursor, through)
        pending_ack.acknowledge_cumulative(batch, subscription, cursor, through, self._consumer_id)
        cursors.advance(batch, subscription.topic_id, subscription.subscription_id, cursor)
        cursors.save(batch, subscription.subscription_id, cursor)

    def _check_ordered(self) -> None:
        mine = self._subscription
        if not mine.type.is_ordered:
            raise InvalidValue(
                f"subscription {mine.name} is {mine.type.value}: it has no cumulative acknowledgement",
                hint="Acknowledge messages one by one.",
            )

    def acknowledge_through(self, batch: WriteBatch, position: tuple[int, int]) -> tuple[int, int]:
        """Acknowledge all up to a position, as far as the level reaches; markDeletePosition after it.

        Raises:
            InvalidValue: the subscription is Shared or Key_Shared.
            MessageNotFound: there is no such position, neither an entry nor `L:-1`.
            TransactionConflict
        """
        mine = self._subscription
        self._check_ordered()
        head = topic_head.load(batch, mine.topic_id)
        through = min(position, mine.bound(head))
        cursor = cursors.load(batch, mine.subscription_id)
        if through > cursor.mark_delete:
            if through[1] >= 0 and log.read(batch, mine.topic_id, through) is None:
                raise _missing(through)
            holding = pending_ack.holders_through(batch, mine.subscription_id, cursor, (*through, -1))
            if holding:
                why = f"covers what is pending in transaction {TxnID(holding[0])}"
                raise pending_ack.conflict(mine, f"position {Position(*through)}", why, holding[0])
            pending_ack.acknowledge_cumulative(batch, mine, cursor, (*through, -1), self._consumer_id)
            cursors.advance(batch, mine.topic_id, mine.subscription_id, cursor)
            cursors.save(batch, mine.subscription_id, cursor)
        return cursor.mark_delete


def _looked_at(cursor: Cursor, txn: int) -> tuple[int, int]:
    """Up to where a transaction's cumulative acknowledgement has nothing new."""
    pending = cursor.pending_cumulative
    if pending is None or pending[0] != txn:
        return cursor.mark_delete
    return max(cursor.mark_delete, (pending[1], pending[2]))


def _resolve(
    view: ReadView, subscription: Subscription, at: tuple[int, int], messages: int
) -> tuple[int, int]:
    """How many messages an entry has, and which of them are meant.

    Raises:
        MessageNotFound, NotDeliverable
    """
    delivery = deliveries.find(view, subscription.subscription_id, at)
    if delivery is not None:
        every = message_set.everything(delivery.count)
        if messages & ~every:
            raise _missing(at)
        if not (messages or every) & ~delivery.in_flight():
            return delivery.count, messages or every
    entry = log.read(view, subscription.topic_id, at)
    if entry is None or entry.kind != MESSAGES or messages >> entry.count:
        raise _missing(at)
    wanted = messages or message_set.everything(entry.count)
    _check_deliverable(view, subscription, entry, wanted)
    return entry.count, wanted


def _missing(at: tuple[int, int]) -> MessageNotFound:
    return MessageNotFound(
        f"there is no message at {Position(*at)}: it was never written, was trimmed away, or is a marker",
        hint="`txnctl topics peek` shows what is there.",
        position=str(Position(*at)),
    )


def _check_deliverable(view: ReadView, subscription: Subscription, entry: Entry, messages: int) -> None:
    head = topic_head.load(view, subscription.topic_id)
    state = records.state_of(view, entry.txn) if entry.txn else None
    is_undecided = subscription.skips and state is TransactionState.OPEN
    if entry.position > subscription.bound(head) or is_undecided:
        raise NotDeliverable(
            f"message {entry.position} cannot be acknowledged: subscription {subscription.name} "
            f"({subscription.level.value}) is not handed it before its transaction ends",
            hint="`txnctl subscriptions lag` shows what blocks it.",
            position=str(entry.position),
        )
    if state is TransactionState.ABORTED and subscription.level is IsolationLevel.READ_COMMITTED:
        raise NotDeliverable(
            f"message {entry.position} belongs to aborted transaction {entry.txn_id}: "
            f"{subscription.name} never gets it",
            position=str(entry.position),
        )
    if subscription.skips and subscription.keeps_keys:
        holder = skipped_txns.holder_of(view, subscription.subscription_id, entry, messages)
        if holder:
            raise NotDeliverable(
                f"message {entry.position} cannot be acknowledged: open transaction {TxnID(holder)} has an earlier "
                f"message of its key, behind which it waits on {subscription.name}",
                hint="It comes when that transaction has ended.",
                position=str(entry.position),
                transaction=str(TxnID(holder)),
            )


def _check_handed_out(
    view: ReadView, subscription: Subscription, cursor: Cursor, through: tuple[int, int, int]
) -> None:
    """What an abort took back must be handed out again before it is acknowledged cumulatively."""
    if cursor.recalled is not None and cursor.read < min(through[:2], cursor.recalled):
        raise _taken_back(Position(*cursor.recalled), through)
    for found in deliveries.every(view, subscription.subscription_id):
        if found.at > through[:2]:
            return
        inside = message_set.everything(found.count)
        if found.at == through[:2] and through[2] >= 0:
            inside = message_set.through(through[2])
        for part in found.parts:
            if part.recalled and part.holder == deliveries.NOBODY and part.messages & inside:
                raise _taken_back(Position(*found.at), through)


def _taken_back(position: Position, through: tuple[int, int, int]) -> NotDeliverable:
    return NotDeliverable(
        f"an abort took messages up to {position} back: they have to be handed out again before "
        f"{Position(*through[:2])} is acknowledged cumulatively",
        hint="Receive again; or acknowledge one by one.",
        position=str(position),
    )


def item_of(message_id: MessageId) -> Item:
    """A message id as an item: without a batch index it means the whole entry."""
    at = (message_id.ledger_id, message_id.entry_id)
    if not (0 <= at[0] < 1 << 63 and 0 <= at[1] < 1 << 63 and message_id.batch_index >= -1):
        raise InvalidPosition(f"{message_id} is not a message")
    if message_id.batch_index >= ENTRY_MESSAGES_MAX:
        raise _missing(at)
    return at, (1 << message_id.batch_index if message_id.batch_index >= 0 else _WHOLE)


def add_item(found: dict[tuple[int, int], int], at: tuple[int, int], bits: int) -> None:
    """Add an item to those grouped by entry: 0 means all messages of the entry, and stays."""
    known = found.get(at)
    found[at] = 0 if not bits or known == 0 else (known or 0) | bits

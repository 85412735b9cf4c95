"""Acknowledge messages, plainly or in a transaction, one by one or cumulatively.

A message that the subscription cannot deliver yet cannot be acknowledged. A plain acknowledgement never overrides a
pending one; `force` aborts the transaction that holds the message, in the same store transaction.
"""

from __future__ import annotations

from storage import faults
from storage.actions import Action, Hint
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidPosition, InvalidValue, MessageNotFound, NotDeliverable
from storage.limits import ENTRY_MESSAGES_MAX
from storage.process.identity import ProcessIdentity
from storage.subscription import delivery as deliveries, message_bound, message_set, pending_ack
from storage.subscription.ack_spans import AckedMessages
from storage.subscription.cursor import Cursor
from storage.subscription.delivery import Delivery
from storage.subscription.dispatch.visible_set import OpenKeys
from storage.subscription.isolation import IsolationLevel
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.pending_ack import Acknowledgement
from storage.subscription.subscription import Subscription
from storage.topic import other_lives, state as states, trim
from storage.topic.compaction import compacted_view
from storage.topic.compaction.compacted_entry import CompactedEntry
from storage.topic.entry import MESSAGES, Entry
from storage.topic.open_topic import OpenTopic
from storage.txn import record as records, uncommitted_entries
from storage.txn.coordinator import Coordinator
from storage.values.position import LateMessageId, MessageId, Position, as_position, message_id_of
from storage.values.txn_id import TxnID
from storage.values.txn_state import AbortReason, TransactionState

Item = tuple[Position, int]
"""A position, and messages of its entry by batch index; 0 for all messages."""

_WHOLE = 0


class Acknowledger:
    """Acknowledges on one subscription, within write batches."""

    __slots__ = ("_consumer_id", "_coordinator", "_process", "_subscription")

    def __init__(
        self,
        coordinator: Coordinator,
        subscription: Subscription,
        process: ProcessIdentity,
        consumer_id: int = 0,
    ) -> None:
        self._coordinator = coordinator
        self._subscription = subscription
        self._process = process
        self._consumer_id = consumer_id

    def acknowledge(self, batch: WriteBatch, items: list[Item], txn: int, force: bool) -> int:
        """Acknowledge messages one by one; return the number of newly acknowledged messages.

        Raises:
            TransactionConflict, NotDeliverable, MessageNotFound, and of the transaction as `Coordinator.use`
        """
        faults.reach("subscription.before_acknowledge")
        opened = OpenSubscription(batch, self._subscription)
        last = max(items)[0] if items else opened.cursor.mark_delete
        open_keys = OpenKeys(batch, self._subscription, last)
        # Messages in flight can be acknowledged, are not acknowledged yet, and are pending in no transaction.
        in_spans, rest = opened.deliveries.split_by_span(items, Delivery.in_flight)
        resolved = [(at, *_resolve(opened, open_keys, at, messages)) for at, messages in rest]
        if txn:
            record = self._coordinator.use(batch, txn, self._process)
            message_bound.note_consumed(batch, self._subscription, record, [at for at, _ in items])
            done = pending_ack.add(opened, txn, resolved, in_spans, self._consumer_id)
            record.acknowledgements += done
            return done
        self._clear_holders(opened, resolved, force)
        done = 0
        for delivery, messages in in_spans:
            done += messages.bit_count()
            opened.deliveries.note_taken(delivery.take(messages), self._consumer_id)
            opened.deliveries.put(delivery)
            opened.acks.acknowledge_span(delivery.at, AckedMessages(messages, delivery.sizes))
        for at, count, messages in resolved:
            done += opened.acks.acknowledge(at, count, messages).bit_count()
            opened.deliveries.settle(at, messages, self._consumer_id)
        opened.acks.advance()
        return done

    def _clear_holders(
        self, opened: OpenSubscription[WriteBatch], resolved: list[Acknowledgement], force: bool
    ) -> None:
        """Check that no transaction holds any of the messages; with `force` abort the transactions that do."""
        holding = set[int]()
        for at, count, messages in resolved:
            open_ = messages & ~opened.acks.of(at, count)
            for txn in pending_ack.holders(opened, at, count, open_):
                if not force:
                    why = f"is pending in transaction {TxnID(txn)}"
                    raise pending_ack.conflict(self._subscription, f"message {at}", why, txn)
                holding.add(txn)
        self._abort_all(opened.view, holding)

    def _abort_all(self, batch: WriteBatch, holding: set[int]) -> None:
        for txn in sorted(holding):
            self._coordinator.abort(
                batch, txn, self._process, AbortReason.ASKED, "an acknowledgement was forced"
            )

    def acknowledge_cumulative(self, batch: WriteBatch, message_id: MessageId, txn: int, force: bool) -> None:
        """Acknowledge everything up to and including a message.

        Raises:
            InvalidValue: the subscription is Shared or Key_Shared.
            TransactionConflict, NotDeliverable, MessageNotFound
        """
        faults.reach("subscription.before_acknowledge")
        self._check_ordered()
        at, index = message_id.position, message_id.batch_index
        opened = OpenSubscription(batch, self._subscription)
        cursor = opened.cursor
        open_keys = OpenKeys(batch, self._subscription, at)
        count, _ = _resolve(opened, open_keys, at, 1 << index if index >= 0 else _WHOLE)
        through = MessageId(*at, -1 if index >= count - 1 else index)
        is_done = pending_ack.is_acknowledged_through(opened, through)
        if txn:
            record = self._coordinator.use(batch, txn, self._process)
            if not is_done:
                _check_delivered(opened, through)
            after = _acknowledged_by(cursor, txn)
            message_bound.note_consumed_through(batch, self._subscription, record, after, at)
            pending_ack.add_cumulative(opened, txn, through, self._consumer_id)
            record.acknowledgements += 1
            return
        if is_done:
            return
        holding = pending_ack.holders_through(opened, through)
        if holding and not force:
            why = f"covers what is pending in transaction {TxnID(holding[0])}"
            raise pending_ack.conflict(self._subscription, f"message {message_id}", why, holding[0])
        self._abort_all(batch, set(holding))
        if not force:
            _check_delivered(opened, through)
        pending_ack.acknowledge_cumulative(opened, through, self._consumer_id)
        opened.acks.advance()

    def _check_ordered(self) -> None:
        subscription = self._subscription
        if not subscription.type.is_ordered:
            raise InvalidValue(
                f"subscription {subscription.name} is {subscription.type.value}: it has no cumulative acknowledgement",
                hint="Acknowledge messages one by one.",
            )

    def acknowledge_through(self, batch: WriteBatch, position: Position) -> Position:
        """Acknowledge all up to a position, at most up to the level's bound; return the new markDeletePosition.

        Raises:
            InvalidValue: the subscription is Shared or Key_Shared.
            MessageNotFound: there is no such position, neither an entry nor `L:-1`.
            TransactionConflict
        """
        subscription = self._subscription
        self._check_ordered()
        state = states.load(batch, subscription.topic_id)
        through = min(position, subscription.bound(state))
        opened = OpenSubscription(batch, subscription)
        if through > opened.cursor.mark_delete:
            if (
                through[1] >= 0
                and compacted_view.read_anywhere(batch, subscription.topic_id, through) is None
            ):
                raise missing(through)
            if through[1] < 0:
                other_lives.check_start(OpenTopic.load(batch, subscription.topic_id), through)
            holding = pending_ack.holders_through(opened, MessageId(*through))
            if holding:
                why = f"covers what is pending in transaction {TxnID(holding[0])}"
                raise pending_ack.conflict(subscription, f"position {through}", why, holding[0])
            pending_ack.acknowledge_cumulative(opened, MessageId(*through), self._consumer_id)
            opened.acks.advance()
        return opened.cursor.mark_delete


def _acknowledged_by(cursor: Cursor, txn: int) -> Position:
    """The position up to which a transaction's cumulative acknowledgement has nothing new."""
    pending = cursor.pending_cumulative
    if pending is None or pending[0] != txn:
        return cursor.mark_delete
    return max(cursor.mark_delete, Position(pending[1], pending[2]))


def _resolve(
    opened: OpenSubscription[ReadView], open_keys: OpenKeys, at: Position, messages: int
) -> tuple[int, int]:
    """Return the number of messages of an entry, and the chosen messages, after checking that each is deliverable.

    Raises:
        MessageNotFound, NotDeliverable
    """
    delivery = opened.deliveries.find(at)
    if delivery is not None:
        every = message_set.everything(delivery.count)
        if messages & ~every:
            raise missing(at)
        if not (messages or every) & ~delivery.in_flight():
            return delivery.count, messages or every
    entry = compacted_view.read_anywhere(opened.view, opened.topic_id, at)
    if entry is None and is_trimmed(opened, at):
        # A limit may let a message go that a consumer holds: nothing is left to acknowledge.
        return max(messages.bit_length(), 1), messages or 1
    if entry is None or entry.kind != MESSAGES or messages >> entry.count:
        raise missing(at)
    chosen = messages or message_set.everything(entry.count)
    if not isinstance(entry, CompactedEntry):
        _check_deliverable(opened, entry)
    in_flight = delivery.in_flight() if delivery is not None else 0
    _check_no_key_blocked(opened, open_keys, entry, chosen & ~in_flight)
    return entry.count, chosen


def is_trimmed(opened: OpenSubscription[ReadView], at: Position) -> bool:
    """Whether a position lies in a trimmed ledger, and so was acknowledged."""
    state = states.load(opened.view, opened.topic_id)
    end = trim.end_of_trimmed(opened.view, opened.topic_id, state)
    return end is not None and at <= end and at <= opened.cursor.mark_delete


def missing(at: Position) -> MessageNotFound:
    """The error for a message that is not in the topic."""
    return MessageNotFound(
        f"there is no message at {at}: it was never written, was trimmed away, or is a marker",
        hint=Hint("`{}` shows what is there.", Action("store.reader", "TOPIC")),
        position=str(at),
    )


def _check_deliverable(opened: OpenSubscription[ReadView], entry: Entry) -> None:
    view, subscription = opened.view, opened.subscription
    topic_state = states.load(view, opened.topic_id)
    state = records.state_of(view, entry.txn) if entry.txn else None
    is_undecided = subscription.skips and state is TransactionState.OPEN
    if entry.position > subscription.bound(topic_state) or is_undecided:
        raise NotDeliverable(
            f"message {entry.position} cannot be acknowledged: subscription {subscription.name} "
            f"({subscription.level.value}) is not handed it before its transaction ends",
            hint=Hint(
                "`{}` shows what blocks it.",
                Action("store.reports.subscription_stats", "TOPIC", subscription.name),
            ),
            held_by=_open_before(view, opened.topic_id, entry.position),
            position=str(entry.position),
        )
    if state is TransactionState.ABORTED and subscription.level is IsolationLevel.READ_COMMITTED:
        raise NotDeliverable(
            f"message {entry.position} belongs to aborted transaction {entry.txn_id}: "
            f"{subscription.name} never gets it",
            position=str(entry.position),
        )


def _open_before(view: ReadView, topic_id: int, at: Position) -> list[int]:
    """The open transactions with messages at or before an entry."""
    return [txn for txn, first in uncommitted_entries.open_transactions(view, topic_id) if first <= at]


def _check_no_key_blocked(
    opened: OpenSubscription[ReadView], open_keys: OpenKeys, entry: Entry, messages: int
) -> None:
    if not opened.subscription.skips:
        return
    open_ = messages & ~opened.acks.of(entry.position, entry.count)
    for blocker in open_keys.blockers(entry, open_).values():
        raise NotDeliverable(
            f"message {entry.position} cannot be acknowledged: open transaction {TxnID(blocker)} has an earlier "
            f"message of its key, behind which it waits on {opened.subscription.name}",
            hint="It comes when that transaction has ended.",
            held_by=(blocker,),
            position=str(entry.position),
            transaction=str(TxnID(blocker)),
        )


def _check_delivered(opened: OpenSubscription[ReadView], through: MessageId) -> None:
    """Check that messages which an abort recalled were delivered again, before a cumulative acknowledgement."""
    cursor, last = opened.cursor, through.position
    if cursor.recalled is not None and cursor.read < min(last, cursor.recalled):
        raise _recalled(cursor.recalled, last)
    # A recalled message is free until it is delivered again.
    for record in opened.deliveries.through_free():
        inside = record.through(last, pending_ack.messages_through(through))
        for part in record.parts:
            if part.recalled and part.holder == deliveries.NOBODY and part.messages & inside:
                raise _recalled(record.first_entry(part.messages & inside), last)


def _recalled(position: Position, through: Position) -> NotDeliverable:
    return NotDeliverable(
        f"an abort took messages up to {position} back: they have to be handed out again before "
        f"{through} is acknowledged cumulatively",
        hint="Receive again; or acknowledge one by one.",
        position=str(position),
    )


def item_of(message_id: MessageId | LateMessageId) -> Item:
    """Make an item of a message id: without a batch index, the whole entry.

    Raises:
        InvalidPosition: no message id, or one that no message has.
    """
    ledger_id, entry_id, index = message_id_of(message_id)
    if not (0 <= ledger_id < 1 << 63 and 0 <= entry_id < 1 << 63 and index >= -1):
        raise InvalidPosition(f"{message_id} is not a message")
    at = as_position((ledger_id, entry_id))
    if index >= ENTRY_MESSAGES_MAX:
        raise missing(at)
    return at, (1 << index if index >= 0 else _WHOLE)


def add_item(items: dict[Position, int], at: Position, bits: int) -> None:
    """Add an item to items grouped by entry: 0 stands for all messages of the entry, and stays."""
    if at in items:
        bits = bits | items[at] if bits and items[at] else 0
    items[at] = bits

"""Check a subscription: cursor, deliveries, pending acknowledgements, backlog; invariants 1, 2, 7, 8, 19 and 23."""

from __future__ import annotations

from itertools import pairwise

from storage.disk.schema import MARKS
from storage.disk.view import ReadView
from storage.reports import backlog
from storage.subscription import (
    ack_spans,
    acked_ranges,
    acks,
    attached_consumers,
    cursor as cursors,
    delivery as deliveries,
    mark_index,
    message_set,
    pending_ack,
    pending_records,
    span,
)
from storage.subscription.attached_consumers import is_attached
from storage.subscription.delivery import Delivery
from storage.subscription.isolation import IsolationLevel
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.topic import log as managed_ledger
from storage.topic.catalogue import Topic
from storage.topic.entry import MESSAGES
from storage.topic.state import TopicState
from storage.txn import record as records
from storage.values.position import MessageId, Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState
from storage.verify import skipped_txns
from storage.verify.delayed import check_delayed
from storage.verify.log import Log, LoggedEntry
from storage.verify.problem import Report

_CLASSES = ("acknowledged", "pending", "aborted", "uncommitted", "blocked", "delayed", "visible")


class SubscriptionCheck:
    """The check of one subscription in one view."""

    def __init__(
        self, view: ReadView, topic: Topic, state: TopicState, subscription: Subscription, report: Report
    ) -> None:
        self._view = view
        self._topic_id = topic.topic_id
        self._state = state
        self._subscription = subscription
        self._id = subscription.subscription_id
        self._cursor = cursors.load(view, self._id)
        self._label = f"{topic.name} {subscription.name}"
        self._report = report
        self._txn_states: dict[int, TransactionState] = {}
        self._one_by_one: dict[Position, list[bytes]] = {}

    def run(self, log: Log | None) -> None:
        """Check the records of the subscription; given the log of the topic, also recount every message."""
        view, cursor = self._view, self._cursor
        delivered = list(deliveries.every(view, self._id))
        for before, delivery in pairwise(delivered):
            if before.at == delivery.at:
                self._problem(23, f"{Position(*delivery.at)} is in a span, and has a record of its own")
        if cursor.mark_delete > self._state.last_confirmed:
            self._problem(1, f"markDeletePosition {Position(*cursor.mark_delete)} is beyond the log")
        self._check_bound()
        self._check_ranges()
        for delivery in delivered:
            self._check_delivery(delivery)
        consumers = len(attached_consumers.every(view, self._id))
        if cursor.consumers is not None and cursor.consumers != consumers:
            self._problem(23, f"counts {cursor.consumers} attached consumers, and {consumers} are recorded")
        if cursor.released != sum(delivery.is_released for delivery in delivered):
            self._problem(23, f"counts {cursor.released} released entries")
        self._check_gone()
        skipped_txns.SkipCheck(view, self._subscription, cursor, self._problem).run(log)
        check_delayed(view, self._subscription, cursor, self._problem)
        cumulative = cursor.pending_cumulative
        if cumulative is not None and not self._is_open(cumulative[0]):
            self._problem(7, f"a cumulative acknowledgement of {TxnID(cumulative[0])} is still pending")
        self._check_pending({delivery.at: delivery for delivery in delivered})
        if log is not None:
            self._check_counts(log, delivered)
            self._check_classes(log, {delivery.at: delivery for delivery in delivered})

    def _problem(self, invariant: int, message: str) -> None:
        self._report(invariant, self._label, message)

    def _is_open(self, txn: int) -> bool:
        record = records.find(self._view, txn)
        return record is not None and record.state is TransactionState.OPEN

    # Records

    def _check_gone(self) -> None:
        """The audit trail has no more than was counted. A seek lets messages go again: the log bounds no counter."""
        cursor = self._cursor
        for noun, counted, noted in (
            ("lost", cursor.lost, cursor.lost_noted),
            ("expired", cursor.expired, cursor.expired_noted),
        ):
            if noted > counted:
                self._problem(23, f"counts {counted} messages {noun}; the audit trail has {noted}")

    def _check_bound(self) -> None:
        """Check that the index of marks has the subscription, at or before markDeletePosition."""
        if not mark_index.is_complete(self._view) and not self._view.has_records(MARKS):
            return  # a store of format 1
        bound = mark_index.find(self._view, self._topic_id, self._id)
        if bound is None or bound.name != self._subscription.name or bound.at > self._cursor.mark_delete:
            at = "nowhere" if bound is None else f"at {bound.at}"
            self._problem(
                19, f"the index of marks has it {at}, the mark is {Position(*self._cursor.mark_delete)}"
            )

    def _check_ranges(self) -> None:
        """Check that acknowledged ranges lie apart from each other, and after markDeletePosition with a gap."""
        mark_delete, previous = self._cursor.mark_delete, (-1, -1, False)
        stored = {record[:2] for record in acked_ranges.stored_ranges(self._view, self._id) if not record[2]}
        for first, last, messages in acked_ranges.pieces(self._view, self._id):
            is_whole = not messages
            if first <= mark_delete or last < first.entry_id:
                self._problem(1, f"acknowledged {first}..{last} is not ahead of {Position(*mark_delete)}")
            # Where the log was trimmed, the compacted view may have lost the messages between since.
            is_trimmed = mark_delete[0] < self._state.first_ledger
            if is_whole and not is_trimmed and acks.is_next(self._view, self._topic_id, mark_delete, first):
                self._problem(1, f"acknowledged {first} follows markDeletePosition and was not taken into it")
            if previous[0] == first.ledger_id and first.entry_id <= previous[1]:
                self._problem(23, f"acknowledged ranges overlap at {first}")
            if previous == (first.ledger_id, first.entry_id - 1, True) and (first, last) in stored:
                self._problem(23, f"acknowledged ranges that touch at {first} were not joined")
            previous = (first.ledger_id, last, is_whole and (first, last) in stored)

    def _check_pending(self, delivered: dict[Position, Delivery]) -> None:
        """Check that messages pending one by one are delivered to no consumer."""
        for at, txn, stored in pending_records.one_by_one(self._view, self._id):
            delivery = delivered.get(at)
            held = delivery.of(deliveries.PENDING) if delivery is not None else 0
            if delivery is None or message_set.decode(stored, delivery.count) & ~held:
                self._problem(7, f"{at} is pending in {TxnID(txn)}, and not held as pending")

    def _check_counts(self, log: Log, delivered: list[Delivery]) -> None:
        """Check that deliveries and acknowledgements in spans are of entries with as many messages."""
        counts = {entry.at: entry.messages for entry in log.entries if entry.kind == MESSAGES}
        # Where the log was trimmed, the compacted view may have the messages, or has had them.
        begin = Position(self._state.first_ledger, 0)
        for first, acknowledged in ack_spans.every(self._view, self._id, begin):
            for at in span.entries(first, acknowledged.messages):
                size = span.size(at, acknowledged.sizes)
                if counts.get(at) != size:
                    self._problem(23, f"{at} is acknowledged as an entry of {size}")
        for delivery in delivered:
            if delivery.at >= begin and counts.get(delivery.at) != delivery.count:
                self._problem(23, f"{Position(*delivery.at)} is delivered as an entry of {delivery.count}")

    def _check_delivery(self, delivery: Delivery) -> None:
        view, at, seen = self._view, Position(*delivery.at), 0
        done = acks.acknowledged(view, self._id, self._cursor, delivery.at, delivery.count)
        is_pending = False
        for txn in pending_ack.holders(
            OpenSubscription(view, self._subscription), delivery.at, delivery.count, -1
        ):
            is_pending = True
            if not self._is_open(txn):
                self._problem(7, f"{at} is pending in {TxnID(txn)}, which is not open")
        for part in delivery.parts:
            if part.messages & seen or part.messages & done or part.messages >> delivery.count:
                self._problem(7, f"{at} is delivered twice, or though acknowledged")
            if part.holder == deliveries.PENDING and not is_pending:
                self._problem(7, f"{at} is held as pending, and no transaction has it")
            if part.holder > 0:
                self._check_in_flight(at, part.holder)
            seen |= part.messages

    def _check_in_flight(self, at: Position, consumer_id: int) -> None:
        if not is_attached(self._view, self._id, consumer_id):
            self._problem(19, f"{at} is in flight at a consumer that is not attached")
        if self._subscription.level is IsolationLevel.READ_COMMITTED and self._is_undecided(at):
            bound = self._state.max_read_position
            self._problem(2, f"{at} is in flight beyond maxReadPosition {bound}, undecided")

    def _is_undecided(self, at: Position) -> bool:
        """Whether READ_COMMITTED must withhold an entry: behind maxReadPosition, and with skip only if undecided."""
        if at <= self._state.max_read or not self._subscription.skips:
            return at > self._state.max_read
        entry = managed_ledger.read(self._view, self._topic_id, at)
        return entry is not None and bool(entry.txn) and self._is_open(entry.txn)

    # Every message after markDeletePosition

    def _check_classes(self, log: Log, delivered: dict[Position, Delivery]) -> None:
        """Count every message after markDeletePosition by class, and compare with the counts of `backlog`."""
        expected, now_ms = dict.fromkeys(_CLASSES, 0), self._view.clock.wall_ms()
        for at, _, stored in pending_records.one_by_one(self._view, self._id):
            self._one_by_one.setdefault(at, []).append(stored)
        held_entries = skipped_txns.held_by_entry(self._view, self._subscription, only_open=True)
        for entry in log.entries:
            if entry.kind == MESSAGES and entry.at > self._cursor.mark_delete:
                early = self._early(entry, delivered.get(entry.at), now_ms)
                self._count(entry, held_entries.get(entry.at), early, expected)
        counted = backlog.count(self._view, self._state, self._subscription, self._cursor, now_ms)
        for name, number in expected.items():
            if getattr(counted, name) != number:
                self._problem(8, f"counts {getattr(counted, name)} {name} messages; there are {number}")

    def _early(self, entry: LoggedEntry, delivery: Delivery | None, now_ms: int) -> int:
        """The early messages of an entry: none of them was ever delivered."""
        if entry.times is None or not self._subscription.delays:
            return 0
        early = sum(
            1 << index for index, due_ms in enumerate(entry.times) if due_ms is not None and due_ms > now_ms
        )
        for part in delivery.parts if delivery is not None else ():
            if part.times or part.holder != deliveries.NOBODY:
                early &= ~part.messages
        return early

    def _count(
        self, entry: LoggedEntry, held_sets: list[bytes] | None, delayed: int, expected: dict[str, int]
    ) -> None:
        done = acks.acknowledged(self._view, self._id, self._cursor, entry.at, entry.messages)
        pending = self._pending(entry) & ~done
        rest = message_set.everything(entry.messages) & ~done & ~pending
        held = (
            skipped_txns.joined(held_sets, entry.messages) & ~done & ~pending if held_sets is not None else 0
        )
        expected["acknowledged"] += done.bit_count()
        expected["pending"] += pending.bit_count()
        expected["blocked"] += held.bit_count()
        rest &= ~held
        expected[self._class_of(entry)] += (rest & ~delayed).bit_count()
        expected["delayed" if self._class_of(entry) == "visible" else self._class_of(entry)] += (
            rest & delayed
        ).bit_count()

    def _pending(self, entry: LoggedEntry) -> int:
        """Return the messages of an entry with a pending acknowledgement, as a bit set."""
        pending = 0
        for stored in self._one_by_one.get(entry.at, ()):
            pending |= message_set.decode(stored, entry.messages)
        cumulative = self._cursor.pending_cumulative
        if cumulative is not None:
            for bit in message_set.indexes(message_set.everything(entry.messages)):
                if pending_ack.covers(MessageId(*cumulative[1:4]), entry.at, 1 << bit):
                    pending |= 1 << bit
        return pending

    def _class_of(self, entry: LoggedEntry) -> str:
        """Return the class of a message that is neither acknowledged nor pending (invariant 8)."""
        if self._subscription.level is IsolationLevel.READ_UNCOMMITTED:
            return "visible"
        if entry.txn:
            if entry.txn not in self._txn_states:
                self._txn_states[entry.txn] = records.state_of(self._view, entry.txn)
            state = self._txn_states[entry.txn]
            if state is TransactionState.ABORTED:
                return "aborted"
            if state is TransactionState.OPEN:
                return "uncommitted"
        return "blocked" if entry.at > self._state.max_read and not self._subscription.skips else "visible"

"""Check a subscription: cursor, deliveries, pending acknowledgements, backlog; invariants 1, 2, 7, 8, 19 and 23."""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.reports import backlog
from storage.subscription import cursor as cursors, delivery as deliveries, message_set, pending_ack
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
from storage.verify.log import Log, LoggedEntry
from storage.verify.problem import Report

_CLASSES = ("acknowledged", "pending", "aborted", "uncommitted", "blocked", "visible")


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

    def run(self, log: Log | None) -> None:
        """Check the records of the subscription; given the log of the topic, also recount every message."""
        view, cursor = self._view, self._cursor
        delivered = list(deliveries.every(view, self._id))
        if cursor.mark_delete > self._state.last_confirmed:
            self._problem(1, f"markDeletePosition {Position(*cursor.mark_delete)} is beyond the log")
        self._check_ranges()
        for delivery in delivered:
            self._check_delivery(delivery)
        if cursor.released != sum(delivery.is_released for delivery in delivered):
            self._problem(23, f"counts {cursor.released} released entries")
        gone = cursor.lost + cursor.expired
        if (
            gone > self._state.messages
            or cursor.lost_noted > cursor.lost
            or cursor.expired_noted > cursor.expired
        ):
            self._problem(23, f"counts {gone} messages lost or expired; the topic had {self._state.messages}")
        skipped_txns.SkipCheck(view, self._subscription, cursor, self._problem).run(log)
        cumulative = cursor.pending_cumulative
        if cumulative is not None and not self._is_open(cumulative[0]):
            self._problem(7, f"a cumulative acknowledgement of {TxnID(cumulative[0])} is still pending")
        if log is not None:
            self._check_classes(log)

    def _problem(self, invariant: int, message: str) -> None:
        self._report(invariant, self._label, message)

    def _is_open(self, txn: int) -> bool:
        record = records.find(self._view, txn)
        return record is not None and record.state is TransactionState.OPEN

    # Records

    def _check_ranges(self) -> None:
        """Check that acknowledged ranges lie apart from each other, and after markDeletePosition with a gap."""
        mark_delete, previous = self._cursor.mark_delete, (-1, -1, False)
        for first, last, messages in cursors.ranges(self._view, self._id):
            is_whole = not messages
            if first <= mark_delete or last < first.entry_id:
                self._problem(1, f"acknowledged {first}..{last} is not ahead of {Position(*mark_delete)}")
            if is_whole and cursors.is_next(self._view, self._topic_id, mark_delete, first):
                self._problem(1, f"acknowledged {first} follows markDeletePosition and was not taken into it")
            if previous[0] == first.ledger_id and first.entry_id <= previous[1]:
                self._problem(23, f"acknowledged ranges overlap at {first}")
            if previous == (first.ledger_id, first.entry_id - 1, True) and is_whole:
                self._problem(23, f"acknowledged ranges that touch at {first} were not joined")
            previous = (first.ledger_id, last, is_whole)

    def _check_delivery(self, delivery: Delivery) -> None:
        view, at, seen = self._view, Position(*delivery.at), 0
        done = cursors.acknowledged(view, self._id, self._cursor, delivery.at, delivery.count)
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

    def _check_classes(self, log: Log) -> None:
        """Count every message after markDeletePosition by class, and compare with the counts of `backlog`."""
        expected = dict.fromkeys(_CLASSES, 0)
        held_entries = skipped_txns.held_by_entry(self._view, self._subscription, only_open=True)
        for entry in log.entries:
            if entry.kind == MESSAGES and entry.at > self._cursor.mark_delete:
                self._count(entry, held_entries.get(entry.at), expected)
        counted = backlog.count(self._view, self._state, self._subscription, self._cursor)
        for name, number in expected.items():
            if getattr(counted, name) != number:
                self._problem(8, f"counts {getattr(counted, name)} {name} messages; there are {number}")

    def _count(self, entry: LoggedEntry, held_sets: list[bytes] | None, expected: dict[str, int]) -> None:
        done = cursors.acknowledged(self._view, self._id, self._cursor, entry.at, entry.messages)
        pending = self._pending(entry) & ~done
        rest = message_set.everything(entry.messages) & ~done & ~pending
        held = (
            skipped_txns.joined(held_sets, entry.messages) & ~done & ~pending if held_sets is not None else 0
        )
        expected["acknowledged"] += done.bit_count()
        expected["pending"] += pending.bit_count()
        expected["blocked"] += held.bit_count()
        expected[self._class_of(entry)] += rest.bit_count() - held.bit_count()

    def _pending(self, entry: LoggedEntry) -> int:
        """Return the messages of an entry with a pending acknowledgement, as a bit set."""
        pending = 0
        for _, _, messages in pending_ack.one_by_one(self._view, self._id, entry.at):
            pending |= message_set.decode(messages, entry.messages)
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

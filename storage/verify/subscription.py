"""Checking a subscription: its cursor, what is handed out, what is pending; invariants 1, 2, 7, 8, 23."""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.reports import backlog
from storage.subscription import cursor as cursors, delivery as deliveries, message_set, pending_ack
from storage.subscription.catalogue import is_attached
from storage.subscription.cursor import Cursor
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
from storage.verify.log import Log, Report


def check_subscription(
    view: ReadView, topic: Topic, head: TopicState, mine: Subscription, log: Log | None, report: Report
) -> None:
    """Everything about a subscription that its records, and the log if it was read, imply."""
    what = f"{topic.name} {mine.name}"
    cursor = cursors.load(view, mine.subscription_id)
    found = list(deliveries.every(view, mine.subscription_id))
    if cursor.mark_delete > head.last_confirmed:
        report(1, what, f"markDeletePosition {Position(*cursor.mark_delete)} is beyond the log")
    _check_ranges(view, topic, mine, cursor, what, report)
    for delivery in found:
        _check_delivery(view, head, mine, cursor, delivery, what, report)
    if cursor.released != sum(delivery.is_released for delivery in found):
        report(23, what, f"counts {cursor.released} released entries")
    skipped_txns.check(view, mine, cursor, log, what, report)
    if cursor.pending_cumulative is not None and not _is_open(view, cursor.pending_cumulative[0]):
        report(
            7, what, f"a cumulative acknowledgement of {TxnID(cursor.pending_cumulative[0])} is still pending"
        )
    if log is not None:
        _check_classes(view, head, mine, cursor, log, what, report)


def _is_open(view: ReadView, txn: int) -> bool:
    record = records.find(view, txn)
    return record is not None and record.state is TransactionState.OPEN


def _check_ranges(
    view: ReadView, topic: Topic, mine: Subscription, cursor: Cursor, what: str, report: Report
) -> None:
    """Acknowledged ranges lie ahead of markDeletePosition, apart from it and from each other."""
    previous: tuple[int, int, bool] | None = None
    for first, last, messages in cursors.ranges(view, mine.subscription_id):
        if first <= cursor.mark_delete or last < first.entry_id:
            report(1, what, f"acknowledged {first}..{last} is not ahead of {Position(*cursor.mark_delete)}")
        if not messages and cursors.is_next(view, topic.topic_id, cursor.mark_delete, first):
            report(1, what, f"acknowledged {first} follows markDeletePosition and was not taken into it")
        if previous is not None and previous[0] == first.ledger_id and first.entry_id <= previous[1]:
            report(23, what, f"acknowledged ranges overlap at {first}")
        if previous == (first.ledger_id, first.entry_id - 1, True) and not messages:
            report(23, what, f"acknowledged ranges that touch at {first} were not joined")
        previous = (first.ledger_id, last, not messages)


def _check_delivery(
    view: ReadView,
    head: TopicState,
    mine: Subscription,
    cursor: Cursor,
    delivery: Delivery,
    what: str,
    report: Report,
) -> None:
    at, seen = Position(*delivery.at), 0
    done = cursors.acknowledged(view, mine.subscription_id, cursor, delivery.at, delivery.count)
    pending = 0
    for txn in pending_ack.holders(OpenSubscription(view, mine), delivery.at, delivery.count, -1):
        pending = -1
        if not _is_open(view, txn):
            report(7, what, f"{at} is pending in {TxnID(txn)}, which is not open")
    for part in delivery.parts:
        if part.messages & seen or part.messages & done or part.messages >> delivery.count:
            report(7, what, f"{at} is handed out though acknowledged, or twice")
        if part.holder > 0 and not is_attached(view, mine.subscription_id, part.holder):
            report(19, what, f"{at} is in flight at a consumer that is not attached")
        if part.holder == deliveries.PENDING and not pending:
            report(7, what, f"{at} is held as pending, and no transaction has it")
        if (
            part.holder > 0
            and mine.level is IsolationLevel.READ_COMMITTED
            and _is_undecided(view, head, mine, at)
        ):
            report(2, what, f"{at} is in flight beyond maxReadPosition {head.max_read_position}, undecided")
        seen |= part.messages


def _is_undecided(view: ReadView, head: TopicState, mine: Subscription, at: Position) -> bool:
    """Whether READ_COMMITTED hands out nothing of an entry yet: all beyond the bound, or its own transaction's."""
    if at <= head.max_read or not mine.skips:
        return at > head.max_read
    entry = managed_ledger.read(view, mine.topic_id, at)
    return entry is not None and bool(entry.txn) and _is_open(view, entry.txn)


def _check_classes(
    view: ReadView, head: TopicState, mine: Subscription, cursor: Cursor, log: Log, what: str, report: Report
) -> None:
    """Count every message after markDeletePosition into its class, and compare with the counts of `backlog`."""
    wanted = dict.fromkeys(("acknowledged", "pending", "aborted", "uncommitted", "blocked", "visible"), 0)
    states: dict[int, TransactionState] = {}
    behind = skipped_txns.held_by_entry(view, mine, only_open=True)
    for entry in log.entries:
        if entry.kind != MESSAGES or entry.at <= cursor.mark_delete:
            continue
        every = message_set.everything(entry.count)
        done = cursors.acknowledged(view, mine.subscription_id, cursor, entry.at, entry.count)
        pending = 0
        for _, _, messages in pending_ack.one_by_one(view, mine.subscription_id, entry.at):
            pending |= message_set.decode(messages, entry.count)
        if cursor.pending_cumulative is not None:
            for bit in message_set.indexes(every):
                if pending_ack.covers(MessageId(*cursor.pending_cumulative[1:4]), entry.at, 1 << bit):
                    pending |= 1 << bit
        pending &= ~done
        rest = (every & ~done & ~pending).bit_count()
        wanted["acknowledged"] += done.bit_count()
        wanted["pending"] += pending.bit_count()
        if entry.txn and entry.txn not in states:
            states[entry.txn] = records.state_of(view, entry.txn)
        state, held = states.get(entry.txn), 0
        if entry.at in behind:
            held = skipped_txns.joined(behind[entry.at], entry.count) & ~done & ~pending
            wanted["blocked"] += held.bit_count()
        wanted[_class_of(head, mine, entry.at, state)] += rest - held.bit_count()
    counted = backlog.count(view, head, mine, cursor)
    for name, number in wanted.items():
        if getattr(counted, name) != number:
            report(8, what, f"counts {getattr(counted, name)} {name} messages; there are {number}")


def _class_of(head: TopicState, mine: Subscription, at: Position, state: TransactionState | None) -> str:
    """The first class that fits a message neither acknowledged nor pending (invariant 8)."""
    if mine.level is IsolationLevel.READ_UNCOMMITTED:
        return "visible"
    if state is TransactionState.ABORTED:
        return "aborted"
    if state is TransactionState.OPEN:
        return "uncommitted"
    return "blocked" if at > head.max_read and not mine.skips else "visible"

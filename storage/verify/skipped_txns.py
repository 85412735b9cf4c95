"""Checking what a subscription with `--on-open skip` has passed over; invariants 2, 19, 23.

What dispatch has come by is acknowledged, in a delivery, held behind an awaited transaction, or that one's own and
looked at when it ends: nothing is lost.
"""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.subscription import cursor as cursors, delivery as deliveries, message_set
from storage.subscription.cursor import Cursor
from storage.subscription.dispatch import skipped_txns
from storage.subscription.dispatch.skipped_txns import SkippedTxn
from storage.subscription.subscription import Subscription
from storage.topic.entry import MESSAGES
from storage.txn import record as records
from storage.values.position import Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState
from storage.verify.log import Log, Report


def check(
    view: ReadView, mine: Subscription, cursor: Cursor, log: Log | None, what: str, report: Report
) -> None:
    """Counters agree with the records, and with the log if it was read nothing was lost on the way."""
    found = {each.txn: each for each in skipped_txns.every(view, mine.subscription_id)}
    if cursor.skipped_txns != len(found):
        report(23, what, f"counts {cursor.skipped_txns} awaited transactions; there are {len(found)}")
    if cursor.blocked != sum(each.blocked for each in found.values()):
        report(
            23, what, f"counts {cursor.blocked} messages held behind transactions; they count another number"
        )
    if found and not mine.skips:
        report(23, what, "awaits transactions, though it does not skip")
    if log is None or not mine.skips:
        return
    _check_held(view, mine, found, log, what, report)
    _check_nothing_lost(view, mine, cursor, found, log, what, report)


def _check_held(
    view: ReadView, mine: Subscription, found: dict[int, SkippedTxn], log: Log, what: str, report: Report
) -> None:
    counts = {entry.at: entry.count for entry in log.entries}
    for each in found.values():
        held = 0
        for at, messages in skipped_txns.blocked_behind(
            view, mine.subscription_id, each.txn, Position(0, -1)
        ):
            if at not in counts:
                report(23, what, f"holds {Position(*at)} behind {TxnID(each.txn)}, which is not in the log")
                continue
            held += message_set.decode(messages, counts[at]).bit_count()
        if held != each.blocked:
            report(
                23, what, f"counts {each.blocked} messages held behind {TxnID(each.txn)}; there are {held}"
            )


def _check_nothing_lost(
    view: ReadView,
    mine: Subscription,
    cursor: Cursor,
    found: dict[int, SkippedTxn],
    log: Log,
    what: str,
    report: Report,
) -> None:
    held = held_by_entry(view, mine, only_open=False)
    for entry in log.entries:
        if not cursor.mark_delete < entry.at <= cursor.read:
            continue
        if entry.kind != MESSAGES:
            if entry.txn in found:
                report(
                    19, what, f"passed the marker {Position(*entry.at)} of a transaction that it still awaits"
                )
            continue
        if entry.txn in found and entry.at > found[entry.txn].examined:
            continue
        known = cursors.acknowledged(view, mine.subscription_id, cursor, entry.at, entry.count)
        delivery = deliveries.find(view, mine.subscription_id, entry.at)
        known |= delivery.known() if delivery is not None else 0
        known |= joined(held.get(entry.at, []), entry.count)
        if known != message_set.everything(entry.count):
            report(19, what, f"has come by {Position(*entry.at)}, and some of it is nobody's")


def held_by_entry(view: ReadView, mine: Subscription, only_open: bool) -> dict[Position, list[bytes]]:
    """What is held of each entry, as stored; behind transactions that are open alone, or behind all."""
    found: dict[Position, list[bytes]] = {}
    for each in skipped_txns.every(view, mine.subscription_id):
        if only_open and records.state_of(view, each.txn) is not TransactionState.OPEN:
            continue
        for at, messages in skipped_txns.blocked_behind(
            view, mine.subscription_id, each.txn, Position(0, -1)
        ):
            found.setdefault(at, []).append(messages)
    return found


def joined(sets: list[bytes], count: int) -> int:
    """Stored sets of messages of one entry, as one."""
    held = 0
    for each in sets:
        held |= message_set.decode(each, count)
    return held

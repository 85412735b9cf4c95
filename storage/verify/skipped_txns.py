"""Check the skipped transactions of a subscription with `--on-open skip`: invariants 19 and 23.

Every message that dispatch has passed is acknowledged, in a delivery, held behind a skipped transaction, or part of a
skipped transaction and dispatched when that ends: no message is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from storage.disk.view import ReadView
from storage.subscription import acks, delivery as deliveries, message_set
from storage.subscription.cursor import Cursor
from storage.subscription.delayed import Delayed
from storage.subscription.dispatch import skipped_txns as skips
from storage.subscription.subscription import Subscription
from storage.topic.entry import MESSAGES
from storage.txn import record as records
from storage.values.position import Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState
from storage.verify.log import Log, LoggedEntry

Problem = Callable[[int, str], None]
"""Called with invariant and message."""


class SkipCheck:
    """The check of the skipped transactions of one subscription."""

    def __init__(self, view: ReadView, subscription: Subscription, cursor: Cursor, problem: Problem) -> None:
        self._view = view
        self._subscription = subscription
        self._id = subscription.subscription_id
        self._cursor = cursor
        self._problem = problem
        self._skipped = {skip.txn: skip for skip in skips.every(view, self._id)}

    def run(self, log: Log | None) -> None:
        """Check counters against records; with the log, check that no message was lost."""
        cursor, skipped = self._cursor, self._skipped
        if cursor.skipped_txns != len(skipped):
            self._problem(23, f"counts {cursor.skipped_txns} skipped transactions; there are {len(skipped)}")
        held = sum(skip.blocked for skip in skipped.values())
        if cursor.blocked != held:
            self._problem(
                23, f"counts {cursor.blocked} messages held behind transactions, whose records count {held}"
            )
        if skipped and not self._subscription.skips:
            self._problem(23, "has skipped transactions, but blocks on open ones")
        if log is None or not self._subscription.skips:
            return
        self._check_held(log)
        held_entries = held_by_entry(self._view, self._subscription, only_open=False)
        for entry in log.entries:
            if cursor.mark_delete < entry.at <= cursor.read:
                self._check_passed(entry, held_entries.get(entry.at, []))

    def _check_held(self, log: Log) -> None:
        counts = {entry.at: entry.messages for entry in log.entries}
        for skip in self._skipped.values():
            name, held = TxnID(skip.txn), 0
            for at, messages in skips.blocked_behind(self._view, self._id, skip.txn, Position(0, -1)):
                if at not in counts:
                    self._problem(23, f"holds {Position(*at)} behind {name}, which is not in the log")
                    continue
                held += message_set.decode(messages, counts[at]).bit_count()
            if held != skip.blocked:
                self._problem(23, f"counts {skip.blocked} messages held behind {name}; there are {held}")

    def _check_passed(self, entry: LoggedEntry, held_sets: list[bytes]) -> None:
        """Each message of an entry behind the read position is accounted for."""
        at, skip = Position(*entry.at), self._skipped.get(entry.txn)
        if entry.kind != MESSAGES:
            if skip is not None:
                self._problem(19, f"passed the marker {at} of a transaction that is still skipped")
            return
        if skip is not None and entry.at > skip.examined:
            return
        known = acks.acknowledged(self._view, self._id, self._cursor, entry.at, entry.messages)
        delivery = deliveries.find(self._view, self._id, entry.at)
        known |= delivery.known() if delivery is not None else 0
        known |= joined(held_sets, entry.messages)
        known |= Delayed(self._view, self._id, self._cursor).at(entry.at)
        if known != message_set.everything(entry.messages):
            self._problem(19, f"passed {at}, and lost some of its messages")


def held_by_entry(view: ReadView, subscription: Subscription, only_open: bool) -> dict[Position, list[bytes]]:
    """The held messages of each entry, as stored sets: behind open, or behind all skipped transactions."""
    held: dict[Position, list[bytes]] = {}
    for skip in skips.every(view, subscription.subscription_id):
        if only_open and records.state_of(view, skip.txn) is not TransactionState.OPEN:
            continue
        for at, messages in skips.blocked_behind(
            view, subscription.subscription_id, skip.txn, Position(0, -1)
        ):
            held.setdefault(at, []).append(messages)
    return held


def joined(stored_sets: list[bytes], count: int) -> int:
    """The union of stored sets of messages of one entry, as a bit set."""
    union = 0
    for stored in stored_sets:
        union |= message_set.decode(stored, count)
    return union

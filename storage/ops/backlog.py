"""The backlog of a subscription, split: what is visible, blocked, uncommitted, and why (semantics section 5).

Invariant 8: each stored message after markDeletePosition is in the first class that fits: acknowledged, pending, at
READ_COMMITTED aborted, uncommitted, blocked, else visible. All are counted from running counts, the aborted set's
sums and what the cursor holds; what is blocked is never scanned.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.environment import ReadView
from storage.ledger import managed_ledger
from storage.ledger.topic_head import TopicHead
from storage.position import Position
from storage.subscription import cursor as cursors, delivery as deliveries, message_set
from storage.subscription.cursor import Cursor
from storage.subscription.isolation import IsolationLevel
from storage.subscription.subscription import Subscription
from storage.txn import aborted, record as records
from storage.txn_state import TransactionState


class Backlog:
    """Messages after markDeletePosition, by class; `in_flight` is part of `visible`."""

    __slots__ = (
        "aborted",
        "acknowledged",
        "blocked",
        "in_flight",
        "pending",
        "stored",
        "uncommitted",
        "visible",
    )

    def __init__(self) -> None:
        self.stored = self.acknowledged = self.pending = self.aborted = 0
        self.uncommitted = self.blocked = self.visible = self.in_flight = 0

    def verdict(self, consumers: int) -> str:
        """ok, behind, blocked, mixed, or no-consumer."""
        if self.visible and not consumers:
            return "no-consumer"
        if self.visible and self.blocked:
            return "mixed"
        return "behind" if self.visible else "blocked" if self.blocked else "ok"


def count(view: ReadView, head: TopicHead, subscription: Subscription, cursor: Cursor) -> Backlog:
    """The backlog of a subscription, exactly."""
    topic_id, subscription_id = subscription.topic_id, subscription.subscription_id
    backlog, through = Backlog(), managed_ledger.messages_through
    backlog.stored = head.messages - through(view, topic_id, head, cursor.mark_delete)
    taken = list(_taken(view, subscription))
    backlog.acknowledged = cursors.acknowledged_count(view, topic_id, subscription_id)
    backlog.pending, backlog.in_flight = _held(view, head, subscription, cursor)
    if subscription.level is IsolationLevel.READ_COMMITTED:
        # Dispatch has acknowledged every aborted message it passed, so that aborted ones count from there on; what
        # was acknowledged or is pending beyond is looked at, entry by entry.
        passed = max(cursor.read, cursor.mark_delete)
        if cursor.pending_cumulative is not None:
            passed = max(passed, cursor.pending_cumulative[1:3])
        beyond = _classes_of(view, head, subscription, passed, taken)
        last = head.last_confirmed
        backlog.aborted = aborted.messages_between(view, topic_id, head, passed, last) - beyond["aborted"]
        backlog.uncommitted = head.uncommitted - beyond["uncommitted"]
        backlog.blocked = head.messages - through(view, topic_id, head, head.max_read) - head.uncommitted
        backlog.blocked -= (
            aborted.messages_between(view, topic_id, head, head.max_read, last) + beyond["blocked"]
        )
    backlog.visible = backlog.stored - backlog.acknowledged - backlog.pending - backlog.aborted
    backlog.visible -= backlog.uncommitted + backlog.blocked
    assert min(backlog.visible, backlog.blocked, backlog.uncommitted, backlog.aborted) >= 0, (
        "no class is negative"
    )
    return backlog


def _held(view: ReadView, head: TopicHead, subscription: Subscription, cursor: Cursor) -> tuple[int, int]:
    """Messages that are pending, and those in flight."""
    pending = in_flight = 0
    cumulative = cursor.pending_cumulative
    for found in deliveries.every(view, subscription.subscription_id):
        for part in found.parts:
            if part.holder > 0:
                in_flight += part.messages.bit_count()
            elif part.holder == deliveries.PENDING:
                messages = part.messages
                if cumulative is not None:
                    messages &= ~_covered(cumulative, found.at, found.count)
                pending += messages.bit_count()
    if cumulative is not None:
        pending += _covered_count(view, head, subscription, cursor, cumulative)
    return pending, in_flight


def _covered(cumulative: tuple[int, int, int, int], at: tuple[int, int], count: int) -> int:
    """Messages of an entry that a pending cumulative acknowledgement covers."""
    every = message_set.everything(count)
    if at < cumulative[1:3] or (at == cumulative[1:3] and cumulative[3] < 0):
        return every
    return message_set.through(cumulative[3]) & every if at == cumulative[1:3] else 0


def _covered_count(
    view: ReadView,
    head: TopicHead,
    subscription: Subscription,
    cursor: Cursor,
    cumulative: tuple[int, int, int, int],
) -> int:
    """Messages ahead of markDeletePosition, not acknowledged, that a pending cumulative one covers."""
    topic_id, at = subscription.topic_id, Position(*cumulative[1:3])
    entry = managed_ledger.read(view, topic_id, at)
    assert entry is not None, "what is acknowledged exists"
    inside = entry.count if cumulative[3] < 0 else cumulative[3] + 1
    total = entry.messages_before + inside
    total -= managed_ledger.messages_through(view, topic_id, head, cursor.mark_delete)
    for first, last, messages in cursors.ranges(view, subscription.subscription_id):
        if first > at:
            break
        if messages:
            known = int.from_bytes(messages, "big")
            total -= (known & _covered(cumulative, first, known.bit_length())).bit_count()
            continue
        end = managed_ledger.read(view, topic_id, min((first.ledger_id, last), at))
        begin = managed_ledger.read(view, topic_id, first)
        assert begin is not None and end is not None, "acknowledged entries exist"
        total -= end.messages_through - begin.messages_before
    return total


def _taken(view: ReadView, subscription: Subscription) -> Iterator[tuple[tuple[int, int], int, int]]:
    """What is acknowledged ahead or pending one by one: first position, last entry, messages (0: whole entries)."""
    subscription_id = subscription.subscription_id
    for first, last, messages in cursors.ranges(view, subscription_id):
        yield first, last, int.from_bytes(messages, "big")
    for found in deliveries.every(view, subscription_id):
        pending = found.of(deliveries.PENDING)
        if pending:
            yield found.at, found.at[1], pending


def _classes_of(
    view: ReadView,
    head: TopicHead,
    subscription: Subscription,
    after: tuple[int, int],
    taken: list[tuple[tuple[int, int], int, int]],
) -> dict[str, int]:
    """Of the messages taken beyond `after`: how many are aborted, uncommitted, or blocked."""
    found = {"aborted": 0, "uncommitted": 0, "blocked": 0}
    states: dict[int, TransactionState] = {}
    for first, last, messages in taken:
        begin = max((first[0], first[1] - 1), after)
        for entry in managed_ledger.scan(view, subscription.topic_id, begin, (first[0], last)):
            taken_here = messages.bit_count() if messages else entry.count
            if entry.txn and entry.txn not in states:
                states[entry.txn] = records.state_of(view, entry.txn)
            state = states.get(entry.txn)
            if state is TransactionState.ABORTED:
                found["aborted"] += taken_here
            elif state is TransactionState.OPEN:
                found["uncommitted"] += taken_here
            elif entry.position > head.max_read:
                found["blocked"] += taken_here
    return found

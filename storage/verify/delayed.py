"""Check the delayed messages of a subscription: records, index, counter, and entries; invariants 7, 19, 23."""

from __future__ import annotations

from collections.abc import Callable

from storage.disk.view import ReadView
from storage.subscription import acks, delayed, delivery as deliveries, message_set
from storage.subscription.cursor import Cursor
from storage.subscription.delayed import DelayedEntry
from storage.subscription.subscription import Subscription
from storage.topic import log as managed_ledger
from storage.values.position import Position

Problem = Callable[[int, str], None]
"""Called with invariant and message."""


def check_delayed(view: ReadView, subscription: Subscription, cursor: Cursor, problem: Problem) -> None:
    """Check every delayed message: it is in the log, has that delivery time, and waits nowhere else."""
    delayed_id, total = delayed.stored_under(subscription.subscription_id, cursor), 0
    index = set(delayed.due_keys(view, delayed_id))
    for entry in delayed.every(view, delayed_id):
        total += entry.messages().bit_count()
        keys = {(due_ms, entry.at) for due_ms in entry.due}
        if not keys <= index:
            problem(23, f"{entry.at} is delayed, and its due times are not in the index")
        index -= keys
        _check_entry(view, subscription, cursor, entry, problem)
    for _, at in sorted(index):
        problem(23, f"{at} is in the index of due times, and not delayed")
    if cursor.delayed != total:
        problem(23, f"counts {cursor.delayed} delayed messages; there are {total}")
    if total and not subscription.delays:
        problem(23, "has delayed messages, but delivers in the order of the log")


def _check_entry(
    view: ReadView, subscription: Subscription, cursor: Cursor, entry: DelayedEntry, problem: Problem
) -> None:
    at = Position(*entry.at)
    stored = managed_ledger.read(view, subscription.topic_id, at)
    times = stored.delivery_times if stored is not None else None
    if stored is None or stored.count != entry.count or times is None:
        problem(19, f"{at} is delayed, and the log has no such messages with a delivery time")
        return
    for due_ms, messages in entry.due.items():
        if any(times[index] != due_ms for index in message_set.indexes(messages)):
            problem(19, f"{at} is delayed until a time that is not its delivery time")
    if at > cursor.read:
        problem(19, f"{at} is delayed beyond the read position")
    delivery = deliveries.find(view, subscription.subscription_id, at)
    taken = acks.acknowledged(view, subscription.subscription_id, cursor, at, entry.count)
    taken |= delivery.known() if delivery is not None else 0
    if entry.messages() & taken:
        problem(7, f"{at} is delayed, though acknowledged or delivered")

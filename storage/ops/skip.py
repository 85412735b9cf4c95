"""Skipping visible messages of a subscription, in steps of bounded size."""

from __future__ import annotations

from storage.ledger import managed_ledger, topic_head
from storage.ledger.entry import Entry
from storage.limits import DISPATCH_SCAN_ENTRIES_MAX
from storage.subscription import awaited, cursor as cursors, delivery as deliveries, message_set, pending_ack
from storage.subscription.cursor import Cursor
from storage.subscription.subscription import Subscription
from storage.subscription.visible_set import VisibleSet
from storage.txn_state import TransactionState
from storage.view import WriteBatch


def step(
    batch: WriteBatch, mine: Subscription, cursor: Cursor, count: int, beyond_max_read: bool
) -> tuple[int, bool]:
    """Acknowledge up to `count` visible messages, in a walk of bounded length; how many, and whether that was all."""
    topic_id, head = mine.topic_id, topic_head.load(batch, mine.topic_id)
    visible = VisibleSet(batch, head, mine, cursor)
    through = visible.through if beyond_max_read or mine.skips else head.max_read
    after: tuple[int, int] = cursor.mark_delete
    skipped = looked = 0
    while after < through and skipped < count and looked < DISPATCH_SCAN_ENTRIES_MAX:
        page = managed_ledger.page(batch, topic_id, after, through)
        if not page:
            break
        for entry in page:
            if skipped >= count:
                break
            skipped += _entry(batch, mine, cursor, visible, entry, count - skipped)
            looked, after = looked + 1, (entry.ledger_id, entry.entry_id)
        cursors.advance(batch, topic_id, mine.subscription_id, cursor)
    cursors.advance(batch, topic_id, mine.subscription_id, cursor)
    return skipped, skipped >= count or after >= through or not looked


def _entry(
    batch: WriteBatch, mine: Subscription, cursor: Cursor, visible: VisibleSet, entry: Entry, room: int
) -> int:
    """Acknowledge what is visible of an entry; how many. A marker, or what was aborted, goes with it."""
    at = (entry.ledger_id, entry.entry_id)
    free = message_set.everything(entry.count)
    free &= ~cursors.acknowledged(batch, mine.subscription_id, cursor, at, entry.count)
    held = deliveries.find(batch, mine.subscription_id, at)
    free &= ~(held.of(deliveries.PENDING) if held else 0)
    free &= ~pending_ack.covered(cursor, at, entry.count)
    shown, skipped = visible.of(entry), 0
    if shown:
        free = message_set.lowest(free & shown, room)
        skipped = free.bit_count()
    elif not entry.count and awaited.find(batch, mine.subscription_id, entry.txn) is not None:
        return 0  # Dispatch goes by this marker: it has to look at what it passed over before.
    elif entry.count and visible.state(entry) is not TransactionState.ABORTED:
        return 0  # Undecided, or it waits for its key.
    elif awaited.find(batch, mine.subscription_id, entry.txn) is not None:
        # Dispatch has not come to the marker: counts must look at this entry.
        cursor.reached_undecided = True
    if free or not entry.count:
        cursors.acknowledge(
            batch, mine.topic_id, mine.subscription_id, cursor, at, max(entry.count, 1), free or 1
        )  # fmt: skip
        deliveries.settle(batch, mine.subscription_id, cursor, at, free)
    return skipped

"""Skipping visible messages of a subscription, in steps of bounded size."""

from __future__ import annotations

from storage.ledger import managed_ledger, topic_head
from storage.limits import DISPATCH_SCAN_ENTRIES_MAX
from storage.subscription import cursor as cursors, delivery as deliveries, message_set, pending_ack
from storage.subscription.cursor import Cursor
from storage.subscription.isolation import IsolationLevel, delivers
from storage.subscription.subscription import Subscription
from storage.txn.aborted import AbortedSet
from storage.view import WriteBatch


def step(
    batch: WriteBatch, mine: Subscription, cursor: Cursor, count: int, beyond_max_read: bool
) -> tuple[int, bool]:
    """Acknowledge up to `count` visible messages, in a walk of bounded length; how many, and whether that was all."""
    topic_id, head, aborted = mine.topic_id, topic_head.load(batch, mine.topic_id), AbortedSet()
    through = head.max_read
    if beyond_max_read and mine.level is IsolationLevel.READ_UNCOMMITTED:
        through = head.last_confirmed
    after: tuple[int, int] = cursor.mark_delete
    skipped = looked = 0
    while after < through and skipped < count and looked < DISPATCH_SCAN_ENTRIES_MAX:
        page = managed_ledger.page(batch, topic_id, after, through)
        if not page:
            break
        aborted.load(batch, topic_id, head, after, page[-1].position)
        for entry in page:
            if skipped >= count:
                break
            at = (entry.ledger_id, entry.entry_id)
            free = message_set.everything(entry.count) & ~cursors.acknowledged(
                batch, mine.subscription_id, cursor, at, entry.count
            )
            is_visible = delivers(mine.level, entry.kind, entry.txn, aborted.ids)
            if is_visible:
                held = deliveries.find(batch, mine.subscription_id, at)
                free &= ~(held.of(deliveries.PENDING) if held else 0)
                free &= ~pending_ack.covered(cursor, at, entry.count)
                free = message_set.lowest(free, count - skipped)
                skipped += free.bit_count()
            if free or not entry.count:
                cursors.acknowledge(
                    batch, topic_id, mine.subscription_id, cursor, at, max(entry.count, 1), free or 1
                )  # fmt: skip
                deliveries.settle(batch, mine.subscription_id, cursor, at, free)
            looked, after = looked + 1, at
        cursors.advance(batch, topic_id, mine.subscription_id, cursor)
    cursors.advance(batch, topic_id, mine.subscription_id, cursor)
    return skipped, skipped >= count or after >= through or not looked

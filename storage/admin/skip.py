"""Skip visible messages of a subscription: acknowledge without delivery, in steps of bounded size."""

from __future__ import annotations

from storage.disk.view import WriteBatch
from storage.limits import SKIP_STEP_ENTRIES_MAX
from storage.subscription import delivery as deliveries, message_set, pending_ack
from storage.subscription.dispatch import skipped_txns
from storage.subscription.dispatch.visible_set import VisibleSet
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log, state as states
from storage.topic.entry import Entry
from storage.values.txn_state import TransactionState


def step(opened: OpenSubscription[WriteBatch], count: int, beyond_max_read: bool) -> tuple[int, bool]:
    """Acknowledge up to `count` visible messages, in one walk of bounded length over the log.

    Args:
        beyond_max_read: continue behind maxReadPosition.

    Returns:
        The number of acknowledged messages, and whether the skip is complete: `count` reached, or the log at its end.
    """
    batch, topic_id = opened.view, opened.topic_id
    state = states.load(batch, topic_id)
    visible = VisibleSet(batch, state, opened.subscription)
    through = visible.through if beyond_max_read or opened.subscription.skips else state.max_read
    after = opened.cursor.mark_delete
    skipped = looked = 0
    while after < through and skipped < count and looked < SKIP_STEP_ENTRIES_MAX:
        page = log.page(batch, topic_id, after, through)
        if not page:
            break
        for entry in page:
            if skipped >= count:
                break
            skipped += _skip_entry(opened, visible, entry, count - skipped)
            looked, after = looked + 1 + entry.count // 32, entry.position
        opened.acks.advance()
    opened.acks.advance()
    return skipped, skipped >= count or after >= through or not looked


def _skip_entry(opened: OpenSubscription[WriteBatch], visible: VisibleSet, entry: Entry, room: int) -> int:
    """Acknowledge up to `room` visible messages of an entry, or the whole of a marker or an aborted entry.

    Returns:
        The number of acknowledged messages; a marker or an aborted entry counts 0.
    """
    at = entry.position
    free = message_set.everything(entry.count)
    free &= ~opened.acks.of(at, entry.count)
    held = opened.deliveries.find(at)
    free &= ~(held.of(deliveries.PENDING) if held else 0)
    free &= ~pending_ack.covered(opened.cursor, at, entry.count)
    shown, skipped = visible.of(entry), 0
    if shown:
        free = message_set.lowest(free & shown, room)
        skipped = free.bit_count()
    elif not entry.count and skipped_txns.find(opened.view, opened.subscription_id, entry.txn) is not None:
        return 0  # Dispatch must reach this marker: only then are the entries of the skipped transaction examined.
    elif entry.count and visible.state(entry) is not TransactionState.ABORTED:
        return 0  # The entry is undecided, or its key is blocked.
    elif skipped_txns.find(opened.view, opened.subscription_id, entry.txn) is not None:
        # Dispatch has not reached the marker yet: the backlog has to examine this entry for acknowledged messages.
        opened.cursor.has_uncommitted_acks = True
    if not entry.count:
        opened.acks.pass_marker(at)
    elif free:
        opened.acks.acknowledge(at, entry.count, free)
        opened.deliveries.settle(at, free)
    return skipped

"""What happened in a store: counts of events, transactions ended of late, and the oldest visible messages."""

from __future__ import annotations

from itertools import islice

from storage.disk.connection import Connection
from storage.disk.counters import Counters
from storage.disk.schema import TXNS
from storage.disk.view import ReadView
from storage.limits import OLDEST_VISIBLE_STEPS, RECENT_ENDS_MAX, RECENT_ENDS_MS
from storage.reports import browse
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.subscription.dispatch.visible_set import VisibleSet
from storage.subscription.subscription import Subscription
from storage.table import conflict as conflicts
from storage.topic import catalogue as topics, log, state as topic_states
from storage.topic.entry import MESSAGES, NS_PER_MS, Entry
from storage.txn import record as records
from storage.values.named_tuple import NamedTuple
from storage.values.txn_state import TransactionState


class RecentEnds(NamedTuple):
    """Transactions ended within `RECENT_ENDS_MS`, among the `RECENT_ENDS_MAX` begun last, and lost conflicts.

    Attributes:
        conflicts: transactions that lost a key of a table within that time, of the last `CONFLICTS_MAX`.
        contended: the table with the most of these conflicts; None without one.
    """

    committed: int
    aborted: int
    conflicts: int
    contended: str | None


class OldestVisible(NamedTuple):
    """The oldest visible message that a subscription has not acknowledged.

    Attributes:
        published_at_ms: None without such a message. Behind a long stretch of acknowledged or aborted messages it is
            the publish time of the last entry that was looked at, and so too early.
    """

    topic: str
    subscription: str
    published_at_ms: int | None


class StoreActivity(NamedTuple):
    """See the module."""

    counters: Counters
    ends: RecentEnds
    oldest_visible: list[OldestVisible]


def store_activity(connection: Connection) -> StoreActivity:
    """The activity of the store, from one view and one reading of the counters."""
    with connection.view() as view:
        return StoreActivity(
            connection.environment.counters(view.superblock),
            recent_ends(view),
            [
                OldestVisible(topic.full_name, subscription.name, oldest_visible_ms(view, subscription))
                for topic in topics.every(view)
                for subscription in subscriptions.every(view, topic.topic_id)
            ],
        )


def recent_ends(view: ReadView) -> RecentEnds:
    """Count the transactions ended of late, and the conflicts."""
    since_ms = view.clock.wall_ms() - RECENT_ENDS_MS
    committed = aborted = 0
    for key, _ in islice(view.scan_back(TXNS, b"", b"\xff" * 9), RECENT_ENDS_MAX):
        record = records.get(view, int.from_bytes(key, "big"))
        if record.ended_ms is not None and record.ended_ms >= since_ms:
            is_committed = record.state is TransactionState.COMMITTED
            committed, aborted = committed + is_committed, aborted + (not is_committed)
    lost = conflicts.list_conflicts(view, since_ms=since_ms)
    tables = [conflict.table for conflict in lost if conflict.table is not None]
    contended = max(sorted(set(tables)), key=tables.count, default=None)
    return RecentEnds(committed, aborted, len(lost), contended)


def oldest_visible_ms(view: ReadView, subscription: Subscription) -> int | None:
    """The publish time of the oldest visible message of a subscription; see `OldestVisible`."""
    state = topic_states.load(view, subscription.topic_id)
    cursor = cursors.load(view, subscription.subscription_id)
    visible_set = VisibleSet(view, state, subscription)
    now_ms = view.clock.wall_ns() // NS_PER_MS
    entries = log.scan(view, subscription.topic_id, cursor.mark_delete, visible_set.through)
    for step, entry in enumerate(entries, 1):
        if entry.kind != MESSAGES:
            continue
        shown = browse.unacknowledged(view, subscription, cursor, visible_set, entry)
        if shown & ~(_early(entry, now_ms) if subscription.delays else 0) or step >= OLDEST_VISIBLE_STEPS:
            return entry.publish_time
    return None


def _early(entry: Entry, now_ms: int) -> int:
    """The messages of an entry before their delivery time."""
    early = 0
    for index, time_ms in enumerate(entry.delivery_times or ()):
        if time_ms is not None and time_ms > now_ms:
            early |= 1 << index
    return early

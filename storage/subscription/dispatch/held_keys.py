"""The rule of Key_Shared: which waiting messages hold a key against later messages (invariant 21).

A message holds the key until acknowledged, or in flight at the asking consumer: in flight elsewhere, given back,
pending in a transaction, waiting for an earlier message of the key, or due and not met by dispatch yet. Two kinds hold
nothing: messages of an aborted transaction, and messages before the delivery time. With on-open skip, messages of an
open transaction hold keys as well: `blocked_keys.py` knows these.

A message that only the compacted view has holds its key like any other. A subscription may come to Key_Shared with such
messages, from a type that reads the view. Messages compacted away hold nothing: dispatch passes over them.
"""

from __future__ import annotations

from typing import Final

from storage.disk.view import ReadView
from storage.subscription import delivery as deliveries, message_set
from storage.subscription.delivery import Delivery
from storage.subscription.dispatch.delay_walk import early
from storage.subscription.isolation import IsolationLevel
from storage.subscription.subscription import Subscription
from storage.topic.compaction import compacted_view
from storage.txn import record as records
from storage.values.position import Position
from storage.values.txn_state import TransactionState

UNREAD: Final = object()
"""In place of a key that may be held later: before the delivery time, or of an open transaction."""

EntryKeys = list[object]
"""The keys held by the messages of an entry, each None without a key; empty for an entry that holds nothing."""


def held_keys(view: ReadView, subscription: Subscription, at: Position) -> EntryKeys:
    """The keys held by the waiting messages of the entry at a position; the caller knows which messages wait.

    Raises:
        CorruptStore: the entry was written, is not trimmed, and is missing.
    """
    entry = compacted_view.read_anywhere(view, subscription.topic_id, at)
    if entry is None:
        return []
    keys: EntryKeys = list(entry.keys or ())
    if entry.txn and subscription.level is not IsolationLevel.READ_UNCOMMITTED:
        state = records.state_of(view, entry.txn)
        if state is TransactionState.OPEN:
            return [UNREAD]
        if state is TransactionState.ABORTED:
            return []
    if keys and entry.delivery_times and subscription.delays:
        known = deliveries.find(view, subscription.subscription_id, at) or Delivery(at, entry.count, [])
        now_ms = view.clock.wall_ms()
        for messages in early(entry, known, message_set.everything(entry.count), now_ms).values():
            for index in message_set.indexes(messages):
                keys[index] = UNREAD
    return keys

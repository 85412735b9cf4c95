"""The messages that a subscription may deliver, in one view; for reports and for `subscriptions skip`."""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.subscription import message_set
from storage.subscription.dispatch.blocked_keys import BlockedKeys
from storage.subscription.isolation import IsolationLevel, delivers
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.topic.entry import Entry
from storage.topic.state import TopicState
from storage.txn import record as records, uncommitted_entries
from storage.values.txn_state import TransactionState

_NEVER = (TransactionState.ABORTED, TransactionState.OPEN)


class VisibleSet:
    """The messages of a topic that a subscription's level shows now, acknowledged or not.

    Attributes:
        through: no message after this position is visible.
    """

    __slots__ = ("_keys", "_states", "_subscription", "_view", "through")

    def __init__(self, view: ReadView, state: TopicState, subscription: Subscription) -> None:
        self._view = view
        self._subscription = subscription
        self._states: dict[int, TransactionState] = {}
        self._keys = BlockedKeys()
        self.through = subscription.bound(state)
        if subscription.skips and subscription.keeps_keys:
            opened = OpenSubscription(view, subscription)
            for txn, _ in uncommitted_entries.open_transactions(view, subscription.topic_id):
                self._keys.learn(opened, txn, state.last_confirmed)

    def of(self, entry: Entry) -> int:
        """The visible messages of an entry at or below `through`; none of a marker."""
        if not delivers(self._subscription.level, entry.kind, entry.txn, self._left_out(entry)):
            return 0
        messages = message_set.everything(entry.count)
        keys = entry.keys if self._keys.is_any else None
        for index in range(entry.count) if keys else ():
            key = keys[index] if keys else None
            if key is not None and self._keys.before(key, (entry.ledger_id, entry.entry_id, index)):
                messages &= ~(1 << index)
        return messages

    def _left_out(self, entry: Entry) -> set[int]:
        """The entry's transaction, if aborted, or open on a subscription that skips open transactions."""
        if not entry.txn or self._subscription.level is IsolationLevel.READ_UNCOMMITTED:
            return set()
        return {entry.txn} if self.state(entry) in _NEVER else set()

    def state(self, entry: Entry) -> TransactionState | None:
        """The state of an entry's transaction."""
        if not entry.txn:
            return None
        if entry.txn not in self._states:
            self._states[entry.txn] = records.state_of(self._view, entry.txn)
        return self._states[entry.txn]

"""The messages that a subscription may deliver, in one view; for reports, skips and acknowledgements."""

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
from storage.values.position import Position
from storage.values.txn_state import TransactionState

_NEVER = (TransactionState.ABORTED, TransactionState.OPEN)


class OpenKeys:
    """The keys of open transactions, behind which a Key_Shared subscription with on-open skip holds messages back.

    The keys are read from the log at first use, whether or not dispatch has come to the messages.

    Args:
        through: the last position that is asked about.
    """

    __slots__ = ("_keys", "_subscription", "_through", "_view")

    def __init__(self, view: ReadView, subscription: Subscription, through: Position) -> None:
        self._view = view
        self._subscription = subscription
        self._through = through
        self._keys: BlockedKeys | None = None

    def blockers(self, entry: Entry, messages: int) -> dict[int, int]:
        """The messages of an entry that wait for their key: batch index, and the transaction that blocks the key."""
        known = self._known()
        keys = entry.keys if known.is_any else None
        waiting: dict[int, int] = {}
        for index in message_set.indexes(messages) if keys else ():
            key = keys[index] if keys else None
            here = (entry.ledger_id, entry.entry_id, index)
            earlier = known.before(key, here) if key is not None else []
            if earlier:
                waiting[index] = earlier[0][1]
        return waiting

    def _known(self) -> BlockedKeys:
        known = self._keys
        if known is None:
            known = self._keys = BlockedKeys()
            if self._subscription.skips and self._subscription.keeps_keys:
                opened = OpenSubscription(self._view, self._subscription)
                known.ripen(self._view.clock.wall_ms())
                for txn, _ in uncommitted_entries.open_transactions(self._view, opened.topic_id):
                    known.learn(opened, txn, self._through)
        return known


class VisibleSet:
    """The messages of a topic that a subscription's level shows now, acknowledged or not.

    Attributes:
        through: no message after this position is visible.
    """

    __slots__ = ("_open_keys", "_states", "_subscription", "_view", "through")

    def __init__(self, view: ReadView, state: TopicState, subscription: Subscription) -> None:
        self._view = view
        self._subscription = subscription
        self._states: dict[int, TransactionState] = {}
        self._open_keys = OpenKeys(view, subscription, state.last_confirmed)
        self.through = subscription.bound(state)

    def of(self, entry: Entry) -> int:
        """The visible messages of an entry at or below `through`; none of a marker."""
        if not delivers(self._subscription.level, entry.kind, entry.txn, self._left_out(entry)):
            return 0
        messages = message_set.everything(entry.count)
        for index in self._open_keys.blockers(entry, messages):
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

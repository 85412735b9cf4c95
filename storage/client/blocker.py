"""The open transaction behind which committed messages wait, for a reader or a consumer that finds no more."""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.subscription.dispatch import skipped_txns
from storage.subscription.isolation import IsolationLevel
from storage.subscription.subscription import Subscription
from storage.topic import state
from storage.txn import record as records, uncommitted_entries
from storage.txn.blocked_count import blocked_behind
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState


class Blocked:
    """The reason why reading at READ_COMMITTED stands still: messages behind an open transaction.

    Attributes:
        messages: committed messages that wait behind the transaction.
        uncommitted: messages of open transactions.
        txn_id: the transaction that comes first.
    """

    __slots__ = ("messages", "txn_id", "uncommitted")

    def __init__(self, messages: int, uncommitted: int, txn_id: TxnID) -> None:
        self.messages = messages
        self.uncommitted = uncommitted
        self.txn_id = txn_id


def find_blocker(view: ReadView, topic_id: int, level: IsolationLevel) -> Blocked | None:
    """The open transaction at which reading a topic stops; None at READ_UNCOMMITTED, and if none is open."""
    first = uncommitted_entries.first_open(view, topic_id) if level is IsolationLevel.READ_COMMITTED else None
    if first is None:
        return None
    topic_state = state.load(view, topic_id)
    messages = blocked_behind(view, topic_id, topic_state, topic_state.max_read)
    return Blocked(messages, topic_state.uncommitted, TxnID(first[0]))


def find_key_blocker(view: ReadView, subscription: Subscription) -> Blocked | None:
    """The open transaction behind which a subscription with on-open skip holds messages back for their keys.

    Of several such transactions, the one begun first; if none holds a message back, the first open one.
    """
    blocked, holder = 0, 0
    for skipped in skipped_txns.every(view, subscription.subscription_id):
        if skipped.blocked and records.state_of(view, skipped.txn) is TransactionState.OPEN:
            blocked, holder = blocked + skipped.blocked, holder or skipped.txn
    first = uncommitted_entries.first_open(view, subscription.topic_id)
    if first is None:
        return None
    uncommitted = state.load(view, subscription.topic_id).uncommitted
    return Blocked(blocked, uncommitted, TxnID(holder or first[0]))

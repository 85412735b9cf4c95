"""Count the messages that a subscription with `--on-open skip` has skipped, by skipped transaction.

The counts come from the record of each skipped transaction, written by dispatch
(`storage/subscription/dispatch/skipped_txns.py`), and from the runs of the transaction's entries, without reading the
log.
"""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.limits import HOLDERS_SHOWN
from storage.subscription import acks, message_set
from storage.subscription.cursor import Cursor
from storage.subscription.dispatch import skipped_txns
from storage.subscription.dispatch.skipped_txns import SkippedTxn
from storage.subscription.subscription import Subscription
from storage.topic.open_topic import OpenTopic
from storage.topic.state import TopicState
from storage.txn import record as records, runs, uncommitted_entries
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState


def aborted_and_blocked(
    view: ReadView, topic_state: TopicState, subscription: Subscription, cursor: Cursor
) -> tuple[int, int]:
    """Count the messages that dispatch has skipped and not examined since.

    Returns:
        The messages of transactions aborted after the skip, and the committed messages blocked by open transactions.
    """
    aborted = blocked = 0
    read = max(cursor.read, cursor.mark_delete)
    if not cursor.skipped_txns or (read >= topic_state.last_confirmed and not cursor.blocked):
        return 0, 0  # Dispatch has passed the marker of every ended transaction, and blocks no key.
    for skipped in skipped_txns.every(view, subscription.subscription_id):
        state = records.state_of(view, skipped.txn)
        if state is TransactionState.ABORTED:
            aborted += _own(view, subscription, cursor, skipped, read)
        elif state is TransactionState.OPEN:
            blocked += skipped.blocked
    return aborted, blocked


def _own(
    view: ReadView, subscription: Subscription, cursor: Cursor, skipped: SkippedTxn, read: Position
) -> int:
    """Count the skipped transaction's messages through `read` not examined, acknowledged or pending."""
    topic_id, after = subscription.topic_id, max(skipped.examined, cursor.mark_delete)
    if after >= read:
        return 0
    if not cursor.has_uncommitted_acks:
        return runs.messages_through(view, topic_id, skipped.txn, read) - runs.messages_through(
            view, topic_id, skipped.txn, after
        )
    from storage.subscription import pending_records

    total = 0
    for entry in uncommitted_entries.entries(view, topic_id, skipped.txn, after, read):
        at = entry.position
        taken = acks.acknowledged(view, subscription.subscription_id, cursor, at, entry.count)
        for _, messages in pending_records.of_entry(view, subscription.subscription_id, at):
            taken |= message_set.decode(messages, entry.count)
        total += entry.count - taken.bit_count()
    return total


class HeldBack(NamedTuple):
    """An open transaction, and the messages withheld from a subscription with `--on-open skip` because of it.

    Attributes:
        uncommitted: messages of the transaction itself.
        blocked: committed messages behind a message of the transaction with the same key.
    """

    txn_id: TxnID
    uncommitted: int
    blocked: int


def held_back(view: ReadView, subscription: Subscription, cursor: Cursor) -> list[HeldBack]:
    """Return the first open transactions of the topic, with the messages that each withholds from a subscription.

    The list is empty for a subscription with `--on-open block`: there the first open transaction holds back the whole
    rest of the log.
    """
    if not subscription.skips:
        return []
    topic_id, rows = subscription.topic_id, []
    topic = OpenTopic.load(view, topic_id)
    for txn, first in uncommitted_entries.first_transactions(topic, HOLDERS_SHOWN):
        own = uncommitted_entries.indexed_part(view, txn, topic_id).messages
        if first <= cursor.mark_delete:
            own -= runs.messages_through(view, topic_id, txn, cursor.mark_delete)
        skipped = skipped_txns.find(view, subscription.subscription_id, txn)
        rows.append(HeldBack(TxnID(txn), own, skipped.blocked if skipped else 0))
    return rows

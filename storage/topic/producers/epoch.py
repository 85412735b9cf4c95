"""The topic epoch: raised by one with every new owner, and by an operator's fence.

Invariant 9: each grant to a new owner raises topicEpoch by one. Invariant 10: raising the epoch aborts, in the same
store transaction, every open transaction with messages of a lower epoch on the topic, because a message of a fenced
producer could appear in the past of the new owner.
"""

from __future__ import annotations

from typing import Protocol

from storage import faults
from storage.disk.view import WriteBatch
from storage.topic.open_topic import OpenTopic


class OpenTransactions(Protocol):
    """The part of transactions that a topic's producers need; implemented by storage/txn/fenced_txns.py."""

    def end_owned(self, batch: WriteBatch, lease: int) -> None:
        """End the transactions of an owner that is dead."""

    def end_fenced(self, batch: WriteBatch, topic_id: int, epoch: int, spare: int, why: str) -> list[int]:
        """Abort the open transactions with messages on a topic whose epoch becomes `epoch`, except `spare`."""


def raise_epoch(
    topic: OpenTopic[WriteBatch], transactions: OpenTransactions, taker: str, spare: int
) -> list[int]:
    """Raise the epoch of a topic by one; return the transactions that this aborted.

    Args:
        taker: the name of the new owner, or the operator's action, for the reason of the aborts.
        spare: the transaction in which the new owner itself produces; 0 for none.
    """
    state, epoch = topic.state, topic.state.epoch + 1
    aborted = transactions.end_fenced(
        topic.view, topic.topic_id, epoch, spare, f"{taker} took the topic over, epoch {epoch}"
    )
    faults.reach("producer.after_fencing")
    assert state.epoch == epoch - 1, "each grant raises the epoch by one (invariant 9)"
    state.epoch = epoch
    state.session_changes += 1
    return aborted

"""What a topic's producers ask of transactions: end those of the dead, and those of the fenced.

Invariant 10: taking a topic over aborts, in the same store transaction, every open transaction that holds messages
of a lower epoch on it. Else a message of a fenced producer could appear in its successor's past.
"""

from __future__ import annotations

from storage.disk.view import WriteBatch
from storage.process.identity import ProcessIdentity
from storage.txn import buffer, reaper
from storage.txn.coordinator import Coordinator, Ended
from storage.values.txn_state import AbortReason


class Fence:
    """See `storage.topic.producers.admission.Transactions`.

    Args:
        by: whom the aborts are ascribed to: the one that takes over.
    """

    __slots__ = ("_by", "_coordinator", "ended")

    def __init__(self, coordinator: Coordinator, by: ProcessIdentity) -> None:
        self._coordinator = coordinator
        self._by = by
        self.ended: list[Ended] = []
        """What became of those that it has ended for a take-over."""

    def end_owned(self, batch: WriteBatch, lease: int) -> None:
        """End the transactions of an owner that is found dead."""
        reaper.end_owned(batch, self._coordinator, lease, self._by)

    def end_fenced(self, batch: WriteBatch, topic_id: int, epoch: int, spare: int, why: str) -> list[int]:
        """Abort the open transactions with messages on a topic whose epoch becomes `epoch`; which ones.

        Args:
            spare: the one that the new owner itself produces in: its messages stand under the new epoch. 0 for none.
        """
        ended = []
        for txn, _ in buffer.open_transactions(batch, topic_id):
            if txn == spare:
                buffer.accept(batch, txn, topic_id, epoch)
            else:
                self.ended.append(self._coordinator.abort(batch, txn, self._by, AbortReason.FENCED, why))
                ended.append(txn)
        return ended

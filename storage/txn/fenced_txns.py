"""End the open transactions of dead and of fenced producers.

Invariant 10: taking a topic over aborts, in the same store transaction, every open transaction with messages of a lower
epoch on the topic. Else a message of a fenced producer could appear in the past of the new owner.
"""

from __future__ import annotations

from storage.disk.view import WriteBatch
from storage.process.identity import ProcessIdentity
from storage.txn import reaper
from storage.txn.coordinator import Coordinator, Ended
from storage.values.txn_state import AbortReason


class FencedTransactions:
    """Implements `storage.topic.producers.epoch.OpenTransactions`.

    Attributes:
        ended: the transactions that a take-over has fenced.
        ended_owned: those that ended with their dead owner on the way.

    Args:
        process: the process that takes over, to which the aborts are ascribed.
    """

    __slots__ = ("_coordinator", "_process", "ended", "ended_owned")

    def __init__(self, coordinator: Coordinator, process: ProcessIdentity) -> None:
        self._coordinator = coordinator
        self._process = process
        self.ended: list[Ended] = []
        self.ended_owned: list[Ended] = []

    def end_owned(self, batch: WriteBatch, lease: int) -> None:
        """End the transactions of an owner that is dead."""
        self.ended_owned += reaper.end_owned(batch, self._coordinator, lease, self._process)

    def end_fenced(self, batch: WriteBatch, topic_id: int, epoch: int, spare: int, why: str) -> list[int]:
        """Abort the open transactions with messages on a topic whose epoch becomes `epoch`; return the numbers.

        Args:
            spare: the transaction of the new owner itself: its messages stand under the new epoch. 0 for none.
        """
        from storage.txn import uncommitted_entries

        ended = []
        for txn, _ in uncommitted_entries.open_transactions(batch, topic_id):
            if txn == spare:
                uncommitted_entries.accept(batch, txn, topic_id, epoch)
            else:
                self.ended.append(self._coordinator.abort(batch, txn, self._process, AbortReason.FENCED, why))
                ended.append(txn)
        return ended

"""The arbiter of conflicts: abort the loser, and record the conflict.

Invariant 17: a doomed transaction never commits. Every doom is durable before its error is raised.
"""

from __future__ import annotations

from storage.actions import Action, Hint
from storage.disk.view import DurableRefusal, WriteBatch
from storage.process.identity import ProcessIdentity
from storage.table import conflict as conflicts, push, read, retention
from storage.table.conflict import DoomCause
from storage.table.visibility import OPEN
from storage.txn import record as records
from storage.txn.coordinator import Coordinator
from storage.txn.record import TransactionRecord
from storage.values.txn_state import AbortReason


def survives(pusher: TransactionRecord, holder: TransactionRecord) -> bool:
    """Whether the first transaction wins a push against the second."""
    return push.wins(pusher.priority, pusher.timestamp, holder.priority, holder.timestamp)


class Arbiter:
    """The arbiter of one batch.

    Args:
        process: the process named in the record of each abort.
    """

    __slots__ = ("_batch", "_coordinator", "_process")

    def __init__(self, batch: WriteBatch, coordinator: Coordinator, process: ProcessIdentity) -> None:
        self._batch = batch
        self._coordinator = coordinator
        self._process = process

    def doom(self, loser: TransactionRecord, reason: AbortReason, conflict: DoomCause) -> None:
        """Abort a transaction over a conflict, completely, and record the conflict."""
        self._coordinator.doom(self._batch, loser, reason, self._process, conflict.fields())
        conflicts.note(self._batch, loser, conflict)

    def doom_other(self, loser: TransactionRecord, winner: TransactionRecord, table: str, key: bytes) -> None:
        """Abort the holder of a key that lost a push."""
        conflict = DoomCause(conflicts.PUSH, table, key, winner.txn_id, winner.timestamp)
        self.doom(loser, AbortReason.LOST_CONFLICT, conflict)

    def lose(
        self, loser: TransactionRecord, winner: TransactionRecord, table: str, key: bytes
    ) -> DurableRefusal:
        """Abort the transaction that wanted a key of a stronger holder; return the error to raise."""
        conflict = DoomCause(conflicts.HELD, table, key, winner.txn_id, winner.timestamp)
        self.doom(loser, AbortReason.LOST_CONFLICT, conflict)
        return self._batch.refuse(conflicts.lost(self._batch, loser, conflict, winner))

    def push_for_read(self, reader: TransactionRecord, met: read.MustPush, table: str) -> None:
        """Abort the reader or the holder of an intent in the way. A surviving reader reads again.

        Raises:
            LostConflict: the reader lost.
        """
        holder = records.get(self._batch, met.txn)
        if holder.state_code != OPEN:
            return
        if survives(reader, holder):
            self.doom_other(holder, reader, table, met.key)
            return
        raise self.lose(reader, holder, table, met.key)

    def check_window(self, record: TransactionRecord) -> None:
        """Check that a transaction is not older than the oldest retained version.

        Raises:
            RequestTooOld: the transaction is older. The doom is durable.
        """
        if retention.is_kept(self._batch, record.timestamp):
            return
        why = "is older than the versions that are kept"
        hint = Hint(
            "Begin a new one; `{}` shows how long versions are kept.", Action("store.reports.store_info")
        )
        raise self._too_old(record, why, hint)

    def begin_use(self, record: TransactionRecord) -> None:
        """Note the first operation of a transaction on any table in its open record.

        Raises:
            RequestTooOld: the transaction has consumed a message newer than its own timestamp. The doom is durable.
        """
        if not record.uses_tables and record.consumed > record.timestamp:
            why = (
                "began before a message that it consumed was there to be read, so tables cannot be used in it"
            )
            hint = "Begin the transaction after receiving."
            raise self._too_old(record, why, hint)
        record.uses_tables = True

    def _too_old(self, record: TransactionRecord, why: str, hint: str) -> DurableRefusal:
        """Doom a transaction for its age; return the error to raise."""
        self.doom(record, AbortReason.REFUSED_WRITE, DoomCause(conflicts.TOO_OLD, "", b""))
        return self._batch.refuse(conflicts.too_old(record, why, hint))

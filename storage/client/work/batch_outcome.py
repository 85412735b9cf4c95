"""The outcome of one batch of a transaction, in doubt after an interrupt between the commit and the return.

The outcome is read off the transaction's record. Every batch that writes for a transaction adds one to the record's
version, and so does its end: the version is a count of writes (docs/decisions/0025).
"""

from __future__ import annotations

from collections.abc import Callable

from storage.disk.view import ReadView
from storage.txn import record as records
from storage.txn.record import TransactionRecord
from storage.values.txn_state import TransactionState


class BatchOutcome:
    """One batch, and whether the batch is committed; see the module.

    Attributes:
        settle: called once the batch is known to be committed, until a call returns.
    """

    __slots__ = ("_ends", "_record", "_version", "settle")

    def __init__(self, settle: Callable[[], None], *, ends: bool) -> None:
        """Args:
        ends: the batch decides the transaction.
        """
        self._ends = ends
        self._record: TransactionRecord | None = None
        self._version = 0
        self.settle = settle

    def note_start(self, record: TransactionRecord) -> None:
        """The batch runs, maybe once more, with this record."""
        self._record, self._version = record, 0

    def note_end(self, record: TransactionRecord) -> None:
        """The batch is complete; the record is as saved."""
        self._record, self._version = record, record.version

    @property
    def txn_id(self) -> int:
        """The number that the batch wrote, or tried to write; 0 if it had not come to the record."""
        return 0 if self._record is None else self._record.txn_id

    def find_record(self, view: ReadView, txn_id: int) -> TransactionRecord | None:
        """The transaction's record in the store, or None.

        Args:
            txn_id: 0 if the transaction had no record before the batch. A number that the batch did not commit may
                have gone to a transaction of another process.
        """
        if txn_id:
            return records.find(view, txn_id)
        tried = self._record
        stored = None if tried is None else records.find(view, tried.txn_id)
        return stored if stored is not None and _identity(stored) == _identity(tried) else None

    def is_committed(self, stored: TransactionRecord) -> bool:
        """Whether the batch is committed, given the transaction's record from the store."""
        tried = self._record
        if tried is None or not self._version:
            return False
        if self._ends:
            return stored.state is tried.state
        # An end that was decided elsewhere, of a dead owner for instance, is a write too, and none of this batch.
        writes = stored.version - (stored.state is not TransactionState.OPEN)
        if writes != self._version:
            return writes > self._version
        return stored.used_ns == tried.used_ns


def _identity(record: TransactionRecord | None) -> tuple[object, ...]:
    return () if record is None else (record.timestamp, record.owner_fields, record.deadline_ns)

"""The outbox and the write set of one transaction, taken into a batch together."""

from __future__ import annotations

from storage.client.work.outbox import Outbox
from storage.client.work.write_set import WriteSet
from storage.disk.view import WriteBatch
from storage.table.key_range import KeyRange
from storage.table.visibility import Version
from storage.txn.record import TransactionRecord


class Buffers:
    """A part made of parts; see `Part`.

    A fenced producer is found before keys are judged, and keys are judged before anything is written, so that a refusal
    leaves nothing but the doom of its transaction. The losers of pushes are aborted before messages are appended.
    """

    __slots__ = ("outbox", "write_set")

    def __init__(self, outbox: Outbox, write_set: WriteSet) -> None:
        self.outbox = outbox
        self.write_set = write_set

    @property
    def is_empty(self) -> bool:
        return self.outbox.is_empty and self.write_set.is_empty

    def check(self, batch: WriteBatch, record: TransactionRecord) -> None:
        self.outbox.check(batch, record)
        self.write_set.check(batch, record)

    def apply(self, batch: WriteBatch, record: TransactionRecord, *, commits: bool) -> None:
        self.write_set.apply(batch, record, commits=commits)
        self.outbox.apply(batch, record, commits=commits)

    def settle(self) -> None:
        self.outbox.settle()
        self.write_set.settle()

    def discard(self) -> None:
        self.outbox.discard()
        self.write_set.discard()

    def merged(
        self,
        table_id: int,
        rows: list[tuple[bytes, Version]],
        part: KeyRange,
        rest: KeyRange | None,
        version: tuple[int, int],
    ) -> list[tuple[bytes, Version]]:
        """A page of rows with the buffered writes among them; see `WriteSet.merged`."""
        return self.write_set.merged(table_id, rows, part, rest, version)

"""The buffered content of one transaction: its parts, outbox and write set, and how a batch takes both."""

from __future__ import annotations

from typing import Protocol

from storage.client.work.outbox import Outbox
from storage.client.work.write_set import WriteSet
from storage.disk.view import WriteBatch
from storage.table.key_range import KeyRange
from storage.table.visibility import Row
from storage.txn.record import TransactionRecord


class Part(Protocol):
    """Buffered content of one kind. In a batch every part is checked first; then the parts are applied.

    A batch may come to nothing, or run again, so `check` and `apply` change the batch and the record only, and
    prepare for `settle`. `settle` and `discard` may be interrupted, and are then repeated.
    """

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""

    def check(self, batch: WriteBatch, record: TransactionRecord) -> None:
        """See that the content may be written.

        Raises:
            TxnctlError: nothing is written. A durable refusal leaves the doom of the transaction.
        """

    def apply(self, batch: WriteBatch, record: TransactionRecord, *, commits: bool) -> None:
        """Write the content, after every part has passed its check.

        Args:
            commits: the transaction commits in this batch, instead of staying open.
        """

    def settle(self) -> None:
        """Drop the content, which is committed."""

    def discard(self) -> None:
        """Drop the content, which never will be committed."""


class Buffers:
    """A part made of parts.

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

    @property
    def size(self) -> int:
        """The bytes buffered."""
        return self.outbox.size + self.write_set.size

    def check(self, batch: WriteBatch, record: TransactionRecord) -> None:
        if not self.outbox.is_empty:
            self.outbox.check(batch, record)
        self.write_set.check(batch, record)

    def apply(self, batch: WriteBatch, record: TransactionRecord, *, commits: bool) -> None:
        self.write_set.apply(batch, record, commits=commits)
        if not self.outbox.is_empty:
            self.outbox.apply(batch, record, commits=commits)

    def settle(self) -> None:
        if not self.outbox.is_empty:
            self.outbox.settle()
        self.write_set.settle()

    def discard(self) -> None:
        self.outbox.discard()
        self.write_set.discard()

    def merged(
        self,
        table_id: int,
        rows: list[Row],
        part: KeyRange,
        rest: KeyRange | None,
        version: tuple[int, int],
    ) -> list[Row]:
        """A page of rows with the buffered writes among them; see `WriteSet.merged`."""
        return self.write_set.merged(table_id, rows, part, rest, version)

"""Kept records: the superblock, states, cursors and counts of the last commit, for the next batch of the process.

Every commit of a topic reads, checks and decodes the few records that the commit before has encoded. A committed batch
leaves them here instead. The next batch takes them if no commit of any process came in between, which the numbers of
LMDB's transactions tell. A batch that comes to nothing may have changed the objects, so it leaves none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from storage.disk.schema import CURSORS, HEADS, Database

if TYPE_CHECKING:
    from storage.disk.superblock import Superblock
    from storage.disk.view import WriteBatch


class OpenRecord(Protocol):
    """An object that stands under one key, and that a batch writes when the batch finishes."""

    def encode(self) -> bytes: ...


Records = dict[tuple[Database, bytes], tuple[OpenRecord, memoryview | bytes | None]]
"""Open records by database and key, each with the payload that is stored, or None."""

_KEPT: Final = (HEADS, CURSORS)
_RECORDS_MAX: Final = 64


class KeptRecords:
    """See the module. An environment of LMDB and the number of a write transaction in it name a commit.

    Attributes:
        commit: environment and number of the commit that left the records.
        superblock: as committed; None before the first commit.
        records: records as committed, at most 64.
        counts: the numbers of records of some databases, as committed.
    """

    __slots__ = ("commit", "counts", "records", "superblock")

    def __init__(self) -> None:
        self.commit: tuple[Any, int] = (None, 0)
        self.superblock: Superblock | None = None
        self.records: Records = {}
        self.counts: dict[Database, int] = {}

    def take(self, environment: Any, number: int) -> KeptRecords | None:
        """Leave the records to the batch that begins as `number`; None if another commit came in between."""
        is_next = self.commit == (environment, number - 1)
        self.commit = (None, 0)
        return self if is_next else None

    def has(self, environment: Any, number: int) -> bool:
        """Whether what is kept is of commit `number`: records and counts are as a view of that commit shows them."""
        return self.commit == (environment, number)

    def keep(self, environment: Any, number: int, batch: WriteBatch) -> None:
        """Keep the records of a batch that was committed as `number`."""
        kept = batch.kept
        for name in batch.open_records:
            record, payload = batch.open_records[name]
            if payload and name[0] in _KEPT:
                kept[name] = record, payload
        self.superblock, self.records = batch.superblock, kept if len(kept) <= _RECORDS_MAX else {}
        self.counts = batch.counts
        # The commit comes last: an interrupt (Ctrl-C) before leaves nothing, not the records of an earlier commit.
        self.commit = environment, number

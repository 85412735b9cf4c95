"""The puts and deletions that a transaction has made in tables and that are not written yet, by table and key.

A flush writes intents. The commit writes committed versions with all checks, and needs no intent.
"""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.view import WriteBatch
from storage.limits import BUFFER_BYTES_MAX, BUFFER_KEYS_MAX
from storage.table import catalogue as tables
from storage.table.key_range import KeyRange
from storage.table.visibility import Row
from storage.table.write import Write, Writing
from storage.txn.coordinator import Coordinator
from storage.txn.record import TransactionRecord

Rows = list[Row]


class WriteSet:
    """A part of a transaction; see the module and `Part`.

    Attributes:
        is_empty: whether there is nothing to write.
    """

    __slots__ = (
        "_bytes", "_connection", "_coordinator", "_has_unborn", "_keys_max", "_writes", "_writing", "is_empty",
    )  # fmt: skip

    def __init__(
        self, connection: Connection, coordinator: Coordinator, keys_max: int = BUFFER_KEYS_MAX
    ) -> None:
        """Args:
        keys_max: the capacity; a write set of 0 keys takes nothing, so that every write is placed at once.
        """
        self._connection = connection
        self._coordinator = coordinator
        self._keys_max = keys_max
        self._writes: dict[tuple[int, bytes], Write] = {}
        self._bytes = 0
        self._has_unborn = False
        self._writing: Writing | None = None
        self.is_empty = True

    @property
    def is_immediate(self) -> bool:
        """Whether the set takes nothing."""
        return not self._keys_max

    @property
    def size(self) -> int:
        """The bytes buffered."""
        return self._bytes

    def keys(self) -> list[tuple[str, bytes]]:
        """The keys written, each with the name of its table."""
        return [(write.table, write.key) for write in self._writes.values()]

    def has_room(self, write: Write) -> bool:
        """Whether a write fits. A value above the bound is buffered alone."""
        if self.is_empty:
            return self._keys_max > 0
        return len(self._writes) < self._keys_max and self._bytes + write.size <= BUFFER_BYTES_MAX

    def add(self, write: Write) -> None:
        """Buffer a write in place of an earlier one of its key."""
        name = write.table_id, write.key
        self.is_empty = False
        if write.table_id < 0:
            self._has_unborn = True
        if name in self._writes:
            self._bytes -= self._writes.pop(name).size
        self._writes[name] = write
        self._bytes += write.size

    def find(self, table_id: int, key: bytes) -> Write | None:
        """The buffered write of a key, or None."""
        return self._writes.get((table_id, key))

    def merged(
        self, table_id: int, rows: Rows, part: KeyRange, rest: KeyRange | None, version: tuple[int, int]
    ) -> Rows:
        """A page of rows with the buffered writes among them.

        Args:
            part: the range that was asked for.
            rest: the part of the range behind the page; None if the page reaches the end.
            version: timestamp and number of the transaction.
        """
        own = {
            key: write.value
            for (table, key), write in self._writes.items()
            if table == table_id and part.has(key) and (rest is None or not rest.has(key))
        }
        if not own:
            return rows
        merged = [row for row in rows if row.key not in own]
        merged += [Row(key, value, *version) for key, value in own.items() if value is not None]
        return sorted(merged, reverse=part.reverse)

    def check(self, batch: WriteBatch, record: TransactionRecord) -> None:
        """See that every key may be written.

        Raises:
            WriteTooOld, LostConflict, RequestTooOld: the transaction is doomed, durably.
            TableNotFound
        """
        self._writing = None
        if not self.is_empty:
            writes = [*self._writes.values()]
            if self._has_unborn:
                writes = _with_tables(batch, writes)
            self._writing = Writing(batch, self._coordinator, record, self._connection.identity, writes)
            self._writing.judge()

    def apply(self, batch: WriteBatch, record: TransactionRecord, *, commits: bool) -> None:  # noqa: ARG002
        """Write committed versions if the transaction commits in this batch, else intents."""
        if self._writing is not None:
            if commits:
                self._writing.commit()
            else:
                self._writing.place()

    def settle(self) -> None:
        """Drop the writes, which are committed, or stand in the store as intents."""
        self._writes, self.is_empty = {}, True
        self._bytes, self._has_unborn, self._writing = 0, False, None

    discard = settle


def _with_tables(batch: WriteBatch, writes: list[Write]) -> list[Write]:
    """The writes, each with the number of its table; a missing table is created if it was unborn at the write.

    An unborn table goes by its name: this transaction, or a different one, may have created the table meanwhile.
    """
    unborn = {write.table for write in writes if write.table_id < 0}
    if not unborn:
        return writes
    born = {name: tables.find_or_create(batch, name) for name in sorted(unborn)}
    by_key: dict[tuple[int, bytes], Write] = {}
    for write in writes:
        entry = write.entry if write.table_id > 0 else born[write.table]
        # Two handles may have put one key, each into a table unborn by a number of its own: the later write counts.
        by_key[entry.table_id, write.key] = Write(entry, write.key, write.value)
    return list(by_key.values())

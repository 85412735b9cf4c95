"""Write rows in a transaction, within one batch: first judge all keys, then write.

A write is refused if its key, or a range with the key, was read by a later transaction, or has a committed version at
or after the writer's timestamp; both are judged before any push (K2-3SI). Then every foreign intent in progress is
pushed. Rows are written only after all keys have passed, so that a refusal leaves nothing but the transaction's doom.

Invariants: 12 (the check against the read cache and the write are one store transaction, and the gate keeps reads from
being recorded meanwhile), 17, 18.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from storage import faults
from storage.disk.shared_state import LaterRead
from storage.disk.view import WriteBatch
from storage.limits import TABLE_KEY_BYTES_MAX, TABLE_VALUE_BYTES_MAX
from storage.process.identity import ProcessIdentity
from storage.table import conflict as conflicts, intent as intents, read, retention, row as rows
from storage.table.arbiter import Arbiter, survives
from storage.table.catalogue import TableEntry, check_exists
from storage.table.conflict import DoomCause
from storage.table.intent import RowWriter
from storage.table.visibility import COMMITTED, OPEN, StateOf, StoredRow, Version, newest
from storage.txn import record as records
from storage.txn.coordinator import Coordinator, Ended
from storage.txn.record import TransactionRecord
from storage.values.txn_state import AbortReason

KEYS_SHOWN_MAX = 20
"""Keys that the record of a transaction keeps where no intents name them."""


class Write:
    """A key to be written; the value None deletes the key.

    Attributes:
        size: bytes of key and value.
    """

    __slots__ = ("entry", "key", "size", "table", "table_id", "value")

    def __init__(self, entry: TableEntry, key: bytes, value: bytes | None) -> None:
        """Raises:
        InvalidValue: of key or value.
        """
        size = len(key) if type(key) is bytes else 0
        if not 0 < size <= TABLE_KEY_BYTES_MAX:
            rows.check_key(key)
        if value is not None:
            value_bytes = len(value) if type(value) is bytes else -1
            if not 0 <= value_bytes <= TABLE_VALUE_BYTES_MAX:
                rows.check_value(value)
            size += value_bytes
        self.entry = entry
        self.table_id = entry.table_id
        self.table = entry.name
        self.key = key
        self.value = value
        self.size = size


class Writing:
    """The writes of one transaction in one batch: `judge` passes every key, then `place` or `commit` writes."""

    def __init__(
        self,
        batch: WriteBatch,
        coordinator: Coordinator,
        record: TransactionRecord,
        process: ProcessIdentity,
        writes: Sequence[Write],
    ) -> None:
        self._batch = batch
        self._record = record
        self._coordinator = coordinator
        self._process = process
        self._writes = writes
        self._writers: dict[int, RowWriter] = {}
        self._rows: list[tuple[Write, RowWriter, StoredRow]] = []
        self._losers: list[tuple[TransactionRecord, Write]] = []

    def judge(self) -> None:
        """Pass only if every key may be written. Only a refusal changes anything, but for the use of tables.

        Raises:
            TableNotFound: the table of a write was deleted.
            WriteTooOld, LostConflict, RequestTooOld: the transaction is doomed, durably.
        """
        self._load()
        batch, record = self._batch, self._record
        if not record.uses_tables:
            self._arbiter.begin_use(record)
        if not retention.is_in_window(batch.superblock, batch.clock, batch.wall_ns, record.timestamp):
            self._arbiter.check_window(record)
        later = batch.read_cache.find_later_read(batch.superblock, self._writes, record.timestamp)
        if later is not None:
            self._refuse_over(later)
        look_up: StateOf | None = None
        for write, _, row in self._rows:
            version = row.committed
            if row.intent is not None:
                look_up = look_up or read.state_of(batch)
                version = newest(row, record.txn_id, look_up)
            if version is not None and version.version >= record.timestamp:
                cause = (write.table, write.key, version.txn, version.version)
                self._refuse(DoomCause(conflicts.VERSION, *cause))
        self._losers = []
        if look_up is not None:
            self._judge_intents(look_up)

    def _judge_intents(self, look_up: StateOf) -> None:
        """Note the intents in progress that are to be pushed, unless the holder of one is stronger."""
        me, pushed = self._record.txn_id, dict[int, Write]()
        for write, _, row in self._rows:
            intent = row.intent
            if intent is not None and intent.txn != me and look_up(intent.txn) == OPEN:
                pushed.setdefault(intent.txn, write)
        self._losers = [(records.get(self._batch, txn), write) for txn, write in pushed.items()]
        for holder, write in self._losers:
            if not survives(self._record, holder):
                self._lose(write.table, write.key, holder)

    @property
    def _arbiter(self) -> Arbiter:
        """The arbiter of the batch, which few transactions need."""
        return Arbiter(self._batch, self._coordinator, self._process)

    def place(self) -> None:
        """Leave intents."""
        if self._losers:
            self._doom_losers()
        faults.reach("table.before_write")
        record, new = self._record, {write.table_id: 0 for write in self._writes}
        for write, writer, judged in self._rows:
            row = self._own(writer, write.key, judged)
            written = Version(record.timestamp, record.txn_id, write.value)
            new[write.table_id] += writer.place(write.key, row, written)
        for table_id, count in new.items():
            before = intents.count_of(self._batch, record.txn_id, table_id)
            intents.save_count(self._batch, record.txn_id, table_id, before + count)

    def commit(self) -> None:
        """Write committed versions without intents: the transaction is decided in this batch."""
        if self._losers:
            self._doom_losers()
        faults.reach("table.before_write")
        record = self._record
        written: dict[int, list[tuple[bytes, StoredRow, bytes | None]]] = {}
        for write, writer, judged in self._rows:
            row, table_id = judged, write.table_id
            if judged.intent is not None:
                row = self._own(writer, write.key, judged)
                if row.intent is not None:
                    left = intents.count_of(self._batch, record.txn_id, table_id) - 1
                    intents.save_count(self._batch, record.txn_id, table_id, left)
            if table_id not in written:
                written[table_id] = []
            written[table_id] += ((write.key, row, write.value),)
        shown: list[list[Any]] = []
        for table_id in written:
            writes = written[table_id]
            self._writers[table_id].write(writes, record.timestamp, record.txn_id)
            keys: list[bytes] = []
            for key, _, _ in writes[:KEYS_SHOWN_MAX]:
                keys += (key,)
            shown += ([table_id, len(writes), keys],)
        record.written = shown

    def _load(self) -> None:
        """Find the rows as they are stored.

        Raises:
            TableNotFound: the table of a write was deleted.
        """
        by_table: dict[int, list[Write]] = {}
        for write in self._writes:
            if write.table_id not in by_table:
                by_table[write.table_id] = []
            by_table[write.table_id] += (write,)
        self._rows = []
        for table_id in by_table:
            writes = by_table[table_id]
            if table_id not in self._writers:
                writer = self._writers[table_id] = RowWriter(self._batch, writes[0].entry)
                if writer.state is None:
                    check_exists(self._batch, writes[0].entry)
            writer = self._writers[table_id]
            stored = writer.load_all(writes)
            self._rows += zip(writes, repeat(writer), stored, strict=False)

    def _doom_losers(self) -> None:
        """Abort the holders of intents that lost the push."""
        for loser, write in self._losers:
            self._arbiter.doom_other(loser, self._record, write.table, write.key)
        # Aborting has finalised rows: read again.
        self._load()

    def _own(self, writer: RowWriter, key: bytes, row: StoredRow) -> StoredRow:
        """The row without a foreign intent: an intent of a decided transaction is finalised on the way."""
        intent = row.intent
        if intent is None or intent.txn == self._record.txn_id:
            return row
        state = records.state_code(self._batch, intent.txn)
        assert state != OPEN, "an intent in progress was pushed before"
        return writer.finalize(key, row, state == COMMITTED)

    # Judging

    def _refuse_over(self, later: LaterRead) -> None:
        table = next(write.table for write in self._writes if write is later.place)
        self._refuse(DoomCause(conflicts.READ, table, later.place.key, later.txn, later.timestamp))

    def _refuse(self, conflict: DoomCause) -> None:
        self._arbiter.doom(self._record, AbortReason.REFUSED_WRITE, conflict)
        raise self._batch.refuse(conflicts.write_too_old(self._record, conflict))

    def _lose(self, table: str, key: bytes, winner: TransactionRecord) -> None:
        raise self._arbiter.lose(self._record, winner, table, key)


def commit_in(coordinator: Coordinator, batch: WriteBatch, txn_id: int, process: ProcessIdentity) -> Ended:
    """Commit a transaction by its number; after a use of tables it must not be older than the kept versions.

    Raises:
        RequestTooOld, TransactionNotFound, TransactionNotOpen, TransactionTimedOut, ProducerFenced
    """

    def prepare(record: TransactionRecord) -> None:
        if record.uses_tables:
            Arbiter(batch, coordinator, process).check_window(record)

    return coordinator.commit(batch, txn_id, process, prepare)

"""Writing in a transaction, within one batch: first everything is judged, then it is written.

A write is refused if its key, or a range over it, was read by a later transaction, or has a committed version at or
after the writer's timestamp; these two are judged before any push (K2-3SI). Then every foreign intent in progress is a
push. Only when all keys have passed is anything written, so that a refusal leaves the doom and nothing else.

Invariants: 12 (the check against the read cache and the write are one store transaction, and the gate keeps reads from
being recorded meanwhile), 17, 18.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage import faults
from storage.disk.view import DurableRefusal, ReadView, WriteBatch
from storage.process.identity import ProcessIdentity
from storage.table import conflict as conflicts, intent as intents, push, read, retention
from storage.table.catalogue import TableEntry, check_exists
from storage.table.conflict import Conflict
from storage.table.intent import RowWriter
from storage.table.visibility import COMMITTED, OPEN, Row, StateOf, Version, newest
from storage.txn import record as records
from storage.txn.coordinator import Coordinator, Ended
from storage.txn.record import TransactionRecord
from storage.values.txn_state import AbortReason

KEYS_SHOWN_MAX = 20
"""Keys that the record of a transaction keeps where no intents of it tell them."""


class Write:
    """A key to be written; the value None deletes it."""

    __slots__ = ("key", "table", "table_id", "value")

    def __init__(self, table_id: int, table: str, key: bytes, value: bytes | None) -> None:
        self.table_id = table_id
        self.table = table
        self.key = key
        self.value = value


class Writing:
    """The writes of one transaction in one batch: `check` judges every key, then `place` or `commit` writes."""

    def __init__(
        self,
        batch: WriteBatch,
        coordinator: Coordinator,
        record: TransactionRecord,
        by: ProcessIdentity,
        writes: Sequence[Write],
    ) -> None:
        self._batch = batch
        self._coordinator = coordinator
        self._record = record
        self._by = by
        self._writes = writes
        self._writers: dict[int, RowWriter] = {}
        self._rows: list[tuple[Write, Row]] = []
        self._losers: list[tuple[TransactionRecord, Write]] = []

    def check(self) -> None:
        """Pass only if every key may be written. Nothing is changed but by a refusal.

        Raises:
            WriteTooOld, LostConflict, RequestTooOld: the transaction is doomed, durably.
        """
        check_window(self._batch, self._coordinator, self._record, self._by)
        look_up = read.state_of(self._batch)
        self._load()
        self._check_reads()
        for write, row in self._rows:
            self._check_versions(write, row, look_up)
        pushed: dict[int, Write] = {}
        for write, row in self._rows:
            intent = row.intent
            if intent is not None and intent.txn != self._record.txn_id and look_up(intent.txn) == OPEN:
                pushed.setdefault(intent.txn, write)
        self._losers = [(records.get(self._batch, txn), write) for txn, write in pushed.items()]
        for holder, write in self._losers:
            if not survives(self._record, holder):
                self._lose(write.table, write.key, holder)

    def place(self) -> None:
        """Leave intents. The record is saved by the caller, with the rest of the batch."""
        self._doom_losers()
        record, new = self._record, {write.table_id: 0 for write in self._writes}
        for write, judged in self._rows:
            writer = self._writer(write.table_id)
            row = self._own(writer, write.key, judged)
            new[write.table_id] += writer.place(write.key, row, self._version(write))
        for table_id, count in new.items():
            before = intents.count_of(self._batch, record.txn_id, table_id)
            intents.save_count(self._batch, record.txn_id, table_id, before + count)
        self._finish()

    def commit(self) -> None:
        """Write committed versions without intents: the transaction is decided in this batch, for all it touched."""
        self._doom_losers()
        shown: dict[int, list[bytes]] = {}
        for write, judged in self._rows:
            writer = self._writer(write.table_id)
            row = self._own(writer, write.key, judged)
            if row.intent is not None:
                left = intents.count_of(self._batch, self._record.txn_id, write.table_id) - 1
                intents.save_count(self._batch, self._record.txn_id, write.table_id, left)
            writer.write(write.key, row, self._version(write))
            shown.setdefault(write.table_id, []).append(write.key)
        self._record.written = [
            [table_id, len(keys), keys[:KEYS_SHOWN_MAX]] for table_id, keys in shown.items()
        ]
        self._finish()

    def _load(self) -> None:
        self._rows = [(write, self._writer(write.table_id).load(write.key)) for write in self._writes]

    def _doom_losers(self) -> None:
        """Abort the holders of intents that lost the push."""
        for loser, write in self._losers:
            doom_other(self._batch, self._coordinator, self._by, loser, self._record, write.table, write.key)
        if self._losers:
            # Aborting finalises rows and counts them: nothing read before stays in the writers.
            self._writers.clear()
            self._load()
        faults.reach("table.before_write")

    def _writer(self, table_id: int) -> RowWriter:
        writer = self._writers.get(table_id)
        if writer is None:
            writer = self._writers[table_id] = RowWriter(self._batch, table_id)
        return writer

    def _finish(self) -> None:
        for writer in self._writers.values():
            writer.finish()
        self._writers.clear()

    def _version(self, write: Write) -> Version:
        return Version(self._record.timestamp, self._record.txn_id, write.value)

    def _own(self, writer: RowWriter, key: bytes, row: Row) -> Row:
        """The row with no foreign intent: a decided one is finalised on the way."""
        intent = row.intent
        if intent is None or intent.txn == self._record.txn_id:
            return row
        state = records.state_code(self._batch, intent.txn)
        assert state != OPEN, "an intent in progress was pushed before"
        return writer.finalize(key, row, state == COMMITTED)

    # Judging

    def _check_reads(self) -> None:
        batch, record, writes = self._batch, self._record, self._writes
        cache, head, mine = batch.read_cache, batch.superblock, record.timestamp
        if not head.read_generation:
            return
        if not cache.is_valid(head):
            cache.start_anew(head)
        if mine < cache.watermark(head):
            self._refuse(Conflict(conflicts.READ, writes[0].table, writes[0].key))
        ranges = cache.ranges_after(mine)
        for write in writes:
            timestamp, txn = cache.reader_of(write.table_id, write.key)
            if timestamp > mine:
                self._refuse(Conflict(conflicts.READ, write.table, write.key, txn, timestamp))
            for table_id, timestamp, txn, start, end in ranges:
                if table_id == write.table_id and start <= write.key and (end is None or write.key < end):
                    self._refuse(Conflict(conflicts.READ, write.table, write.key, txn, timestamp))

    def _check_versions(self, write: Write, row: Row, look_up: StateOf) -> None:
        found = newest(row, self._record.txn_id, look_up)
        if found is not None and found.version >= self._record.timestamp:
            self._refuse(Conflict(conflicts.VERSION, write.table, write.key, found.txn, found.version))

    def _refuse(self, conflict: Conflict) -> None:
        doom(self._batch, self._coordinator, self._by, self._record, AbortReason.REFUSED_WRITE, conflict)
        raise self._batch.refuse(conflicts.write_too_old(self._record, conflict))

    def _lose(self, table: str, key: bytes, winner: TransactionRecord) -> None:
        conflict = Conflict(conflicts.HELD, table, key, winner.txn_id, winner.timestamp)
        doom(self._batch, self._coordinator, self._by, self._record, AbortReason.LOST_CONFLICT, conflict)
        raise self._batch.refuse(conflicts.lost(self._batch, self._record, conflict, winner))


def survives(mine: TransactionRecord, other: TransactionRecord) -> bool:
    """Whether the first transaction wins a push against the second."""
    return push.wins(mine.priority, mine.timestamp, other.priority, other.timestamp)


def doom(
    batch: WriteBatch,
    coordinator: Coordinator,
    by: ProcessIdentity,
    loser: TransactionRecord,
    reason: AbortReason,
    conflict: Conflict,
) -> None:
    """Abort a transaction over a conflict, completely, and remember why."""
    coordinator.doom(batch, loser, reason, by, conflict.fields())
    conflicts.note(batch, loser, conflict)


def doom_other(
    batch: WriteBatch,
    coordinator: Coordinator,
    by: ProcessIdentity,
    loser: TransactionRecord,
    winner: TransactionRecord,
    table: str,
    key: bytes,
) -> None:
    """Abort the transaction that lost a push to another one."""
    conflict = Conflict(conflicts.PUSH, table, key, winner.txn_id, winner.timestamp)
    doom(batch, coordinator, by, loser, AbortReason.LOST_CONFLICT, conflict)


def push_for_read(
    batch: WriteBatch,
    coordinator: Coordinator,
    by: ProcessIdentity,
    reader: TransactionRecord,
    found: read.MustPush,
    table: str,
) -> None:
    """A reader met an intent in progress: one of the two transactions is aborted. The reader then reads again.

    Raises:
        LostConflict: it was the reader.
    """
    holder = records.get(batch, found.txn)
    if holder.state_code != OPEN:
        return
    if survives(reader, holder):
        doom_other(batch, coordinator, by, holder, reader, table, found.key)
        return
    conflict = Conflict(conflicts.HELD, table, found.key, holder.txn_id, holder.timestamp)
    doom(batch, coordinator, by, reader, AbortReason.LOST_CONFLICT, conflict)
    raise batch.refuse(conflicts.lost(batch, reader, conflict, holder))


def check_window(
    batch: WriteBatch, coordinator: Coordinator, record: TransactionRecord, by: ProcessIdentity
) -> None:
    """See that a transaction is not older than what is kept.

    Raises:
        RequestTooOld: it is doomed, durably.
    """
    if record.timestamp >= retention.window_start(batch):
        return
    why = "is older than the versions that are kept"
    hint = "Begin a new one; `txnctl store config` shows how long versions are kept."
    raise _doomed_too_old(batch, coordinator, record, by, why, hint)


def begin_use(
    batch: WriteBatch, coordinator: Coordinator, record: TransactionRecord, by: ProcessIdentity
) -> None:
    """The first operation of a transaction on any table. The caller saves the record.

    Raises:
        RequestTooOld: it has consumed a message that is newer than itself; it is doomed, durably.
    """
    if not record.uses_tables and record.consumed > record.timestamp:
        why = "began before a message that it consumed was there to be read, so tables cannot be used in it"
        hint = "Begin the transaction after receiving."
        raise _doomed_too_old(batch, coordinator, record, by, why, hint)
    record.uses_tables = True


def _doomed_too_old(
    batch: WriteBatch,
    coordinator: Coordinator,
    record: TransactionRecord,
    by: ProcessIdentity,
    why: str,
    hint: str,
) -> DurableRefusal:
    """The refusal of a transaction that is doomed for its age."""
    doom(batch, coordinator, by, record, AbortReason.REFUSED_WRITE, Conflict(conflicts.TOO_OLD, "", b""))
    return batch.refuse(conflicts.too_old(record, why, hint))


def commit_in(coordinator: Coordinator, batch: WriteBatch, txn_id: int, by: ProcessIdentity) -> Ended:
    """Commit a transaction by its number; one that has used tables must not be older than the versions that are kept.

    Raises:
        RequestTooOld, TransactionNotFound, TransactionNotOpen, TransactionTimedOut, ProducerFenced
    """

    def prepare(record: TransactionRecord) -> None:
        if record.uses_tables:
            check_window(batch, coordinator, record, by)

    return coordinator.commit(batch, txn_id, by, prepare)


def check_tables(view: ReadView, writes: Sequence[Write]) -> None:
    """Raises:
    TableNotFound: the table of one of these writes was deleted.
    """
    for table_id, name in {write.table_id: write.table for write in writes}.items():
        check_exists(view, TableEntry(name, table_id, 0, {}))

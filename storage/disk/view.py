"""Views and write batches: the engine's reads and writes of records.

A `ReadView` is one consistent state of the store, a `WriteBatch` is a view with changes. Both are transactions of LMDB;
the word *transaction* is reserved for transactions of users (docs/ARCHITECTURE.md, "Words"). `data_map.py` makes views,
`writer.py` makes batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import error as struct_error
from typing import Any, TypeVar
from zlib import crc32

from storage.disk.codec import corrupt, decoded, key1, missing, unseal
from storage.disk.kept_records import KeptRecords, OpenRecord, Records
from storage.disk.overlay import Overlay
from storage.disk.schema import HEADS, Database
from storage.disk.shared_state import ReadCache, ReceivedMarks
from storage.disk.superblock import Superblock
from storage.errors import CorruptStore, TxnctlError
from storage.process.clock import Clock
from storage.process.locks import Locks
from storage.values.counters import COUNTERS
from storage.values.named_tuple import NamedTuple

SUPERBLOCK_KEY = key1(0)

_decoded: tuple[bytes | None, Superblock | None] = None, None
"""The stored bytes of a superblock with their checksum, and the superblock: decoding takes a tenth of a short view."""


R = TypeVar("R", bound=OpenRecord)


class DurableRefusal(Exception):
    """Commit the batch, which dooms or expires a transaction, then raise `error`."""

    def __init__(self, error: TxnctlError) -> None:
        super().__init__(error.message)
        self.error = error


class ReadView:
    """One consistent view of the store. Short-lived: no caller waits while a view is open.

    Attributes:
        known: the records of the commit that the view shows, as long as it is inside the writer gate; mostly None.
    """

    __slots__ = ("_databases", "_last_read", "_raw", "_superblock", "clock", "known")

    def __init__(self, raw: Any, databases: dict[str, object], clock: Clock) -> None:
        self._raw = raw
        self._databases = databases
        self.clock = clock
        self._superblock: Superblock | None = None
        self._last_read: tuple[Database, bytes] | None = None
        self.known: KeptRecords | None = None

    def end(self) -> None:
        """Let go of the transaction of LMDB, which is over: its place in the reader table is free with the object.

        Objects that outlive the view, in cycles, tracebacks or generators left half-way, may refer to the view. No
        function keeps the transaction itself in a variable.
        """
        self._raw = None

    @property
    def superblock(self) -> Superblock:
        """The superblock of the store, read at first use."""
        superblock = self._superblock
        if superblock is None:
            superblock = self._superblock = self._read_superblock()
        return superblock

    def _read_superblock(self) -> Superblock:
        """The superblock, to be read only: views of one commit share the object."""
        global _decoded
        data = self._superblock_record()
        known, superblock = _decoded
        if data != known or superblock is None:
            superblock = _decode_superblock(data)
            _decoded = data, superblock
        return superblock

    def _superblock_record(self) -> Any:
        data = self._raw.get(SUPERBLOCK_KEY, db=self._databases["heads"])
        if data is None:
            raise missing(HEADS, SUPERBLOCK_KEY)
        return data

    def named(self, error: BaseException | None) -> CorruptStore | None:
        """The error for a record that was read from here and does not decode; None for any other error.

        A record is decoded before the next one is read, so the last record read is the undecodable one.
        """
        is_unnamed = type(error) is CorruptStore and not error.details
        is_short = isinstance(error, struct_error) and "unpack" in str(
            error
        )  # not a number too large to pack
        if self._last_read is None or not (is_unnamed or is_short):
            return None
        why = error.message if isinstance(error, CorruptStore) else f"it cannot be decoded: {error}"
        return corrupt(*self._last_read, why)

    def get(self, database: Database, key: bytes) -> memoryview | None:
        """The payload stored under `key`, checked, or None."""
        data = self._raw.get(key, db=self._databases[database.name])
        if data is None:
            return None
        self._last_read = database, key
        return unseal(database, key, data)

    def open(self, database: Database, key: bytes, decode: Callable[[memoryview], R]) -> R | None:
        """The record under `key`, decoded, or None. Within a batch every caller gets the same object."""
        payload = self.get(database, key)
        return None if payload is None else decoded(database, key, payload, decode)

    def opened(self, database: Database, key: bytes) -> Any:  # noqa: ARG002
        """The record under `key` if open in this batch; None in a view, where no record changes."""
        return None

    def database_stats(self) -> dict[str, dict[str, int]]:
        """LMDB's own figures of each named database: entries, pages, depth."""
        return {name: self._raw.stat(handle) for name, handle in self._databases.items()}

    def figures_of(self, database: Database) -> dict[str, int]:
        """The figures of the table in which a database lies: on a server several databases share a table."""
        figures: dict[str, int] = self._raw.stat(self._databases[database.name])
        return figures

    def lacks(self, database: Database) -> bool:  # noqa: ARG002
        """Whether the store is of an earlier format, without a database."""
        return False

    def has(self, database: Database, key: bytes) -> bool:
        return self.get(database, key) is not None

    def holds(self, database: Database, key: bytes) -> bool:
        """Whether there is a record under `key`, which is not checked."""
        return self._raw.get(key, db=self._databases[database.name]) is not None

    def fetch(self, database: Database, keys: Sequence[bytes]) -> list[bytes | None]:
        """The stored values under keys, each None if there is none; the caller checks them, as with `stored`."""
        handle = self._databases[database.name]
        return [self._raw.get(key, db=handle) for key in keys]

    def scan(
        self, database: Database, prefix: bytes = b"", start: bytes | None = None, stop: bytes | None = None
    ) -> Iterator[tuple[bytes, memoryview]]:
        """Keys with `prefix`, from `start` on, up to and including `stop`, in order."""
        length = len(prefix)
        with self._cursor(database, prefix, stop) as cursor:
            begin = start or prefix
            if not (cursor.set_range(begin) if begin else cursor.first()):
                return
            for key, data in cursor.iternext():
                if key[:length] != prefix or (stop is not None and key > stop):
                    return
                self._last_read = database, key
                yield key, unseal(database, key, data)

    def scan_back(
        self, database: Database, prefix: bytes, before: bytes
    ) -> Iterator[tuple[bytes, memoryview]]:
        """Keys with `prefix` below `before`, the last one first."""
        length = len(prefix)
        with self._cursor(database, prefix) as cursor:
            if not (cursor.prev() if cursor.set_range(before) else cursor.last()):
                return
            for key, data in cursor.iterprev():
                if key[:length] != prefix:
                    return
                self._last_read = database, key
                yield key, unseal(database, key, data)

    def stored(
        self, database: Database, at: bytes, *, reverse: bool = False
    ) -> Iterable[tuple[bytes, bytes]]:
        """Keys from `at` on with their stored values, or in reverse the keys below it, the last one first.

        Nothing is checked on the way: the caller checks each record with the seed of the database.
        """
        cursor = self._raw.cursor(db=self._databases[database.name])
        if reverse:
            is_found = cursor.prev() if cursor.set_range(at) else cursor.last()
            records: Iterable[tuple[bytes, bytes]] = cursor.iterprev() if is_found else ()
        else:
            records = cursor.iternext() if cursor.set_range(at) else ()
        return records

    def keys(self, database: Database, prefix: bytes = b"", start: bytes | None = None) -> Iterator[bytes]:
        """Keys with `prefix`, from `start` on, in order: checked, as only the checksum proves a key."""
        return (key for key, _ in self.scan(database, prefix, start))

    def first(
        self, database: Database, prefix: bytes, start: bytes | None = None, stop: bytes | None = None
    ) -> tuple[bytes, memoryview] | None:
        """The first record with `prefix`, from `start` on, up to and including `stop`."""
        with self._cursor(database, prefix, stop) as cursor:
            if not cursor.set_range(start if start is not None else prefix):
                return None
            key = cursor.key()
            if key[: len(prefix)] != prefix or (stop is not None and key > stop):
                return None
            self._last_read = database, key
            return key, unseal(database, key, cursor.value())

    def last(self, database: Database, prefix: bytes, at: bytes) -> tuple[bytes, memoryview] | None:
        """The last record with `prefix` and a key of at most `at`."""
        with self._cursor(database, prefix) as cursor:
            if not (cursor.set_range(at) and cursor.key() == at):
                # set_range left the cursor above `at`, or behind the end: step back, or take the last record.
                moved = cursor.prev() if cursor.key() else cursor.last()
                if not moved:
                    return None
            key = cursor.key()
            if key[: len(prefix)] != prefix:
                return None
            self._last_read = database, key
            return key, unseal(database, key, cursor.value())

    def _cursor(self, database: Database, prefix: bytes, stop: bytes | None = None) -> Any:  # noqa: ARG002
        """A cursor that is used for keys with `prefix`, up to and including `stop`."""
        return self._raw.cursor(db=self._databases[database.name])

    def count(self, database: Database) -> int:
        """The number of records in the whole database, in constant time."""
        entries: int = self._raw.stat(self._databases[database.name])["entries"]
        return entries

    def count_at_once(self, database: Database) -> int | None:
        """The same; None from an engine that would look at each record."""
        return self.count(database)

    def has_records(self, database: Database) -> bool:
        """Whether the whole database has any record."""
        return self.count(database) > 0

    @property
    def commit(self) -> int:
        """The number of the commit that this view shows, for `Connection.wait_for_commit`.

        `Environment.last_commit` may be ahead: LMDB counts a commit before views show it, by as long as an fsync.
        """
        number: int = self._raw.id()
        return number

    def rehearsal(self, context: BatchContext, naming: int) -> Rehearsal:
        """A batch over this view for a dry run; see `Writer.rehearse`."""
        return Rehearsal(Overlay(self._raw), context, naming)

    @property
    def now_ns(self) -> int:
        """The store clock, which stands still from a reboot until the next write."""
        return self.superblock.now_ns(self.clock)

    @property
    def is_clock_running(self) -> bool:
        """Whether a write in this boot has continued the store clock."""
        return self.superblock.is_clock_running(self.clock)


def _decode_superblock(data: Any) -> Superblock:
    return decoded(HEADS, SUPERBLOCK_KEY, unseal(HEADS, SUPERBLOCK_KEY, data), Superblock.decode)


class BatchContext(NamedTuple):
    """The open store as a batch needs it.

    Attributes:
        catch_up: moves the timestamp oracle past timestamps issued without a commit.
    """

    databases: dict[str, object]
    clock: Clock
    locks: Locks
    read_cache: ReadCache
    received_marks: ReceivedMarks
    catch_up: Callable[[Superblock], None]


class WriteBatch(ReadView):
    """A view with changes: one durable commit or nothing. Only `Writer.write` makes batches.

    Open records (topic states, cursors, counters) are shared by all code that runs in the batch. `write_open` writes
    each of them once, if its bytes have changed; no code puts a record by its key as long as the record is open.

    Attributes:
        counted: events of this batch by their number in `storage/values/counters.py`, counted after the commit.
        superblock: to be changed by this batch alone; the next batch of the process may take over the object.
        written_superblock: as this batch leaves the superblock, encoded; empty before the end of the batch.
        open_records: by database and key, each with the payload that is stored; None for a new record.
        kept: records of the commit before that are as stored, and not open yet.
        ending: the transaction that begins and ends in this batch: its parts are open until the end; 0 for none.
        counts: numbers of records of databases that were counted, and have not changed since.
        now_ns, now_ms, wall_ns: store clock and wall time of the batch, each read once.
    """

    __slots__ = (
        "_undo", "bytes", "counted", "counts", "ending", "kept", "locks", "naming", "now_ms", "now_ns",
        "open_records", "read_cache", "received_marks", "starts_clock", "superblock", "wall_ns", "written_superblock",
    )  # fmt: skip

    superblock: Superblock
    now_ns: int

    def __init__(
        self, raw: Any, context: BatchContext, naming: int, before: KeptRecords | None = None
    ) -> None:
        """Args:
        before: the records of the commit just before, if a batch of this process made it.

        Raises:
            StoreInvalid: the wall clock.
        """
        clock = context.clock
        self._raw, self._databases, self.clock = raw, context.databases, clock
        self._last_read = self.known = None
        wall_ns = self.wall_ns = clock.wall_ns()
        self.now_ms = wall_ns // 1_000_000
        self.locks = context.locks
        self.read_cache = context.read_cache
        self.received_marks = context.received_marks
        self.naming = naming
        self.ending = 0
        self.bytes = 0
        self.counted = [0] * COUNTERS
        self.written_superblock = b""
        self.open_records: Records = {}
        self._undo: list[Callable[[], object]] = []
        if before is None or before.superblock is None:
            superblock, self.kept, self.counts = _decode_superblock(self._superblock_record()), Records(), {}
        else:
            superblock, self.kept, self.counts = before.superblock, before.records, before.counts
            superblock.changes = 0
        self.superblock = superblock
        self.starts_clock = superblock.begin_batch(clock, wall_ns)
        self.now_ns = superblock.last_clock_ns
        if superblock.read_generation:
            context.catch_up(superblock)

    def put(self, database: Database, key: bytes, payload: bytes) -> None:
        """Write a record now. LMDB refuses a key that is empty, or longer than 511 bytes."""
        # As `seal`: every record of a commit passes here.
        value = crc32(key + payload[: database.sealed], database.seed).to_bytes(4, "big") + payload
        self._raw.put(key, value, db=self._databases[database.name])
        self.bytes += len(value)
        self.superblock.changes += 1
        if (database, key) in self.kept:
            del self.kept[database, key]
        if database in self.counts:
            del self.counts[database]

    def put_all(self, database: Database, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Write records now, as `put`; of a database whose records are never opened, and sealed whole."""
        put, handle, seed = self._raw.put, self._databases[database.name], database.seed
        for key, payload in records:
            value = crc32(key + payload, seed).to_bytes(4, "big") + payload
            put(key, value, db=handle)
            self.bytes += len(value)
            self.superblock.changes += 1
        if database in self.counts:
            del self.counts[database]

    def open(self, database: Database, key: bytes, decode: Callable[[memoryview], R]) -> R | None:
        name = (database, key)
        if name in self.kept and name not in self.open_records:
            self.open_records[name] = self.kept[name]
        if name in self.open_records:
            known: Any = self.open_records[name][0]
            record: R = known
            return record
        payload = self.get(database, key)
        if payload is None:
            return None
        record = decoded(database, key, payload, decode)
        self.open_records[name] = record, payload
        return record

    def opened(self, database: Database, key: bytes) -> Any:
        name = (database, key)
        return self.open_records[name][0] if name in self.open_records else None

    def open_with(self, database: Database, prefix: bytes) -> list[tuple[bytes, OpenRecord]]:
        """The open records whose keys have a prefix, in order of opening."""
        records: list[tuple[bytes, OpenRecord]] = []
        for name in self.open_records:
            if name[0] is database and name[1].startswith(prefix):
                records += ((name[1], self.open_records[name][0]),)
        return records

    def add(self, database: Database, key: bytes, record: OpenRecord) -> None:
        """Open a new record. Until the batch finishes, only `open` and `opened` find it."""
        self.open_records[database, key] = record, None

    def put_record(self, database: Database, key: bytes, record: OpenRecord) -> None:
        """Write a record now, and close it if it is open."""
        if (database, key) in self.open_records:
            del self.open_records[database, key]
        self.put(database, key, record.encode())

    def remove(self, database: Database, key: bytes) -> None:
        """Delete a record, and close it if it is open."""
        self.open_records.pop((database, key), None)
        self.delete(database, key)

    def close_records(self, database: Database, prefix: bytes) -> None:
        """Close the open records with `prefix`, which are removed: this batch writes none of them."""
        self.kept = {}
        names = [name for name in self.open_records if name[0] is database and name[1].startswith(prefix)]
        for name in names:
            del self.open_records[name]

    def write_open(self) -> None:
        """Write the open records that have changed, and remove those that encode to nothing."""
        for name in self.open_records:
            record, before = self.open_records[name]
            try:
                payload: Any = record.encode()
            except (struct_error, CorruptStore) as error:
                why = f"it does not agree with the records that it counts: {error}"
                raise corrupt(*name, why) from error
            if payload == before:
                continue
            self.open_records[name] = record, payload
            if payload:
                self.put(*name, payload)
            else:
                self.delete(*name)

    def delete(self, database: Database, key: bytes) -> bool:
        """Remove the record; False if there is none."""
        self.superblock.changes += 1
        if (database, key) in self.kept:
            del self.kept[database, key]
        if database in self.counts:
            del self.counts[database]
        removed: bool = self._raw.delete(key, db=self._databases[database.name])
        return removed

    def delete_prefix(
        self, database: Database, prefix: bytes, limit: int = 1 << 62, stop: bytes | None = None
    ) -> int:
        """Remove at most `limit` records with `prefix`, up to and including `stop`; return the number removed."""
        removed = 0
        self.kept, self.counts = {}, {}
        with self._cursor(database, prefix, stop) as cursor:
            while removed < limit and cursor.set_range(prefix):
                key = cursor.key()
                if key[: len(prefix)] != prefix or (stop is not None and key > stop):
                    break
                cursor.delete()
                removed += 1
        self.superblock.changes += removed
        return removed

    def count(self, database: Database) -> int:
        counts = self.counts
        if database not in counts:
            counts[database] = self._raw.stat(self._databases[database.name])["entries"]
        return counts[database]

    def has_records(self, database: Database) -> bool:
        # As `count`: every batch asks.
        counts = self.counts
        if database not in counts:
            counts[database] = self._raw.stat(self._databases[database.name])["entries"]
        return counts[database] > 0

    def timestamp(self) -> int:
        """The next timestamp of the oracle: strictly growing, recorded with this batch."""
        return self.superblock.issue_timestamp(self.wall_ns)

    def refuse(self, error: TxnctlError) -> DurableRefusal:
        """For `raise batch.refuse(error)`: the batch becomes durable before `error` is raised."""
        return DurableRefusal(error)

    def undo_if_refused(self, undo: Callable[[], object]) -> None:
        """Have a change undone if the batch ends in a durable refusal, which leaves a doom or expiry alone."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Undo the changes that a refusal does not leave, the latest first."""
        while self._undo:
            self._undo.pop()()

    def finish(self) -> None:
        """Write the superblock; called once, just before the commit."""
        superblock = self.superblock
        superblock.commits += 1
        written = self.written_superblock = superblock.encode()
        value = crc32(SUPERBLOCK_KEY + written, HEADS.seed).to_bytes(4, "big") + written
        self._raw.put(SUPERBLOCK_KEY, value, db=self._databases["heads"])


class Rehearsal(WriteBatch):
    """A batch over a view, which is never committed: its changes are an overlay, and it holds no writer gate."""

    __slots__ = ()

    def end(self) -> None:
        self._raw.end()
        super().end()

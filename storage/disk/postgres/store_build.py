"""The build of a copied store on a server, and the records of a server as a copy reads them.

The build lies in a schema `NAME$copy`, and becomes the store when the schema is renamed. Writes of the build do not
wait for the disk: after a crash the server has all writes up to one of them, and the next run compares and goes on. The
rename waits, and the server's log has all writes before the rename.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from storage.disk.postgres import create
from storage.disk.postgres.binary import as_bool, as_int, bytea_array, int4, int8
from storage.disk.postgres.layout import (
    COMMITTED,
    DELETE,
    DROP_LEASE,
    OPEN,
    PUT_ENTRIES,
    PUT_HEADS,
    PUT_KV,
    STORE_BYTES,
    TABLE_ENTRIES,
    TABLE_HEADS,
    TABLE_KV,
    TABLES,
    Place,
)
from storage.disk.postgres.server_clock import ServerClock
from storage.disk.postgres.server_locks import COPYING
from storage.disk.postgres.session import BEGIN, BEGIN_VIEW, COMMIT, Session, Statement, Step
from storage.disk.postgres.snapshot import ServerView, Snapshot
from storage.disk.postgres.url import COPY_SUFFIX, StoreUrl
from storage.disk.schema import ALL, STORE, Database
from storage.disk.sealed_records import CHUNK_BYTES, FORMAT_KEY, SERVER_KEY, Change, Record
from storage.disk.view import ReadView
from storage.errors import AlreadyExists, OutcomeUnknown, StoreInUse, StoreInvalid, StoreNotFound
from storage.process.clock import Clock

_ROWS_MIN: Final = 16
_ROWS_MAX: Final = 1 << 15
_ROWS_FIRST: Final = 1024
_FIRST_COMMIT: Final = int8(1)
_WAIT_LONG: Final[Statement] = (
    b"wait_long", b"SET LOCAL idle_in_transaction_session_timeout = '10min'"
)  # fmt: skip
_TRY_COPYING: Final[Statement] = (b"try_copying", b"SELECT pg_try_advisory_lock($1::int4, $2::int4)")
_PUT: Final[dict[str, Statement]] = {TABLE_KV: PUT_KV, TABLE_ENTRIES: PUT_ENTRIES, TABLE_HEADS: PUT_HEADS}
_NO_WAIT: Final = "SET synchronous_commit = off"
_TRANSIENT: Final = "TRUNCATE reads, read_keys, read_ranges, marks, counters"
_CLOCK: Final = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8"


class _TableReader:
    """Reads records of one session in stretches, whose rows follow from the size of the rows before."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._places = {database.name: Place(database) for database in ALL}
        self._rows: dict[str, int] = {}

    def read(self, database: Database, start: bytes) -> list[Record]:
        place = self._places[database.name]
        limit = self._rows.get(database.name, _ROWS_MIN if place.is_bulky else _ROWS_FIRST)
        (rows,) = self._session.run(((place.next, (place.prefix + start, place.end, int8(limit))),))
        records = [(key[1:], value) for key, value in rows if key is not None and value is not None]
        size = sum(len(value) for _, value in records) or 1
        self._rows[database.name] = min(
            _ROWS_MAX, max(_ROWS_MIN, min(4 * limit, len(records) * CHUNK_BYTES // size))
        )
        return records


class SchemaView(_TableReader):
    """The records of a store on a server as of one transaction of a session of its own."""

    def __init__(self, session: Session, view: ReadView, total_bytes: int) -> None:
        super().__init__(session)
        self.view = view
        self.total_bytes = total_bytes


@contextmanager
def copy_view(url: StoreUrl, clock: ServerClock, application: str) -> Iterator[SchemaView]:
    """Open a view of all sealed records, in a session of its own: it may take long, and no other view waits for it."""
    session = Session.connect(url, clock, application=application)
    try:
        _, _, opened, ((size,),) = session.run(
            ((BEGIN_VIEW, ()), (_WAIT_LONG, ()), (OPEN, ()), (STORE_BYTES, ()))
        )
        if not opened or opened[0][1] is None:
            raise StoreNotFound(f"the store at {url.shown} was removed")
        clock.look(as_int(opened[0][2]))
        snapshot = Snapshot(session, as_int(opened[0][0]), opened[0][1])
        handles: dict[str, object] = {database.name: Place(database) for database in ALL}
        yield SchemaView(session, ServerView(snapshot, handles, clock), as_int(size))
    finally:
        session.close()


def remove_left_copy(session: Session, url: StoreUrl) -> None:
    """Drop the unfinished copy to a store that is there by now, unless a process is copying."""
    schema = url.store + COPY_SUFFIX
    if not session.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'"):
        return
    key = "\\x" + (Place(STORE).prefix + SERVER_KEY).hex()
    (row,) = session.execute(f"""SELECT v FROM "{schema}".kv WHERE k = '{key}'""") or (None,)
    if row is None or row[0] is None:
        return
    lock_class, _ = create.lock_class_of(bytes.fromhex(row[0][2:].decode()))
    lock = (int4(lock_class), int4(COPYING))
    ((locked,),) = session.run(((_TRY_COPYING, lock),))
    if as_bool(locked[0]):
        session.execute(f'DROP SCHEMA "{schema}" CASCADE')
        session.run(((DROP_LEASE, lock),))


@contextmanager
def building(destination: str, clock: Clock) -> Iterator[SchemaBuild]:
    """Begin the build of a store at the URL `destination`, or go on with the one that an interrupt has left.

    Raises:
        AlreadyExists: the destination exists, and is left unchanged.
        StoreInUse: another process is building there.
        InvalidValue, ServerUnreachable, NotPermitted, StoreNotFound
    """
    url = StoreUrl.parse(destination)
    session = Session.connect(url.for_copy(), clock, application=create.application())
    try:
        yield SchemaBuild(session, url, clock)
    finally:
        session.close()


class SchemaBuild(_TableReader):
    """See the module; attributes as `sealed_records.StoreBuild` has them."""

    def __init__(self, session: Session, url: StoreUrl, clock: Clock) -> None:
        super().__init__(session)
        self.destination, self.path = url.shown, url.for_copy().whole
        self._store, self._schema = url.store, url.store + COPY_SUFFIX
        self._clock = ServerClock(clock)
        self.clock: Clock = self._clock
        create.check_server(session, url)
        self._check_free()
        self.is_resumed = self._has(self._schema)
        if not self.is_resumed:
            self._make()
        self._lock()
        session.execute(
            f"{_NO_WAIT}; BEGIN; {_TRANSIENT}; DELETE FROM commits; DELETE FROM kv WHERE k = '{self._key(FORMAT_KEY)}';"
            " COMMIT"
        )

    def _check_free(self) -> None:
        if self._has(self._store):
            raise AlreadyExists(
                f"{self.destination} exists already and was left unchanged", path=self.destination
            )

    def _has(self, schema: str) -> bool:
        return bool(self._session.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'"))

    def _key(self, key: bytes) -> str:
        return f"\\x{(self._places[STORE.name].prefix + key).hex()}"

    def _make(self) -> None:
        record = create.sealed_server_record(is_replicated=create.is_replicated(self._session)).hex()
        self._session.execute(
            f'BEGIN; CREATE SCHEMA "{self._schema}"; {TABLES}'
            f" INSERT INTO kv VALUES ('{self._key(SERVER_KEY)}', '\\x{record}'); COMMIT"
        )

    def _lock(self) -> None:
        """Keep other copies away, until the session ends."""
        place = self._places[STORE.name]
        (rows,) = self._session.run(((place.get, (place.prefix + SERVER_KEY,)),))
        if not rows or rows[0][0] is None:
            raise StoreInvalid(
                f"the schema {self._schema} of the server is no unfinished copy of ours; nothing was changed",
                hint="Rename it, or copy to a store of another name.",
            )
        lock_class, self.is_replicated = create.lock_class_of(rows[0][0])
        ((row,),) = self._session.run(((_TRY_COPYING, (int4(lock_class), int4(COPYING))),))
        if not as_bool(row[0]):
            raise StoreInUse(f"another process is copying to {self.destination}", hint="Wait for its end.")

    def write(self, changes: Sequence[Change]) -> None:
        """Write changes in one transaction of the server, which does not wait for the disk."""
        deleted: dict[str, list[bytes]] = {TABLE_KV: [], TABLE_ENTRIES: [], TABLE_HEADS: []}
        keys: dict[str, list[bytes]] = {TABLE_KV: [], TABLE_ENTRIES: [], TABLE_HEADS: []}
        values: dict[str, list[bytes]] = {TABLE_KV: [], TABLE_ENTRIES: [], TABLE_HEADS: []}
        for database, key, value in changes:
            place = self._places[database.name]
            if value is None or place.table == TABLE_HEADS:
                deleted[place.table].append(place.prefix + key)
            if value is not None:
                keys[place.table].append(place.prefix + key)
                values[place.table].append(value)
        steps: list[Step] = [(BEGIN, ())]
        steps += [(DELETE[table], (bytea_array(gone),)) for table, gone in deleted.items() if gone]
        for table, put in keys.items():
            if put:
                arrays = (bytea_array(put), bytea_array(values[table]))
                steps.append((_PUT[table], (*arrays, _FIRST_COMMIT) if table == TABLE_HEADS else arrays))
        steps.append((COMMIT, ()))
        self._transact(steps)

    def _transact(self, steps: Sequence[Step]) -> None:
        try:
            self._session.run(steps)
        except BaseException:
            if self._session.failed is None:
                self._session.execute("ROLLBACK")
            raise

    def finish(self, superblock: bytes, format_record: bytes) -> None:
        self.look()
        began = (
            (b"begin_counters", b"INSERT INTO counters VALUES (-1, $1::int8)"),
            (int8(self.clock.wall_ms()),),
        )
        key = self._places[STORE.name].prefix + FORMAT_KEY
        self._transact([
            (BEGIN, ()), began, (COMMITTED, (_FIRST_COMMIT, superblock)),
            (PUT_KV, (bytea_array([key]), bytea_array([format_record]))), (COMMIT, ()),
        ])  # fmt: skip
        self._session.execute("ANALYZE kv; ANALYZE entries; ANALYZE heads")

    def look(self) -> None:
        """Look at the server's clock."""
        rows = self._session.execute(_CLOCK)
        self._clock.look(int(rows[0][0] or b"0"))

    def install(self) -> int:
        """Rename the schema, durably; no session of the engine has the build open any more."""
        ((row,),) = self._session.run(((STORE_BYTES, ()),))
        self._check_free()
        self._session.execute("SET synchronous_commit = on")
        self._session.execute(f'ALTER SCHEMA "{self._schema}" RENAME TO "{self._store}"')
        if self.is_replicated and self._session.is_local_only:
            raise OutcomeUnknown(
                f"{self.destination} was made on the primary alone: the commit did not wait for the standby",
                hint="See that the standby is connected; the store is whole on the primary.",
            )
        return as_int(row[0])

    def discard(self) -> None:
        self._session.execute(f'DROP SCHEMA "{self._schema}" CASCADE')

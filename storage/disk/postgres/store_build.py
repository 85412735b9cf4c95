"""The build of a copied store on a server, and the records of a server as read by a copy.

The build lies in a schema `NAME$copy`, and becomes the store when the schema is renamed. Writes of the build do not
wait for the disk: after a crash the server has all writes up to some write, and the next run compares and goes on. The
rename waits, and the server's log has all writes before the rename.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from storage.disk.codec import decoded, seal, unseal
from storage.disk.postgres import create
from storage.disk.postgres.binary import as_bool, as_int, bytea_array, int4, int8
from storage.disk.postgres.client_name import application
from storage.disk.postgres.kept_reads import KeptReads
from storage.disk.postgres.layout import (
    DROP_LEASE,
    FUNCTIONS,
    OPEN,
    STORE_BYTES,
    TABLE_ENTRIES,
    TABLE_HEADS,
    TABLE_KV,
    TABLES,
    RecordPlace,
)
from storage.disk.postgres.server_clock import ServerClock
from storage.disk.postgres.server_locks import COPYING
from storage.disk.postgres.server_record import ServerRecord, forget_seen
from storage.disk.postgres.server_state import ServerState
from storage.disk.postgres.session import BEGIN, BEGIN_VIEW, COMMIT, Session, Statement, Step
from storage.disk.postgres.snapshot import ServerView, Snapshot
from storage.disk.postgres.url import COPY_SUFFIX, StoreUrl
from storage.disk.schema import ALL, FORMAT_KEY, HEADS, SERVER_KEY, STORE, Database
from storage.disk.sealed_records import CHUNK_BYTES, Change, Record
from storage.disk.superblock import Superblock
from storage.disk.view import SUPERBLOCK_KEY, ReadView
from storage.errors import AlreadyExists, StoreInUse, StoreInvalid, StoreNotFound
from storage.process.clock import Clock

_ROWS_MIN: Final = 16
_ROWS_MAX: Final = 1 << 15
_ROWS_FIRST: Final = 1024
_WAIT_LONG: Final[Statement] = (
    b"wait_long", b"SET LOCAL idle_in_transaction_session_timeout = '10min'"
)  # fmt: skip
_TRY_COPYING: Final[Statement] = (b"try_copying", b"SELECT pg_try_advisory_lock($1::int4, $2::int4)")
_DELETE: Final[dict[str, Statement]] = {
    table: (f"remove_{table}".encode(), f"DELETE FROM {table} WHERE k = ANY($1::bytea[])".encode())
    for table in (TABLE_KV, TABLE_HEADS, TABLE_ENTRIES)
}
_PUT: Final[dict[str, Statement]] = {
    TABLE_HEADS: (
        b"build_heads", b"INSERT INTO heads SELECT k, 1, v FROM unnest($1::bytea[], $2::bytea[]) AS u (k, v)"
    ),
    **{
        table: (
            f"build_{table}".encode(),
            f"INSERT INTO {table} SELECT * FROM unnest($1::bytea[], $2::bytea[])"
            " ON CONFLICT (k) DO UPDATE SET v = excluded.v".encode(),
        )
        for table in (TABLE_KV, TABLE_ENTRIES)
    },
}  # fmt: skip
_COMMITTED: Final[Statement] = (b"build_commit", b"INSERT INTO commits VALUES (1, $1::bytea)")
_COUNTED: Final[Statement] = (b"build_counters", b"INSERT INTO counters VALUES (-1, $1::int8)")
_NO_WAIT: Final = "SET synchronous_commit = off"
_TRANSIENT: Final = (
    "SELECT string_agg(quote_ident(relname), ', ') FROM pg_class WHERE relkind = 'r' AND relpersistence = 'u'"
    " AND relnamespace = current_schema()::regnamespace"
)
"""The tables that a crash empties; their rows from an earlier run of the copy are of no use."""


class _TableReader:
    """Reads records of one session in stretches, whose rows follow from the size of the rows before."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._places = {database.name: RecordPlace(database) for database in ALL}
        self._rows: dict[str, int] = {}

    def read(self, database: Database, start: bytes) -> list[Record]:
        place = self._places[database.name]
        limit = self._rows.get(database.name, _ROWS_MIN if place.is_bulky else _ROWS_FIRST)
        (rows,) = self._session.run_steps(((place.next, (place.prefix + start, place.end, int8(limit))),))
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
    """Open a view of all sealed records, in a session of its own: a copy may take long, and no other view waits."""
    session = Session.connect(url, clock, application=application)
    try:
        _, _, opened, ((size,),) = session.run_steps(
            ((BEGIN_VIEW, ()), (_WAIT_LONG, ()), (OPEN, ()), (STORE_BYTES, ()))
        )
        if not opened or opened[0][1] is None:
            raise StoreNotFound(f"the store at {url.shown} was removed")
        clock.look(as_int(opened[0][2]))
        number = as_int(opened[0][0])
        snapshot = Snapshot(session, number, opened[0][1], KeptReads(number))
        handles: dict[str, object] = {database.name: RecordPlace(database) for database in ALL}
        yield SchemaView(session, ServerView(snapshot, handles, clock), as_int(size))
    finally:
        session.close()


def remove_left_copy(session: Session, url: StoreUrl) -> None:
    """Drop the unfinished copy to a store that is there by now, unless a process is copying."""
    schema = url.store + COPY_SUFFIX
    if not session.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'"):
        return
    key = "\\x" + (RecordPlace(STORE).prefix + SERVER_KEY).hex()
    (row,) = session.execute(f"""SELECT v FROM "{schema}".kv WHERE k = '{key}'""") or (None,)
    if row is None or row[0] is None:
        return
    lock = (int4(_server_record(bytes.fromhex(row[0][2:].decode())).lock_class), int4(COPYING))
    ((locked,),) = session.run_steps(((_TRY_COPYING, lock),))
    if as_bool(locked[0]):
        session.execute(f'DROP SCHEMA "{schema}" CASCADE')
        session.run_steps(((DROP_LEASE, lock),))


def _server_record(sealed: bytes) -> ServerRecord:
    return decoded(STORE, SERVER_KEY, unseal(STORE, SERVER_KEY, sealed), ServerRecord.decode)


@contextmanager
def building(destination: str, clock: Clock, *, is_replicated: bool | None) -> Iterator[SchemaBuild]:
    """Begin the build of a store at the URL `destination`, or go on with an interrupted build.

    Args:
        is_replicated: as `create.create` has it.

    Raises:
        AlreadyExists: the destination exists, and is left unchanged.
        StoreInUse: another process is building there.
        InvalidValue, ServerUnreachable, StoreUnsafe, NotPermitted, StoreNotFound
    """
    url = StoreUrl.parse(destination)
    session = Session.connect(url.for_copy(), clock, application=application())
    try:
        yield SchemaBuild(session, url, clock, is_replicated)
    finally:
        session.close()


class SchemaBuild(_TableReader):
    """See the module; attributes as `sealed_records.StoreBuild` has them."""

    def __init__(self, session: Session, url: StoreUrl, clock: Clock, is_replicated: bool | None) -> None:
        super().__init__(session)
        state = ServerState.read(session)
        self.destination, self.path = url.shown, url.for_copy().whole
        self._shown = url.for_copy().shown
        self._store, self._schema = url.store, url.store + COPY_SUFFIX
        self._clock = ServerClock(clock)
        self._check_free()
        self._is_replicated = state.chosen_durability(url.shown, is_replicated)
        state.check_writable(url.shown, is_replicated=self._is_replicated)
        self._record = create.new_record(state, self._is_replicated)
        self.is_resumed = self._has(self._schema)
        if not self.is_resumed:
            try:
                self._make()
            except AlreadyExists:  # by a second copy, just now
                session.execute("ROLLBACK")
                self.is_resumed = True
        self._lock()
        transient = (session.execute(_TRANSIENT)[0][0] or b"").decode()
        session.execute(
            f"{_NO_WAIT}; BEGIN; TRUNCATE {transient}; DELETE FROM commits;"
            f" DELETE FROM kv WHERE k = '{self._key(FORMAT_KEY)}'; COMMIT"
        )

    def _check_free(self) -> None:
        if self._has(self._store):
            raise self._taken()

    def _taken(self) -> AlreadyExists:
        return AlreadyExists(
            f"{self.destination} exists already and was left unchanged", path=self.destination
        )

    def _has(self, schema: str) -> bool:
        return bool(self._session.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'"))

    def _key(self, key: bytes) -> str:
        return f"\\x{(self._places[STORE.name].prefix + key).hex()}"

    def _make(self) -> None:
        record = seal(STORE, SERVER_KEY, self._record.encode()).hex()
        self._session.execute(
            f'BEGIN; CREATE SCHEMA "{self._schema}"; {TABLES} {FUNCTIONS}'
            f" INSERT INTO kv VALUES ('{self._key(SERVER_KEY)}', '\\x{record}'); COMMIT"
        )

    def _lock(self) -> None:
        """Keep a second copy away, until the session ends."""
        place = self._places[STORE.name]
        (rows,) = self._session.run_steps(((place.get, (place.prefix + SERVER_KEY,)),))
        if not rows or rows[0][0] is None:
            raise StoreInvalid(
                f"the schema {self._schema} of the server is no unfinished copy of ours; nothing was changed",
                hint="Rename it, or copy to a store of another name.",
            )
        left = _server_record(rows[0][0])
        # The keys stay; server and durability are those of this run.
        self._record = self._record._replace(lock_class=left.lock_class, lease_class=left.lease_class)
        lock = (int4(left.lock_class), int4(COPYING))
        ((row,),) = self._session.run_steps(((_TRY_COPYING, lock),))
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
        steps += [(_DELETE[table], (bytea_array(gone),)) for table, gone in deleted.items() if gone]
        steps += [
            (_PUT[table], (bytea_array(put), bytea_array(values[table])))
            for table, put in keys.items()
            if put
        ]
        steps.append((COMMIT, ()))
        self._transact(steps)

    def _transact(self, steps: Sequence[Step]) -> None:
        try:
            self._session.run_steps(steps)
        except BaseException:
            if self._session.failed is None:
                self._session.execute("ROLLBACK")
            raise

    def finish(self, superblock: bytes, format_record: bytes) -> None:
        prefix, server = self._places[STORE.name].prefix, seal(STORE, SERVER_KEY, self._record.encode())
        keys, records = [prefix + FORMAT_KEY, prefix + SERVER_KEY], [format_record, server]
        # An earlier build of this process had more commits.
        store_id = Superblock.decode(unseal(HEADS, SUPERBLOCK_KEY, superblock)).store_id
        forget_seen((self._shown, store_id))
        began_ms = self.clock.wall_ms()
        self._transact([
            (BEGIN, ()), (_COUNTED, (int8(began_ms),)), (_COMMITTED, (superblock,)),
            (_PUT[TABLE_KV], (bytea_array(keys), bytea_array(records))), (COMMIT, ()),
        ])  # fmt: skip
        self._session.execute("ANALYZE kv; ANALYZE entries; ANALYZE heads")

    @property
    def clock(self) -> Clock:
        """The clocks of the store, by the server's clock now."""
        self._clock.ask(self._session)
        return self._clock

    def install(self) -> int:
        """Rename the schema, durably; no session of the engine has the build open any more."""
        ((row,),) = self._session.run_steps(((STORE_BYTES, ()),))
        self._check_free()
        self._session.execute("SET synchronous_commit = on")
        rename = f'ALTER SCHEMA "{self._schema}" RENAME TO "{self._store}"'
        try:
            create.run_commit(self._session, rename, is_replicated=self._is_replicated)
        except AlreadyExists:
            raise self._taken() from None
        return as_int(row[0])

    def discard(self) -> None:
        self._session.execute(f'DROP SCHEMA "{self._schema}" CASCADE')

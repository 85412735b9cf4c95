"""Make a new store on a server: a schema with its tables and first records, in one transaction of the server."""

from __future__ import annotations

import os

from storage.disk.codec import pack, seal, unpack, unseal
from storage.disk.postgres.environment import FORMAT_KEY, SERVER_KEY
from storage.disk.postgres.layout import TABLES, Place
from storage.disk.postgres.server_clock import ServerClock
from storage.disk.postgres.session import Session
from storage.disk.postgres.url import COPY_SUFFIX, StoreUrl
from storage.disk.schema import FORMAT_NUMBER, HEADS, STORE
from storage.disk.superblock import Superblock
from storage.disk.view import SUPERBLOCK_KEY
from storage.errors import AlreadyExists, InvalidValue
from storage.process.clock import Clock

_HALF_KEY = 1 << 30


def create(name: str, clock: Clock, *, is_replicated: bool = False) -> None:
    """Create an empty store, atomically.

    Args:
        is_replicated: whether each commit is to wait for a synchronous standby.

    Raises:
        AlreadyExists: the schema exists, and is left unchanged.
        ServerUnreachable, NotPermitted, StoreNotFound, InvalidValue
    """
    url = StoreUrl.parse(name)
    if url.store.endswith(COPY_SUFFIX):
        raise InvalidValue(f"{url.store!r} is the name of an unfinished copy", hint="Choose another name.")
    session = Session.connect(url, clock, application=application())
    try:
        check_server(session, url)
        if session.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{url.store}'"):
            raise AlreadyExists(f"{url.shown} exists already; nothing was changed", path=url.shown)
        server_clock = ServerClock(clock)
        rows = session.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8")
        server_clock.look(int(rows[0][0] or b"0"))
        session.execute(
            f'BEGIN; CREATE SCHEMA "{url.store}"; {TABLES} {_first_records(server_clock, is_replicated)} COMMIT'
        )
    finally:
        session.close()


def application() -> str:
    """The name of this process in the server's list of sessions."""
    return f"txnctl:{os.uname().nodename}:{os.getpid()}"


def check_server(session: Session, url: StoreUrl) -> None:
    """Refuse a server that would not keep what it has confirmed.

    Raises:
        InvalidValue
    """
    (row,) = session.execute("SELECT current_setting('fsync'), current_setting('full_page_writes')")
    if b"off" in row:
        raise InvalidValue(
            f"the server of {url.shown} runs with fsync or full_page_writes off, and may lose what it has confirmed",
            hint="Switch both on in postgresql.conf.",
        )


def _first_records(clock: ServerClock, is_replicated: bool) -> str:
    """The statements that store the first records."""
    store_id = os.urandom(16)
    records = {
        FORMAT_KEY: seal(STORE, FORMAT_KEY, pack([FORMAT_NUMBER, store_id, clock.wall_ms()])),
        SERVER_KEY: sealed_server_record(is_replicated),
    }
    prefix = Place(STORE).prefix
    values = ", ".join(
        f"('\\x{(prefix + key).hex()}', '\\x{record.hex()}')" for key, record in records.items()
    )
    superblock = seal(HEADS, SUPERBLOCK_KEY, Superblock(store_id, clock).encode()).hex()
    return (
        f"INSERT INTO kv VALUES {values}; INSERT INTO commits VALUES (1, '\\x{superblock}');"
        f" INSERT INTO counters VALUES (-1, {clock.wall_ms()});"
    )


def sealed_server_record(is_replicated: bool) -> bytes:
    """The record of a new store's lock keys, which are drawn, and of whether commits wait for a standby."""
    lock_class = int.from_bytes(os.urandom(4), "big") % _HALF_KEY
    return seal(STORE, SERVER_KEY, pack([lock_class, lock_class + _HALF_KEY, is_replicated]))


def lock_class_of(record: bytes) -> tuple[int, bool]:
    """The first half of the lock keys of a store, and whether its commits wait for a standby, of its sealed record."""
    lock_class, _, is_replicated = unpack(unseal(STORE, SERVER_KEY, record), 3)[:3]
    return lock_class, is_replicated


def is_replicated(session: Session) -> bool:
    """Whether commits on the server wait for a standby."""
    (row,) = session.execute("SELECT current_setting('synchronous_standby_names') <> ''")
    return row[0] == b"t"

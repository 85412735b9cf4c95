"""Make a new store on a server: a schema with its tables and first records, in one transaction of the server."""

from __future__ import annotations

import os

from storage.disk.codec import pack, seal
from storage.disk.postgres.environment import FORMAT_KEY, SERVER_KEY
from storage.disk.postgres.layout import FUNCTIONS, TABLES, Place
from storage.disk.postgres.server_clock import ServerClock
from storage.disk.postgres.server_state import ServerState
from storage.disk.postgres.session import Session
from storage.disk.postgres.url import StoreUrl
from storage.disk.schema import FORMAT_NUMBER, HEADS, STORE
from storage.disk.superblock import Superblock
from storage.disk.view import SUPERBLOCK_KEY
from storage.errors import AlreadyExists
from storage.process.clock import Clock

_HALF_KEY = 1 << 30


def create(name: str, clock: Clock, *, is_replicated: bool | None = None) -> None:
    """Create an empty store, atomically.

    Args:
        is_replicated: whether each commit is to wait for a synchronous standby; None: yes, and a server without one
            is refused.

    Raises:
        AlreadyExists: the schema exists, and is left unchanged.
        StoreUnsafe: the server may lose what it confirms.
        ServerUnreachable, NotPermitted, StoreNotFound, OutcomeUnknown
    """
    url = StoreUrl.parse(name)
    session = Session.connect(url, clock, application=f"txnctl:{os.uname().nodename}:{os.getpid()}")
    try:
        state = ServerState.read(session)
        if session.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{url.store}'"):
            raise AlreadyExists(f"{url.shown} exists already; nothing was changed", path=url.shown)
        is_replicated = state.chosen_durability(url.shown, is_replicated)
        state.check_writable(url.shown, is_replicated=is_replicated)
        server_clock = ServerClock(clock)
        rows = session.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8")
        server_clock.look(int(rows[0][0] or b"0"))
        records = _first_records(server_clock, is_replicated)
        session.execute(f'BEGIN; CREATE SCHEMA "{url.store}"; {TABLES} {FUNCTIONS} {records} COMMIT')
    finally:
        session.close()


def _first_records(clock: ServerClock, is_replicated: bool) -> str:
    """The statements that store the first records."""
    store_id = os.urandom(16)
    lock_class = int.from_bytes(os.urandom(4), "big") % _HALF_KEY
    records = {
        FORMAT_KEY: pack([FORMAT_NUMBER, store_id, clock.wall_ms()]),
        SERVER_KEY: pack([lock_class, lock_class + _HALF_KEY, is_replicated]),
    }
    prefix = Place(STORE).prefix
    values = ", ".join(
        f"('\\x{(prefix + key).hex()}', '\\x{seal(STORE, key, payload).hex()}')"
        for key, payload in records.items()
    )
    superblock = seal(HEADS, SUPERBLOCK_KEY, Superblock(store_id, clock).encode()).hex()
    return (
        f"INSERT INTO kv VALUES {values}; INSERT INTO commits VALUES (1, '\\x{superblock}');"
        f" INSERT INTO counters VALUES (-1, {clock.wall_ms()});"
    )

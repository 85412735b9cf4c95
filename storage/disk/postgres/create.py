"""Make a new store on a server: a schema with its tables and first records, in one transaction of the server."""

from __future__ import annotations

import os

from storage.disk.codec import pack, seal
from storage.disk.postgres.client_name import application
from storage.disk.postgres.layout import FUNCTIONS, TABLES, RecordPlace
from storage.disk.postgres.server_clock import ServerClock
from storage.disk.postgres.server_record import ServerRecord
from storage.disk.postgres.server_state import ServerState
from storage.disk.postgres.session import Session
from storage.disk.postgres.url import COPY_SUFFIX, StoreUrl
from storage.disk.schema import FORMAT_KEY, FORMAT_NUMBER, HEADS, SERVER_KEY, STORE
from storage.disk.superblock import Superblock
from storage.disk.view import SUPERBLOCK_KEY
from storage.errors import AlreadyExists, InvalidValue, OutcomeUnknown, ServerLost
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
    if url.store.endswith(COPY_SUFFIX):
        raise InvalidValue(f"{url.store!r} is the name of an unfinished copy", hint="Choose another name.")
    session = Session.connect(url, clock, application=application())
    try:
        state = ServerState.read(session)
        state.check_primary(url.shown)
        if session.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{url.store}'"):
            raise AlreadyExists(f"{url.shown} exists already; nothing was changed", path=url.shown)
        is_replicated = state.chosen_durability(url.shown, is_replicated)
        state.check_writable(url.shown, is_replicated=is_replicated)
        server_clock = ServerClock(clock)
        server_clock.ask(session)
        records = _first_records(server_clock, new_record(state, is_replicated))
        run_commit(
            session,
            f'BEGIN; CREATE SCHEMA "{url.store}"; {TABLES} {FUNCTIONS} {records} COMMIT',
            is_replicated=is_replicated,
        )
    finally:
        session.close()


def new_record(state: ServerState, is_replicated: bool) -> ServerRecord:
    """The record of a new store about its server, with lock keys that are drawn."""
    lock_class = int.from_bytes(os.urandom(4), "big") % _HALF_KEY
    return ServerRecord(lock_class, lock_class + _HALF_KEY, is_replicated, *state.identity)


def run_commit(session: Session, text: str, *, is_replicated: bool) -> None:
    """Run text that ends in a commit.

    Raises:
        OutcomeUnknown: the connection was lost, or the commit did not wait for the standby.
        NotPermitted, StoreFull, StoreInvalid: nothing was made.
    """
    try:
        session.execute(text)
        why = "the commit did not wait for the standby" if is_replicated and session.is_local_only else None
    except ServerLost as error:
        why = error.message
    if why is not None:
        raise OutcomeUnknown(
            f"whether {session.shown} was made, and will last, is not known: {why}",
            hint="Look whether it opens; see that the standby is connected.",
        )


def _first_records(clock: ServerClock, record: ServerRecord) -> str:
    """The statements that store the first records."""
    store_id = os.urandom(16)
    records = {
        FORMAT_KEY: pack([FORMAT_NUMBER, store_id, clock.wall_ms()]),
        SERVER_KEY: record.encode(),
    }
    prefix = RecordPlace(STORE).prefix
    values = ", ".join(
        f"('\\x{(prefix + key).hex()}', '\\x{seal(STORE, key, payload).hex()}')"
        for key, payload in records.items()
    )
    superblock = seal(HEADS, SUPERBLOCK_KEY, Superblock(store_id, clock).encode()).hex()
    return (
        f"INSERT INTO kv VALUES {values}; INSERT INTO commits VALUES (1, '\\x{superblock}');"
        f" INSERT INTO counters VALUES (-1, {clock.wall_ms()});"
    )

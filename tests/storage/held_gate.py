"""The writer gate of a store as a different process holds it, which has gone silent there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from storage import Store
from tests import server_stores


@contextmanager
def held_gate(store: Store) -> Iterator[None]:
    """Hold the gate within the block: the kernel tells openings of a file apart, and a server its sessions."""
    if store.connection.environment.has_directory:
        with _held_byte(store.path):
            yield
    else:
        with _held_lock(store):
            yield


@contextmanager
def _held_byte(directory: str) -> Iterator[None]:
    from storage.process.byte_locks import ByteLocks
    from storage.process.writer_gate import GATE_BYTE

    locks = ByteLocks(os.path.join(directory, "store.lock"), writable=True)
    assert locks.take_exclusive(GATE_BYTE)
    try:
        yield
    finally:
        locks.close()


@contextmanager
def _held_lock(store: Store) -> Iterator[None]:
    import psycopg

    lock_class = int.from_bytes(store.connection.environment.lock_class, "big")
    with psycopg.connect(os.environ[server_stores.SERVER], autocommit=True) as session:
        # The role of a run may end a session that does nothing.
        session.execute("SET idle_session_timeout = 0")
        session.execute("SELECT pg_advisory_lock(%s::int4, 0)", (lock_class,))
        yield

"""The writer gate of a store as a different process holds it, which has gone silent there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from storage import Store
from storage.process.byte_locks import ByteLocks
from storage.process.writer_gate import GATE_BYTE


@contextmanager
def held_gate(store: Store) -> Iterator[None]:
    """Hold the gate within the block; the kernel tells openings of a file apart, not processes."""
    locks = ByteLocks(os.path.join(store.path, "store.lock"), writable=True)
    assert locks.take_exclusive(GATE_BYTE)
    try:
        yield
    finally:
        locks.close()

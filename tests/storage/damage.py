"""Breaking a store behind the engine's back, and what verify says of it."""

from __future__ import annotations

from collections.abc import Callable

from storage import Store
from storage.disk.view import WriteBatch

Break = Callable[[WriteBatch], object]


def damage(store: Store, change: Break) -> list[tuple[int | None, str]]:
    """Break the store; the problems that verify finds, as invariant and message."""
    store.connection.write(change)
    return [(problem.invariant, problem.message) for problem in store.maintenance.verify_store(full=True)]


def broken_by(store: Store, change: Break) -> set[int | None]:
    """Break the store; the invariants that verify finds broken."""
    return {invariant for invariant, _ in damage(store, change)}

"""A store that is busy: another thread is in the middle of a write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from storage import Store


@contextmanager
def busy(store: Store) -> Iterator[None]:
    """Whoever wants to write meanwhile waits, as long as its `lock_timeout` lets it."""
    begun, may_end = threading.Event(), threading.Event()

    def write(_: object) -> None:
        begun.set()
        assert may_end.wait(30)

    writer = threading.Thread(target=store.connection.write, args=(write,))
    writer.start()
    assert begun.wait(30)
    try:
        yield
    finally:
        may_end.set()
        writer.join()

"""Steps of tests of groups."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from storage import Store, faults
from tests.storage.busy import busy
from tests.storage.producer_steps import values

E = TypeVar("E", bound=BaseException)
T = TypeVar("T")
WAIT_S = 30


def ends_in(error: type[E]) -> pytest.RaisesExc[E]:
    """That the block of a group, all of it, ends in an error."""
    return pytest.raises(error)


def commits(store: Store) -> int:
    """The number of commits of the store so far."""
    return store.connection.environment.last_commit()


def in_thread(call: Callable[[], T]) -> T:
    """Call outside of the thread of the group, as another user of the store."""
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


def stored(store: Store) -> list[bytes]:
    """The messages that another process sees."""
    return in_thread(lambda: values(store))


@contextmanager
def gate_held(store: Store) -> Iterator[None]:
    """A thread of this process is in the middle of a write."""
    with busy(store):
        yield


def interrupt_once(point: str) -> None:
    """Ctrl-C at a fault point, once; a fixture disarms it."""

    def stop() -> None:
        faults.disarm()
        raise KeyboardInterrupt

    faults.arm(point, stop)

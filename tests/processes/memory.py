"""A directory in memory, for stores that are written very often: a kill leaves the page cache, so no disk is needed.

Power cuts are the business of other tests.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from storage import Store
from tests.processes import places

_MEMORY = "/dev/shm"
_ROOM_BYTES = 2 * 1024**3


def memory() -> str | None:
    """The directory of files in memory; None where the machine has no room there."""
    if not os.access(_MEMORY, os.W_OK):
        return None
    figures = os.statvfs(_MEMORY)
    return _MEMORY if figures.f_bavail * figures.f_frsize >= _ROOM_BYTES else None


@contextmanager
def directory_in_memory() -> Iterator[str]:
    """A fresh directory, removed at the end; on the disk where the machine has no memory for it."""
    with tempfile.TemporaryDirectory(prefix="tables-", dir=memory()) as place:
        yield place


@contextmanager
def store_in_memory() -> Iterator[str]:
    """Where a new store lies in such a directory; it is verified at the end."""
    with directory_in_memory() as directory:
        place = f"{directory}/store"
        Store.create(place)
        yield place
        with Store.open(place) as store:
            assert store.maintenance.verify_store(full=True) == []
        places.remove(places.name_of(place))

"""Scratch directories. Who is killed leaves one behind, and the next who makes one removes it.

The owner holds a kernel lock on the directory itself, which ends with the process however that dies. Who finds a
directory that nobody holds removes it while it holds the lock: so a new one that was found before its owner had locked
it is missed by that owner, which makes another.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PREFIX: Final = "txnctl-spark-"


@contextmanager
def scratch() -> Iterator[str]:
    """A new directory for temporary files, removed at the end; those of the dead are removed first."""
    _sweep(tempfile.gettempdir())
    place, lock = _made()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(lock)


def _made() -> tuple[str, int]:
    """A directory, and the descriptor that holds its lock."""
    while True:
        place = tempfile.mkdtemp(prefix=PREFIX)
        lock = _locked(place)
        if lock is not None:
            return place, lock


def _sweep(parent: str) -> None:
    """Remove our user's scratch directories whose owner is dead."""
    with os.scandir(parent) as found:
        places = [each.path for each in found if each.name.startswith(PREFIX) and _is_ours(each)]
    for place in places:
        lock = _locked(place)
        if lock is not None:
            shutil.rmtree(place, ignore_errors=True)
            os.close(lock)


def _is_ours(entry: os.DirEntry[str]) -> bool:
    try:
        return (
            entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        )
    except OSError:
        return False


def _locked(place: str) -> int | None:
    """The descriptor that holds the lock of a directory; None if another process does, or it is gone."""
    try:
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(place, follow_symlinks=False)):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None

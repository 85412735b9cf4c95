"""Scratch directories. A killed process leaves one behind; the next process that makes a scratch directory removes the
orphan.

The owner holds a kernel lock on the directory itself, which is released however the process dies. A sweep holds the
lock of a directory during the removal. A new directory may be swept before the owner has locked it: the owner then
fails to lock, and makes a second directory.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from storage.process.machine import temporary_directory

PREFIX: Final = "txnctl-spark-"


@contextmanager
def scratch_directory() -> Iterator[str]:
    """Make a directory for temporary files, removed at the end of the block; orphans of dead processes are removed
    first.
    """
    _remove_orphans(temporary_directory())
    directory, lock = _make_locked()
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _make_locked() -> tuple[str, int]:
    """Make a directory; return its path and the descriptor of the lock."""
    while True:
        directory = tempfile.mkdtemp(prefix=PREFIX)
        lock = _try_lock(directory)
        if lock is not None:
            return directory, lock


def _remove_orphans(parent: str) -> None:
    """Remove this user's scratch directories of dead processes."""
    with os.scandir(parent) as scan:
        directories = [entry.path for entry in scan if entry.name.startswith(PREFIX) and _is_ours(entry)]
    for directory in directories:
        lock = _try_lock(directory)
        if lock is not None:
            shutil.rmtree(directory, ignore_errors=True)
            os.close(lock)


def _is_ours(entry: os.DirEntry[str]) -> bool:
    try:
        return (
            entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        )
    except OSError:
        return False


def _try_lock(directory: str) -> int | None:
    """Lock a directory and return the descriptor; None if another process holds the lock, or the directory is gone."""
    try:
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(directory, follow_symlinks=False)):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None

"""Directories in which a store is built, beside where it will be: `.NAME.PID.new`.

Whoever builds holds a kernel lock (flock) on the directory itself, which ends with the process whatever happens.
So one that can be locked was left by a process that is dead, and the next builder beside it removes it; a pid alone
would prove nothing. There is no moment at which a directory of a living builder can be taken for a leftover: the
builder makes sure, when it has the lock, that what it locked still has its name, and whoever removes does the same.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from storage.disk.directory import FILES, give_to_owner


@contextmanager
def directory(destination: str, store: str | None = None) -> Iterator[str]:
    """A new, empty directory beside `destination`, locked; gone at the end unless it was renamed.

    Leftovers beside it are removed first.

    Args:
        store: the store to whose owner it belongs; None for who runs this.

    Raises:
        OSError: it cannot be made.
    """
    parent, name = os.path.split(destination)
    _remove_leftovers(parent, name)
    path = os.path.join(parent, f".{name}.{os.getpid()}.new")
    descriptor = _make(path)
    try:
        if store is not None:
            give_to_owner(descriptor, store)
        yield path
    finally:
        if _has_name(descriptor, path):
            shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _make(path: str) -> int:
    """Make a directory and lock it; its descriptor."""
    while True:
        os.mkdir(path, 0o700)
        try:
            descriptor = _open(path)
        except FileNotFoundError:
            continue  # taken for a leftover before it was locked
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _has_name(descriptor, path):
            return descriptor
        os.close(descriptor)


def is_aside(name: str, destination: str) -> bool:
    """Whether that is how a directory is called in which something of that name is built."""
    return re.fullmatch(rf"\.{re.escape(destination)}\.[0-9]+\.new", name) is not None


def _remove_leftovers(parent: str, name: str) -> None:
    """Remove what dead builders of the same name left, as far as this user may."""
    for each in os.listdir(parent):
        if is_aside(each, name):
            _remove_if_dead(os.path.join(parent, each))


def _remove_if_dead(path: str) -> None:
    try:
        descriptor = _open(path)
    except OSError:
        return  # gone by now, not a directory, or somebody else's
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A directory that holds anything but a store was not made by us, whatever it is called.
        if _has_name(descriptor, path) and set(os.listdir(path)) <= set(FILES):
            shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        return  # its builder lives
    finally:
        os.close(descriptor)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _has_name(descriptor: int, path: str) -> bool:
    """Whether the directory that is open is the one at `path`."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False

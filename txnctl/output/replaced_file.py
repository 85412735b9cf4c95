"""A file that a user named for output: replaced whole by a rename, and never through a link of a different user.

In a directory that many may write to, such as /tmp, a different user can plant a link under the very name, and let the
command overwrite a file of its own user. So every link on the way must belong to the user or to root.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from secrets import token_hex
from stat import S_ISLNK, S_ISREG
from typing import NamedTuple

from storage.errors import InvalidValue
from txnctl.output.stream import OutputFailed

_DIRECTORY = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_LINKS_MAX = 40
"""As in the kernel."""

_NO_PATH = ("pipe:[", "socket:[", "anon_inode:")
"""Targets of links in /proc that are no paths, as of /dev/stdout in a pipeline."""


class FilePlace(NamedTuple):
    """A name in an open directory."""

    directory: int
    name: str


def replace_file(
    path: str, data: bytes, *, mode: int = 0o600, store: str | None = None, heeds_umask: bool = True
) -> None:
    """Write the data to a new file, and rename the new file to the path.

    The target of a symbolic link is replaced, and the link stays. A path that is not a file, such as a pipe, is written
    to directly.

    Args:
        mode: of the new file, less the umask if `heeds_umask`.
        store: a directory that the file must not be in.

    Raises:
        InvalidValue: the path cannot be written, leads over a link of a different user, or is within the store, which
            the file could destroy.
        OutputFailed: the disk is full, or failed.
    """
    try:
        place = _resolve(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        if store is not None and os.path.samestat(os.fstat(place.directory), os.stat(store)):
            raise InvalidValue(f"{path} is inside the store", hint="Name a file elsewhere.", path=path)
        _write_at(place, data, mode, path, heeds_umask=heeds_umask)
    except FileNotFoundError as error:
        raise _unwritable(path, error) from error
    finally:
        os.close(place.directory)


def _write_at(place: FilePlace, data: bytes, mode: int, path: str, *, heeds_umask: bool) -> None:
    directory, name = place
    try:
        if not _is_file_or_missing(place):
            _write(os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=directory), data, path)
            return
        temporary = f".txnctl-{token_hex(8)}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, mode, dir_fd=directory)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        if not heeds_umask:
            os.fchmod(descriptor, mode)
        _write(descriptor, data, path, durable=True)
        try:
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            raise _unwritable(path, error) from error
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise


def _is_file_or_missing(place: FilePlace) -> bool:
    try:
        return S_ISREG(os.stat(place.name, dir_fd=place.directory).st_mode)
    except FileNotFoundError:
        return True


def _resolve(path: str) -> FilePlace:
    """Walk to the place of the path, link by link.

    Raises:
        OSError: a part of the path is missing or no directory.
        InvalidValue: a link belongs to a different user.
    """
    links = 0
    directory = os.open("/" if path.startswith("/") else ".", _DIRECTORY)
    ahead = path.split("/")[::-1]
    try:
        while True:
            name = ahead.pop()
            if name in ("", ".") and ahead:
                continue
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                if ahead or not name:
                    raise
                return FilePlace(directory, name)
            if S_ISLNK(status.st_mode):
                links += 1
                _check_link(path, name, status.st_uid, links)
                target = os.readlink(name, dir_fd=directory)
                if target.startswith(_NO_PATH):
                    return FilePlace(directory, name)
                ahead += target.split("/")[::-1]
                if target.startswith("/"):
                    directory = _step(directory, "/")
            elif ahead:
                directory = _step(directory, name)
            else:
                return FilePlace(directory, name)
    except BaseException:
        os.close(directory)
        raise


def _step(directory: int, name: str) -> int:
    """Open a directory in a directory, which is closed."""
    below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    os.close(directory)
    return below


def _check_link(path: str, name: str, owner: int, links: int) -> None:
    if owner not in (os.geteuid(), 0):
        raise InvalidValue(
            f"{path}: {name} is a link of user {owner}, and is not followed",
            hint="Name the file itself, or a place in a directory of yours.",
            path=path,
        )
    if links > _LINKS_MAX:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _write(descriptor: int, data: bytes, path: str, *, durable: bool = False) -> None:
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(descriptor)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(
            f"cannot write {path!r}: {error.strerror}", path=path, errno=error.errno
        ) from error


def _unwritable(path: str, error: OSError) -> InvalidValue:
    return InvalidValue(f"cannot write {path!r}: {error.strerror}", path=path)

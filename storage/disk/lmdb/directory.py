"""The directory of a store: the checks of directory and files that come before a store is opened."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from errno import ELOOP, ENAMETOOLONG
from typing import Final

from storage.actions import Action, Hint, Keyword
from storage.errors import (
    CorruptStore,
    InvalidValue,
    NotAStore,
    StoreInvalid,
    StoreNotFound,
    StoreUnsafe,
)
from storage.process import lock_file
from storage.process.machine import proc_file, user_name
from storage.system_errors import refusal, refusing

DATA: Final = "data.mdb"
LMDB_LOCK: Final = "lock.mdb"
LOCK: Final = lock_file.FILE_NAME
FILES: Final = (DATA, LMDB_LOCK, LOCK)
_NETWORK: Final = (
    "nfs",
    "cifs",
    "smb",
    "afs",
    "ceph",
    "lustre",
    "glusterfs",
    "gfs2",
    "ocfs2",
    "9p",
    "fuse.sshfs",
)
_ROOT: Final = 0
_MAGIC: Final = 0xBEEFC0DE
_META_BYTES: Final = 4096
_SHOWN_CHARACTERS: Final = 200
_COMMIT_AT: Final = 16 + 128


def resolved(path: str, how: Callable[[str], str]) -> str:
    """The path, made absolute by `how`.

    Raises:
        StoreNotFound: the path is relative to a directory that was removed.
        InvalidValue: the path has a NUL character.
        StoreInvalid: the path is too long, or leads through a loop of links.
    """
    if "\0" in path:
        raise InvalidValue(f"no path has a NUL character: {path!r}")
    try:
        absolute = how(path)
    except FileNotFoundError:
        raise StoreNotFound(
            f"cannot tell where {path} is: the current directory was removed",
            hint="Change to another directory, or name the store by its whole path.",
        ) from None
    try:
        os.lstat(absolute)
    except OSError as error:
        if error.errno in (ENAMETOOLONG, ELOOP):
            raise _unreachable(absolute, error) from None
    return absolute


def _unreachable(path: str, error: OSError) -> StoreInvalid:
    is_long = len(path) > _SHOWN_CHARACTERS
    shown = f"{path[:_SHOWN_CHARACTERS]}… ({len(path)} characters)" if is_long else path
    return StoreInvalid(f"cannot reach {shown}: {error.strerror}", hint="Name the store by another path.")


def check(path: str) -> None:
    """Check that `path` is a directory with the files of a store, safe to open.

    Raises:
        StoreNotFound, NotAStore, NotPermitted, StoreUnsafe, CorruptStore, StoreInvalid
    """
    try:
        directory = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreNotFound(
            f"there is no store at {path}",
            hint=Hint(
                "Create one with `{}`, or name another with {}.", Action("Store.create"), Keyword("path")
            ),
        ) from None
    except OSError as error:
        raise refusal(f"cannot look at {path}", error) from None
    if not stat.S_ISDIR(directory.st_mode):
        raise NotAStore(f"{path} is a file, not the directory of a store")
    _check_has_data(path)
    _check_private(path, directory)
    if directory.st_uid not in (os.geteuid(), _ROOT) and os.geteuid() != _ROOT:
        raise StoreUnsafe(
            f"{path} belongs to {_user(directory.st_uid)}, a user who could change the store at any time",
            hint=f"Run txnctl as {_user(directory.st_uid)}, or work on a copy of your own.",
        )
    check_files(path)
    check_local(path, directory.st_dev)
    _check_magic(os.path.join(path, DATA))


def check_files(path: str) -> None:
    """Check for the plain files of a store that only the owner of the directory may write.

    Raises:
        NotAStore, StoreUnsafe, NotPermitted, StoreInvalid
    """
    with refusing(f"cannot look at {path}"):
        owner = os.stat(path).st_uid
    for file in FILES:
        _check_file(path, file, owner)


def _check_has_data(path: str) -> None:
    """Check for the data file before the mode: no hint shall ask to change the mode of an unrelated directory."""
    try:
        os.lstat(os.path.join(path, DATA))
    except FileNotFoundError:
        raise NotAStore(f"{path} is a directory, but not a whole txnctl store: {DATA} is missing") from None
    except OSError:
        return  # a directory that this user may not search is refused below, with its owner


def _check_file(path: str, name: str, owner: int) -> None:
    """Check for a plain file that only its owner may write. LMDB's lock file may be missing: `reader_table`."""
    file = os.path.join(path, name)
    try:
        status = os.lstat(file)
    except FileNotFoundError:
        if name == LMDB_LOCK:
            return
        raise NotAStore(f"{path} is a directory, but not a whole txnctl store: {name} is missing") from None
    except OSError as error:
        raise refusal(f"cannot look into {path}", error) from None
    if not stat.S_ISREG(status.st_mode):
        raise StoreUnsafe(f"{file} is a link or a special file; a store needs a plain file")
    _check_private(file, status)
    if status.st_uid != owner:
        raise StoreUnsafe(
            f"{file} belongs to {_user(status.st_uid)}, but the store to {_user(owner)}",
            hint=f"Run `chown {owner} {file}` as root if you trust its content.",
        )


def _user(number: int) -> str:
    return f"user {user_name(number) or number}"


def give_to_owner(descriptor: int, path: str) -> None:
    """As root, give a new file or directory to the user of the store at `path`."""
    if os.geteuid() == _ROOT:
        owner = os.stat(path)
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def data_bytes(path: str) -> int:
    """The size of the data file in a store directory.

    Raises:
        StoreInvalid: the disk does not say.
    """
    file = os.path.join(path, DATA)
    with refusing(f"cannot look at {file}"):
        return os.stat(file).st_size


def make_subdirectory(path: str, store: str) -> None:
    """Make a directory in the store at `store` for the store's owner alone, if it is missing.

    Raises:
        NotPermitted, StoreFull, TooManyFiles, StoreInvalid
    """
    try:
        os.mkdir(path, 0o700)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            give_to_owner(descriptor, store)
        finally:
            os.close(descriptor)
    except FileExistsError:
        return
    except OSError as error:
        raise refusal(f"cannot create {path}", error) from None


def _check_private(path: str, status: os.stat_result) -> None:
    if status.st_mode & 0o022:
        raise StoreUnsafe(
            f"{path} may be written by other users (mode {stat.S_IMODE(status.st_mode):04o})",
            hint=f"Run `chmod go-w {path}` if you trust its content.",
        )


def check_local(path: str, device: int) -> None:
    """Raises:
    StoreUnsafe: a network file system, which keeps neither the locks nor the order of writes.
    """
    device_name = f"{os.major(device)}:{os.minor(device)}".encode("ascii")
    for line in (proc_file("self/mountinfo") or b"").splitlines():
        fields = line.split(b" ", 3)
        if fields[2] == device_name:
            kind = line.partition(b" - ")[2].split(b" ", 1)[0].decode("ascii", "replace")
            if kind.startswith(_NETWORK):
                raise StoreUnsafe(
                    f"{path} lies on a network file system ({kind})",
                    hint="Put the store on a local disk.",
                )
            return


def _check_magic(data: str) -> None:
    """Check that the file begins like a file of LMDB: LMDB would turn an empty file into a new store."""
    try:
        with open(data, "rb") as file:
            meta_pages = file.read(2 * _META_BYTES)
    except OSError as error:
        raise refusal(f"cannot read {data}", error) from None
    if len(meta_pages) < 2 * _META_BYTES:
        raise CorruptStore(f"{data} is truncated: {len(meta_pages)} bytes are less than the two first pages")
    if (
        int.from_bytes(meta_pages[16:20], "little") != _MAGIC
        and int.from_bytes(meta_pages[16:20], "big") != _MAGIC
    ):
        raise NotAStore(f"{data} is not a file of LMDB")
    # LMDB opens the first or second page, by the later commit. The two commits must be neighbours, each on its page.
    first, second = (
        int.from_bytes(meta_pages[at : at + 8], sys.byteorder)
        for at in (_COMMIT_AT, _META_BYTES + _COMMIT_AT)
    )
    are_neighbours = abs(first - second) == 1 and first % 2 == 0 and second % 2 == 1
    if not are_neighbours and (first or second):
        raise CorruptStore(
            f"{data} is damaged: the two first pages name the commits {first} and {second}",
            hint="Restore a backup.",
        )

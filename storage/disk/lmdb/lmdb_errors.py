"""Translate errors of LMDB: the event, the store, and the next step for the user."""

from __future__ import annotations

import os
from typing import Final

import lmdb

from storage.actions import Action, Hint
from storage.disk.lmdb import directory
from storage.errors import CorruptStore, ReadersFull, StoreFull, StoreInvalid, TooManyFiles
from storage.limits import READERS_MAX, WRITE_BYTES_TARGET
from storage.system_errors import FAILED, FAILED_HINT, TOO_MANY

DAMAGE: Final = (
    lmdb.BadTxnError,  # LMDB's answer to every call after an unreadable page
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.PageFullError,
    lmdb.CursorFullError,
    lmdb.IncompatibleError,  # a flag of a node or a database is not what it was
    lmdb.BadDbiError,
    lmdb.InvalidParameterError,
)
FREE_SPACE: Final = Action("store.reports.list_freeable")
_WRITE_BYTES_MAX: Final = 2 * WRITE_BYTES_TARGET
_FULL_WORDS: Final = ("No space left", "File too large", "quota exceeded", "ENOSPC")


def is_damage(error: BaseException | None) -> bool:
    """Whether LMDB has met a damaged page: an error of LMDB, or one that py-lmdb returns beside a result."""
    if isinstance(error, SystemError):
        error = error.__cause__
    return isinstance(error, lmdb.Error)


def damaged(path: str, error: BaseException) -> CorruptStore:
    """The error for a damaged page of LMDB."""
    return CorruptStore(
        f"a page of {path} is damaged: {error}",
        hint=Hint("Run `{}`, then restore a backup.", Action("store.maintenance.verify_store", full=True)),
    )


def too_many_files(path: str, error: Exception) -> TooManyFiles | None:
    """The error for a file that LMDB could not open because too many are open; None for a different error."""
    if any(os.strerror(number) in str(error) for number in TOO_MANY):
        return TooManyFiles(
            f"{path} cannot be opened: too many files are open",
            hint="Close some files, or raise the limit on open files (ulimit -n).",
        )
    return None


def not_done(path: str, action: str, error: Exception) -> StoreInvalid:
    """The error for a store that LMDB cannot open or copy for a reason of the disk or the system.

    Args:
        action: "opened" or "copied".
    """
    text = str(error)
    words = f"{path} cannot be {action}: {text}"
    if any(full in text for full in _FULL_WORDS):
        return StoreFull(words, hint=Hint("Free some space: `{}` tells how.", FREE_SPACE))
    has_failed = any(os.strerror(number) in text for number in FAILED)
    return too_many_files(path, error) or StoreInvalid(words, hint=FAILED_HINT if has_failed else None)


def readers_full(path: str) -> ReadersFull:
    """The error for a view without a free reader slot."""
    return ReadersFull(
        f"all {READERS_MAX} reader slots of {path} are taken",
        hint=Hint("Close some readers; `{}` lists the processes.", Action("store.reports.list_readers")),
    )


def refused(path: str, error: Exception) -> StoreInvalid:
    """The error for a change that the disk refused; StoreFull where there is no room."""
    text = str(error)
    too_many = too_many_files(path, error)
    if too_many is not None:
        return too_many
    is_short_write = "Input/output error" in text and not _has_room(path)
    if is_short_write or any(words in text for words in _FULL_WORDS):
        return StoreFull(
            f"no room for the change in {path}: {text}",
            hint=Hint("Free some space: `{}` tells how. Acknowledged messages are safe.", FREE_SPACE),
        )
    return StoreInvalid(f"the disk refused a change in {path}: {text}", hint="Nothing was stored.")


def _has_room(path: str) -> bool:
    """Whether a store transaction would fit, or the disk does not say.

    LMDB reports a write cut short by a full disk as an input/output error.
    """
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    try:
        disk, size = os.statvfs(path), os.stat(os.path.join(path, directory.DATA)).st_size
    except OSError:
        return True
    is_limited = limit != resource.RLIM_INFINITY and size + _WRITE_BYTES_MAX > limit
    return disk.f_bavail * disk.f_frsize >= _WRITE_BYTES_MAX and not is_limited

"""Translate errors of the operating system: one answer to each error number, for every file of a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from errno import (
    EACCES,
    EDQUOT,
    EFBIG,
    EIO,
    EMFILE,
    ENFILE,
    ENODEV,
    ENOLCK,
    ENOMEM,
    ENOSPC,
    ENXIO,
    EPERM,
    EROFS,
    ESTALE,
    EUCLEAN,
)
from typing import Final, NoReturn

from storage.errors import NotPermitted, StoreFull, StoreInvalid, TooManyFiles

FULL: Final = (ENOSPC, EDQUOT, EFBIG)
DENIED: Final = (EACCES, EPERM, EROFS)
TOO_MANY: Final = (EMFILE, ENFILE)
FAILED: Final = (EIO, ENODEV, ENOLCK, ENOMEM, ENXIO, ESTALE, EUCLEAN)
"""The disk or the kernel gave up; no program is wrong."""

_READ_ONLY_HINT: Final = "The disk is mounted read-only: mount it for writing, or work on a copy."
FAILED_HINT: Final = "See the kernel's log (dmesg) for the cause, then try again."
_HINTS: Final[dict[type[StoreInvalid], str]] = {
    StoreFull: "Free some space.",
    TooManyFiles: "Close some files, or raise the limit on open files (ulimit -n).",
}


def refusal(what: str, error: OSError) -> StoreInvalid:
    """The error of storage for an error of the operating system: StoreFull, NotPermitted, TooManyFiles, StoreInvalid.

    Args:
        what: what could not be done, to which file: `cannot open /s/store.lock`.
    """
    kind = StoreInvalid
    for numbers, special in ((FULL, StoreFull), (DENIED, NotPermitted), (TOO_MANY, TooManyFiles)):
        if error.errno in numbers:
            kind = special
    hint = _READ_ONLY_HINT if error.errno == EROFS else _HINTS.get(kind)
    if error.errno in FAILED:
        hint = FAILED_HINT
    return kind(f"{what}: {error.strerror or error}", hint=hint)


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Raise the error of storage where the disk or the system refuses a call of the block.

    Args:
        what: as for `refusal`.

    Raises:
        StoreFull, NotPermitted, TooManyFiles, StoreInvalid
    """
    try:
        yield
    except OSError as error:
        raise_refusal(what, error)


def raise_refusal(what: str, error: OSError) -> NoReturn:
    """Raise the error of storage for a refused call, or the error itself where no call was refused.

    Args:
        what: as for `refusal`.
    """
    refused = system_refusal(what, error)
    if refused is None:
        raise error
    raise refused from error


def system_refusal(what: str, error: BaseException) -> StoreInvalid | None:
    """The error of storage for what the disk or the system refused, at whatever call; None for an error of a program.

    Args:
        what: as for `refusal`.
    """
    if isinstance(error, OSError) and error.errno in (*FULL, *DENIED, *TOO_MANY, *FAILED):
        return refusal(what, error)
    return None

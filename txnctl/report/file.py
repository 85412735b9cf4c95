"""The page as a file: there whole or not at all, and its writer's alone."""

from __future__ import annotations

import os
from contextlib import suppress

from storage.errors import InvalidValue
from txnctl.output.stream import OutputFailed


def write(path: str, data: bytes, *, store: str) -> None:
    """Put the data at a path: beside it under another name first, then renamed over what is there.

    A symbolic link stays one, and what it names is replaced. What is no file, such as a pipe, is written to.

    Raises:
        InvalidValue: nothing can be written there; or it is within the store, which would be the end of that.
        OutputFailed: the disk is full, or failed.
    """
    at = os.path.realpath(path)
    if os.path.dirname(at) == os.path.realpath(store):
        raise InvalidValue(f"{path} is inside the store", hint="Name a file elsewhere.", path=path)
    try:
        if os.path.exists(at) and not os.path.isfile(at):
            _write(os.open(at, os.O_WRONLY), data, path)
            return
        aside = f"{at}.{os.getpid()}.part"
        with suppress(FileNotFoundError):
            os.unlink(aside)
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidValue(f"cannot write {path!r}: {error.strerror}", path=path) from error
    try:
        _write(descriptor, data, path, durable=True)
        os.rename(aside, at)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(aside)
        raise


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

"""The report as a file: replaced atomically, and readable only by its writer."""

from __future__ import annotations

import os
from contextlib import suppress

from storage.errors import InvalidValue
from txnctl.output.stream import OutputFailed


def replace_file(path: str, data: bytes, *, store: str) -> None:
    """Write the data to a temporary file beside the path, and rename the temporary file over the target.

    The target of a symbolic link is replaced, and the link stays. A path that is not a file, such as a pipe, is written
    to directly.

    Raises:
        InvalidValue: the path cannot be written, or is within the store, which the file could destroy.
        OutputFailed: the disk is full, or failed.
    """
    target = os.path.realpath(path)
    if os.path.dirname(target) == os.path.realpath(store):
        raise InvalidValue(f"{path} is inside the store", hint="Name a file elsewhere.", path=path)
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            _write(os.open(target, os.O_WRONLY), data, path)
            return
        temporary = f"{target}.{os.getpid()}.part"
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidValue(f"cannot write {path!r}: {error.strerror}", path=path) from error
    try:
        _write(descriptor, data, path, durable=True)
        os.rename(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
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

"""The staging directory: tasks write files, the driver adopts them. Any file system that `pyarrow.fs` reaches.

    <staging>/write-<16 hex digits>/<partition>-<attempt>-<16 hex digits>.batches
    <staging>/write-<16 hex digits>.aborted

A file that no commit message names is left over from a task attempt that failed, was overtaken, or died. Such a file is
never read; it is removed with its write or, if the driver died, by age. Tasks may outlive the abort of their write: an
empty file notes the abort, and a task that finds the note removes its own file. The note goes by age.

No lmdb here: tasks import this.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EDQUOT, ENOENT, ENOSPC, EPERM
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from storage.errors import InvalidValue, NotFound, NotPermitted, StoreFull, TxnctlError
from storage.topic.entry import PackedColumns
from txnctl.spark.file_systems import needs_directories, open_file_system, without_secrets
from txnctl.spark.sink import staged_file
from txnctl.spark.sink.staged_file import StagedFile, StagedFileWriter

DIRECTORY: Final = "staging"
"""Name of the staging directory within a store's directory."""

ORPHAN_MS: Final = 24 * 3600 * 1000
"""A write without a new file for this long is dead."""

_ABORTED: Final = ".aborted"
_WRITE = re.compile(r"write-[0-9a-f]{16}")
_FILE = re.compile(r"\d+-\d+-[0-9a-f]{16}\.batches")
_KINDS = {ENOSPC: StoreFull, EDQUOT: StoreFull, EACCES: NotPermitted, EPERM: NotPermitted, ENOENT: NotFound}


class Staging:
    """A directory of staged files. Made by `at`.

    Attributes:
        directory: the URI or path, for messages.
    """

    def __init__(self, filesystem: fs.FileSystem, root: str, directory: str) -> None:
        self._fs = filesystem
        self._root = root
        self.directory = without_secrets(directory)

    @classmethod
    def at(cls, directory: str) -> Staging:
        """Open the directory that a URI or an absolute path names.

        Raises:
            InvalidValue: no file system for the URI.
        """
        try:
            filesystem, root = open_file_system(directory)
        except (pa.ArrowInvalid, OSError, ValueError) as error:
            raise InvalidValue(
                f"{without_secrets(directory)} is not a directory for staged files: {error}",
                hint="Give stagingPath an absolute path, or a URI such as s3://bucket/staging or hdfs://host/staging.",
            ) from None
        return cls(filesystem, root, directory)

    def make_directory(self) -> None:
        """Create the directory if missing. Only the driver does so: a task without the directory runs on an unsuitable
        host.
        """
        with _reported("make the directory", self.directory):
            self._fs.create_dir(self._root, recursive=True)

    @contextmanager
    def writing(self, write: str, name: str) -> Iterator[StagedFileWriter]:
        """Create a file of a write; the block closes the writer, and a failure removes the file.

        Raises:
            NotFound: this host does not have the driver's directory.
            StoreFull, NotPermitted
            TxnctlError: the write was aborted; nothing of it is left.
        """
        write_directory = f"{self._root}/{write}"
        with _reported("write in", f"{self.directory}/{write}"):
            self._check_reachable()
            self._check_not_aborted(write)
            if needs_directories(self._fs):
                self._fs.create_dir(write_directory, recursive=False)
            stream = self._fs.open_output_stream(f"{write_directory}/{name}")
        try:
            yield StagedFileWriter(_Reporting(stream, f"{self.directory}/{write}/{name}"), write, name)
        except BaseException:
            with suppress(OSError):
                stream.close()
            with suppress(OSError):
                self._fs.delete_file(f"{write_directory}/{name}")
            raise
        # Either this task sees the note of an abort, or the abort, which comes after its note, sees the file.
        with _reported("look in", self.directory):
            self._check_not_aborted(write)

    def _check_not_aborted(self, write: str) -> None:
        if self._fs.get_file_info(f"{self._root}/{write}{_ABORTED}").type is fs.FileType.File:
            self.remove(write)
            raise TxnctlError(f"{write} was aborted while a task of it was running; nothing was stored")

    def _check_reachable(self) -> None:
        if self._fs.get_file_info(self._root).type is not fs.FileType.Directory:
            raise NotFound(
                f"this task runs on {socket.gethostname()}, where there is no directory {self.directory}",
                hint="Give stagingPath: a directory that the driver and every executor reach.",
            )

    def entries(self, file: StagedFile, target: str) -> Iterator[PackedColumns]:
        """Read the entries of a target in order, a few MB at a time.

        Raises:
            NotFound: this host does not have the file.
            InvalidValue: the file is not the staged file.
        """
        path = f"{file.write}/{file.name}"
        try:
            with self._fs.open_input_file(f"{self._root}/{path}") as source:
                yield from staged_file.entries(source, file, target)
        except FileNotFoundError:
            raise NotFound(
                f"{path}, which a task on {file.host} staged, is not in {self.directory} on {socket.gethostname()}",
                hint="Give stagingPath: a directory that the driver and every executor reach. Nothing was stored.",
            ) from None
        except OSError as error:
            raise _failure(error, "read", path) from None

    def remove(self, write: str) -> None:
        """Remove the files of an ended write; files that cannot be removed become orphans."""
        with suppress(OSError):
            self._fs.delete_dir(f"{self._root}/{write}")

    def abort(self, write: str) -> None:
        """Remove the files of a failed write, those of tasks that still run included.

        Where the note cannot be written, a file of such a task becomes an orphan.
        """
        with suppress(OSError):
            self._fs.open_output_stream(f"{self._root}/{write}{_ABORTED}").close()
        self.remove(write)

    def collect(self, now_ms: int, age_ms: int = ORPHAN_MS, *, dry_run: bool = False) -> list[str]:
        """Remove writes without a new file for `age_ms`, and return their names; remove notes of aborts of that age.

        No other file is ever removed.
        """
        removed = []
        with suppress(OSError):
            for write in self._list(self._root):
                if _is_old_note(write, now_ms - age_ms) and not dry_run:
                    self._fs.delete_file(write.path)
                if write.type is fs.FileType.Directory and _WRITE.fullmatch(write.base_name):
                    files = self._list(write.path)
                    if _is_orphan(write, files, now_ms - age_ms):
                        if not dry_run:
                            self._fs.delete_dir(write.path)
                        removed.append(write.base_name)
        return removed

    def _list(self, directory: str) -> list[Any]:
        infos: list[Any] = self._fs.get_file_info(fs.FileSelector(directory, allow_not_found=True))
        return infos


def write_name(chance: str) -> str:
    """Return the directory name of a write; `chance` is 16 hexadecimal digits, unique to the write."""
    return f"write-{chance}"


def file_name(partition: int, attempt: int, chance: str) -> str:
    """Return the file name of one attempt of a task."""
    return f"{partition}-{attempt}-{chance}.batches"


def _is_orphan(directory: Any, files: list[Any], until_ms: int) -> bool:
    """Report whether a write's directory has only staged files, and was last written to before `until_ms`."""
    times = [info.mtime_ns // 1_000_000 for info in (directory, *files) if info.mtime_ns]
    return all(_FILE.fullmatch(file.base_name) for file in files) and bool(times) and max(times) <= until_ms


def _is_old_note(file: Any, until_ms: int) -> bool:
    """Report whether a file is the note of an abort, and was written before `until_ms`."""
    name = file.base_name
    is_note = name.endswith(_ABORTED) and _WRITE.fullmatch(name.removesuffix(_ABORTED)) and file.size == 0
    return bool(is_note and file.mtime_ns and file.mtime_ns // 1_000_000 <= until_ms)


class _Reporting:
    """A stream that raises `TxnctlError` for failures of the file system."""

    def __init__(self, stream: Any, where: str) -> None:
        self._stream = stream
        self._where = where

    def write(self, data: bytes, /) -> None:
        with _reported("write", self._where):
            self._stream.write(data)

    def close(self) -> None:
        with _reported("write", self._where):
            self._stream.close()


@contextmanager
def _reported(action: str, where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _failure(error, action, where) from None


def _failure(error: OSError, action: str, where: str) -> TxnctlError:
    kind = _KINDS.get(error.errno or 0, TxnctlError)
    return kind(f"cannot {action} {where}: {error}", hint="Repair the cause, or give another stagingPath.")

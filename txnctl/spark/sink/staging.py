"""Where files are staged: tasks write them there, the driver adopts them. Any file system that `pyarrow.fs` reaches.

    <staging>/write-<16 hex digits>/<partition>-<attempt>-<16 hex digits>.batches

A file that no commit message names was left by an attempt that failed, was overtaken, or died: it is never read, and
goes with its write or, where that ended without a word, by its age. No lmdb here: tasks import it.
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
from txnctl.spark.sink import staged_file
from txnctl.spark.sink.staged_file import StagedFile, StagedFileWriter

DIRECTORY: Final = "staging"
"""Where in a store's directory, if no other place is given."""

ORPHAN_MS: Final = 24 * 3600 * 1000
"""A write in whose directory nothing was written for so long is not alive any more."""

_WRITE = re.compile(r"write-[0-9a-f]{16}")
_FILE = re.compile(r"\d+-\d+-[0-9a-f]{16}\.batches")
_KINDS = {ENOSPC: StoreFull, EDQUOT: StoreFull, EACCES: NotPermitted, EPERM: NotPermitted, ENOENT: NotFound}


class Staging:
    """A place for staged files. Made by `at`.

    Attributes:
        place: the place as it was given.
    """

    def __init__(self, filesystem: fs.FileSystem, root: str, place: str) -> None:
        self._fs = filesystem
        self._root = root
        self.place = place

    @classmethod
    def at(cls, place: str) -> Staging:
        """The place that a URI or an absolute path names.

        Raises:
            InvalidValue: it names none.
        """
        try:
            filesystem, root = fs.FileSystem.from_uri(place)
        except (pa.ArrowInvalid, OSError, ValueError) as error:
            raise InvalidValue(
                f"{place} is no place for staged files: {error}",
                hint="Give stagingPath an absolute path, or a URI such as s3://bucket/staging or hdfs://host/staging.",
            ) from None
        return cls(filesystem, root, place)

    def make(self) -> None:
        """Make the directory where it is missing. Only the driver does: a task that does not find it is elsewhere."""
        with _reported("make the directory", self.place):
            self._fs.create_dir(self._root, recursive=True)

    @contextmanager
    def writing(self, write: str, name: str) -> Iterator[StagedFileWriter]:
        """A new file of a write, to be closed within; nothing of it stays if that fails.

        Raises:
            NotFound: the driver's directory is not here.
            StoreFull, NotPermitted
        """
        directory = f"{self._root}/{write}"
        with _reported("write in", f"{self.place}/{write}"):
            self._check_there()
            self._fs.create_dir(directory, recursive=False)
            stream = self._fs.open_output_stream(f"{directory}/{name}")
        try:
            yield StagedFileWriter(_Reporting(stream, f"{self.place}/{write}/{name}"), write, name)
        except BaseException:
            with suppress(OSError):
                stream.close()
            with suppress(OSError):
                self._fs.delete_file(f"{directory}/{name}")
            raise

    def _check_there(self) -> None:
        if self._fs.get_file_info(self._root).type is not fs.FileType.Directory:
            raise NotFound(
                f"this task runs on {socket.gethostname()}, where there is no directory {self.place}",
                hint="Give stagingPath: a place that the driver and every executor reach.",
            )

    def entries(self, file: StagedFile, target: str) -> Iterator[PackedColumns]:
        """The entries of a target in order, read a few MB at a time.

        Raises:
            NotFound: the file is not here.
            InvalidValue: it is not what was staged.
        """
        path = f"{file.write}/{file.name}"
        try:
            with self._fs.open_input_file(f"{self._root}/{path}") as source:
                yield from staged_file.entries(source, file, target)
        except FileNotFoundError:
            raise NotFound(
                f"{path}, which a task on {file.host} staged, is not in {self.place} on {socket.gethostname()}",
                hint="Give stagingPath: a place that the driver and every executor reach. Nothing was stored.",
            ) from None
        except OSError as error:
            raise _failure(error, "read", path) from None

    def remove(self, write: str) -> None:
        """Remove all files of a write that has ended, as far as that goes: what stays is an orphan."""
        with suppress(OSError):
            self._fs.delete_dir(f"{self._root}/{write}")

    def collect(self, now_ms: int, age_ms: int = ORPHAN_MS, *, dry_run: bool = False) -> list[str]:
        """Remove writes in which nothing was written for `age_ms`; their names. Nothing else is ever touched."""
        removed = []
        with suppress(OSError):
            for each in self._list(self._root):
                if each.type is fs.FileType.Directory and _WRITE.fullmatch(each.base_name):
                    files = self._list(each.path)
                    if _is_orphan(each, files, now_ms - age_ms):
                        if not dry_run:
                            self._fs.delete_dir(each.path)
                        removed.append(each.base_name)
        return removed

    def _list(self, directory: str) -> list[Any]:
        found: list[Any] = self._fs.get_file_info(fs.FileSelector(directory, allow_not_found=True))
        return found


def write_name(chance: str) -> str:
    """The directory of a write; `chance` is 16 hexadecimal digits that no other write has."""
    return f"write-{chance}"


def file_name(partition: int, attempt: int, chance: str) -> str:
    """The name of what one attempt of a task stages."""
    return f"{partition}-{attempt}-{chance}.batches"


def _is_orphan(directory: Any, files: list[Any], until_ms: int) -> bool:
    """Whether the directory of a write holds nothing but staged files, and was last written to before `until_ms`."""
    times = [info.mtime_ns // 1_000_000 for info in (directory, *files) if info.mtime_ns]
    return all(_FILE.fullmatch(file.base_name) for file in files) and bool(times) and max(times) <= until_ms


class _Reporting:
    """A stream whose failures are errors of ours."""

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
    return kind(f"cannot {action} {where}: {error}", hint="Mend it, or give stagingPath another place.")

"""Directories of write-once files: of a topic, and of a table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyarrow import fs

from storage.errors import OffloadInvalid
from txnctl.spark.file_systems import needs_directories
from txnctl.spark.ledger_files.layout import (
    BUILD_DIR,
    MANIFESTS,
    RANGES,
    TOPIC_DIRECTORIES,
    RangeFile,
    manifest_name,
    manifest_number,
    token,
)
from txnctl.spark.ledger_files.manifest import Manifest, TopicIdentity
from txnctl.spark.ledger_files.root import Root, errors_of

_READ_ATTEMPTS = 5
_MANIFESTS_RETAINED = 16
"""Old manifests are retained for readers that listed the directory before; a slower reader lists it again."""


class HashingFile:
    """A file being written: counts and hashes its bytes. Arrow accepts any object with the methods of a Python file."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()
        self.size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self._stream.write(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self.closed = True
        self._stream.close()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


class Directory:
    """The files of one topic or table, in subdirectories; a published file never changes.

    Attributes:
        path: under the root.
    """

    def __init__(self, root: Root, path: str) -> None:
        self.root = root
        self.path = path
        self._system, base = root.open_filesystem()
        self._is_local = isinstance(self._system, fs.LocalFileSystem)
        self._base = f"{base}/{self.path}"

    def where(self, *files_in: str) -> str:
        """Return the address of a file for messages."""
        return "/".join((self.root.shown, self.path, *files_in))

    def make_directories(self, *directories: str) -> None:
        """Make subdirectories, which S3 does not need.

        Raises:
            OffloadInvalid
        """
        if not needs_directories(self._system):
            return
        with errors_of(self.where()):
            for directory in directories:
                self._system.create_dir(f"{self._base}/{directory}", recursive=True)

    def files_in(self, directory: str) -> dict[str, fs.FileInfo]:
        """List the files of a subdirectory; a missing subdirectory has none."""
        with errors_of(self.where(directory)):
            selector = fs.FileSelector(f"{self._base}/{directory}", allow_not_found=True)
            infos = self._system.get_file_info(selector)
        return {info.base_name: info for info in infos if info.type == fs.FileType.File}

    @contextmanager
    def writing(self, directory: str, name: str) -> Iterator[HashingFile]:
        """Write a new file, durable when the block has ended; a block that raises leaves no file.

        Raises:
            OffloadInvalid
        """
        path = f"{self._base}/{directory}/{name}"
        with errors_of(self.where(directory)):
            sink = HashingFile(self._system.open_output_stream(path, compression=None))
            try:
                yield sink
                sink.close()
                self._settle(path)
            except BaseException:
                with suppress(OSError):
                    sink.close()
                with suppress(OSError):
                    self._system.delete_file(path)
                raise

    def publish_file(self, name: str, directory: str, new_name: str) -> None:
        """Move a finished file from the build directory to its final name."""
        path = f"{self._base}/{directory}/{new_name}"
        with errors_of(self.where(directory)):
            self._system.move(f"{self._base}/{BUILD_DIR}/{name}", path)
            self._settle(path)

    def _settle(self, path: str) -> None:
        """Sync file and directory entry to disk; object stores are durable by themselves."""
        if self._is_local:
            for file, flags in ((path, os.O_RDONLY), (os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)):
                descriptor = os.open(file, flags)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def remove(self, directory: str, name: str) -> None:
        """Remove a file, if present."""
        with errors_of(self.where(directory)), suppress(FileNotFoundError):
            self._system.delete_file(f"{self._base}/{directory}/{name}")

    def open_file(self, directory: str, name: str) -> Any:
        """Open a file for reads at any offset.

        Raises:
            OffloadInvalid: the file is missing.
        """
        with errors_of(self.where(directory, name)):
            return self._system.open_input_file(f"{self._base}/{directory}/{name}")


class TopicDirectory(Directory):
    """The files of one topic."""

    def __init__(self, root: Root, identity: TopicIdentity) -> None:
        super().__init__(root, f"{identity.store}/topic-{identity.topic_id}")
        self.identity = identity

    def make_directories(self, *directories: str) -> None:
        super().make_directories(*(directories or TOPIC_DIRECTORIES))

    def manifest(self) -> tuple[int, Manifest]:
        """Read the current manifest and its number; 0 and an empty manifest if nothing was offloaded.

        Raises:
            OffloadInvalid, UnknownFormat
        """
        for _ in range(_READ_ATTEMPTS):
            number = max(map(manifest_number, self.files_in(MANIFESTS)), default=0)
            if not number:
                return 0, Manifest(self.identity)
            where = self.where(MANIFESTS, manifest_name(number))
            path = f"{self._base}/{MANIFESTS}/{manifest_name(number)}"
            # Another process may have published many manifests and removed this one: list again.
            with (
                errors_of(where),
                suppress(FileNotFoundError),
                self._system.open_input_stream(path) as stream,
            ):
                return number, Manifest.decode(stream.read(), where)
        raise OffloadInvalid(
            f"the manifests in {self.where(MANIFESTS)} are replaced faster than they can be read"
        )

    def publish(self, number: int, manifest: Manifest) -> None:
        """Publish the manifest of a number atomically, and remove the manifest that is too old to retain."""
        build_name = f"manifest-{token()}"
        with self.writing(BUILD_DIR, build_name) as sink:
            sink.write(manifest.encode())
        self.publish_file(build_name, MANIFESTS, manifest_name(number))
        self.remove(MANIFESTS, manifest_name(number - _MANIFESTS_RETAINED))

    def ranges(self) -> list[RangeFile]:
        """List the exported ranges in the order of their first positions."""
        ranges = [
            range_file for range_file in map(RangeFile.parse, self.files_in(RANGES)) if range_file is not None
        ]
        return sorted(ranges, key=lambda range_file: (range_file.after, range_file.through))

"""Directories of files that are written once: of a topic, and of a table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyarrow import fs

from storage.errors import OffloadInvalid
from txnctl.spark.ledger_files.layout import (
    ASIDE,
    MANIFESTS,
    RANGES,
    TOPIC_DIRECTORIES,
    RangeFile,
    manifest_name,
    manifest_number,
    token,
)
from txnctl.spark.ledger_files.manifest import Manifest, TopicIdentity
from txnctl.spark.ledger_files.root import Root, reported

_READS_AGAIN = 5
_MANIFESTS_KEPT = 16
"""A reader that has listed the directory finds the manifest it saw, or looks again."""


class Sink:
    """A file being written: counts and hashes its bytes. Arrow writes into it as into any Python file."""

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
    """Files of one kind of object: each in a directory of its own below it, never changed once it is there.

    Attributes:
        path: under the root.
    """

    def __init__(self, root: Root, path: str) -> None:
        self.root = root
        self.path = path
        self._system, base = root.open()
        self._is_local = isinstance(self._system, fs.LocalFileSystem)
        self._base = f"{base}/{self.path}"

    def where(self, *names: str) -> str:
        """A file as people are told of it."""
        return "/".join((self.root.uri.partition("?")[0].rstrip("/"), self.path, *names))

    def make(self, *directories: str) -> None:
        """Make its directories, which object stores do not need.

        Raises:
            OffloadInvalid
        """
        with reported(self.where()):
            for each in directories:
                self._system.create_dir(f"{self._base}/{each}", recursive=True)

    def names(self, directory: str) -> dict[str, fs.FileInfo]:
        """What lies in one of its directories; nothing if that was never made."""
        with reported(self.where(directory)):
            chosen = fs.FileSelector(f"{self._base}/{directory}", allow_not_found=True)
            found = self._system.get_file_info(chosen)
        return {info.base_name: info for info in found if info.type == fs.FileType.File}

    @contextmanager
    def writing(self, directory: str, name: str) -> Iterator[Sink]:
        """A new file, in its place when the block has ended; if it raised there is nothing.

        Raises:
            OffloadInvalid
        """
        path = f"{self._base}/{directory}/{name}"
        with reported(self.where(directory)):
            sink = Sink(self._system.open_output_stream(path, compression=None))
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

    def rename(self, name: str, directory: str, new_name: str) -> None:
        """Put a file that was written aside into its place."""
        path = f"{self._base}/{directory}/{new_name}"
        with reported(self.where(directory)):
            self._system.move(f"{self._base}/{ASIDE}/{name}", path)
            self._settle(path)

    def _settle(self, path: str) -> None:
        """See that a power cut leaves the file and its name; object stores promise as much by themselves."""
        if self._is_local:
            for each, flags in ((path, os.O_RDONLY), (os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)):
                descriptor = os.open(each, flags)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def remove(self, directory: str, name: str) -> None:
        """Remove a file, if it is there."""
        with reported(self.where(directory)), suppress(FileNotFoundError):
            self._system.delete_file(f"{self._base}/{directory}/{name}")

    def open(self, directory: str, name: str) -> Any:
        """The file, to be read at any place.

        Raises:
            OffloadInvalid: it is not there.
        """
        with reported(self.where(directory, name)):
            return self._system.open_input_file(f"{self._base}/{directory}/{name}")


class TopicDirectory(Directory):
    """The files of one topic."""

    def __init__(self, root: Root, identity: TopicIdentity) -> None:
        super().__init__(root, f"{identity.store}/topic-{identity.topic_id}")
        self.identity = identity

    def make(self, *directories: str) -> None:
        super().make(*(directories or TOPIC_DIRECTORIES))

    def manifest(self) -> tuple[int, Manifest]:
        """The manifest that counts, and its number; 0 and an empty one where nothing was offloaded.

        Raises:
            OffloadInvalid, UnknownFormat
        """
        for _ in range(_READS_AGAIN):
            number = max(map(manifest_number, self.names(MANIFESTS)), default=0)
            if not number:
                return 0, Manifest(self.identity)
            where = self.where(MANIFESTS, manifest_name(number))
            path = f"{self._base}/{MANIFESTS}/{manifest_name(number)}"
            # It is gone if many came meanwhile.
            with (
                reported(where),
                suppress(FileNotFoundError),
                self._system.open_input_stream(path) as stream,
            ):
                return number, Manifest.decode(stream.read(), where)
        raise OffloadInvalid(f"the manifests in {self.where(MANIFESTS)} vanish while they are read")

    def publish(self, number: int, manifest: Manifest) -> None:
        """Write the manifest of that number, which is there whole or not at all; one long replaced goes."""
        aside = f"manifest-{token()}"
        with self.writing(ASIDE, aside) as sink:
            sink.write(manifest.encode())
        self.rename(aside, MANIFESTS, manifest_name(number))
        self.remove(MANIFESTS, manifest_name(number - _MANIFESTS_KEPT))

    def ranges(self) -> list[RangeFile]:
        """The exported ranges in the order of their first positions."""
        found = [each for each in map(RangeFile.parse, self.names(RANGES)) if each is not None]
        return sorted(found, key=lambda each: (each.after, each.through))

"""Where offloaded ledgers lie: one directory for each topic of each incarnation of a store.

    ROOT/<store id>-<incarnation>/topic-<topic id>/manifests/<number>.json   the highest number counts
                                                   ledgers/<first>-<last>-<token>.parquet
                                                   ranges/<after>_<through>_<rows>_<aborted>_<groups>_<token>.parquet
                                                   undecided/   as ranges, with states that are those of one plan
                                                   aside/       files that are being written
                                     table-<table id>/snapshots/<number>-<token>.parquet   rows, for one plan alone

No file is ever changed or written twice. What is found by listing a directory, manifests and ranges, is written aside
and renamed; a ledger's file counts once a manifest names it. Everything works on any file system that `pyarrow.fs`
reaches, object stores included.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pyarrow import ArrowException, fs

from storage.errors import InvalidValue, OffloadInvalid
from txnctl.spark.ledger_files.manifest import FileContent, Manifest, TopicIdentity

TOPIC_DIRECTORIES = MANIFESTS, LEDGERS, RANGES, UNDECIDED, ASIDE = (
    "manifests",
    "ledgers",
    "ranges",
    "undecided",
    "aside",
)
SNAPSHOTS = "snapshots"
_READS_AGAIN = 5
_MANIFESTS_KEPT = 16
"""A reader that has listed the directory finds the manifest it saw, or looks again."""


class Root(NamedTuple):
    """A directory on some file system, as a task is told of it.

    Attributes:
        uri: of the file system and the directory, as `pyarrow.fs.FileSystem.from_uri` takes it.
    """

    uri: str

    @classmethod
    def of(cls, given: str) -> Root:
        """The root that a user named: a URI, or a path on this machine."""
        return cls(given if "://" in given else Path(os.path.abspath(given)).as_uri())

    def open(self) -> tuple[Any, str]:
        """The file system, and the directory on it.

        Raises:
            InvalidValue: no file system answers to the URI.
        """
        try:
            system, path = fs.FileSystem.from_uri(self.uri)
        except (ArrowException, OSError, ValueError) as error:
            raise InvalidValue(
                f"{self.uri} names no place for files: {error}",
                hint="Give a path, or a URI such as s3://bucket/directory, gs://, abfss://, hdfs://.",
            ) from None
        return system, path.rstrip("/")

    def for_spark(self, path: str) -> str:
        """The address of a file as Spark's own readers take it: without pyarrow's parameters, and S3 as `s3a`."""
        parts = urlsplit(self.uri)
        scheme = "s3a" if parts.scheme == "s3" else parts.scheme
        return f"{scheme}://{parts.netloc}{unquote(parts.path).rstrip('/')}/{path}"


class RangeFile(NamedTuple):
    """A file of entries that are not offloaded yet; its name says all that planning needs to know."""

    name: str
    after: tuple[int, int]
    through: tuple[int, int]
    rows: int
    aborted: int
    row_groups: int

    @property
    def last(self) -> tuple[int, int]:
        return self.through

    @classmethod
    def of(cls, after: tuple[int, int], through: tuple[int, int], content: FileContent) -> RangeFile:
        """The range that was exported, under a name of its own."""
        figures = (content.rows, content.aborted, content.row_groups)
        words = (*("{}.{}".format(*each) for each in (after, through)), *map(str, figures), token())
        return cls(f"{'_'.join(words)}.parquet", after, through, *figures)

    @classmethod
    def parse(cls, name: str) -> RangeFile | None:
        """The range of that name; None for the name of something else."""
        words = name.removesuffix(".parquet").split("_")
        with suppress(ValueError):
            (first, after), (last, through) = (map(int, word.split(".")) for word in words[:2])
            rows, aborted, row_groups = map(int, words[2:5])
            return cls(name, (first, after), (last, through), rows, aborted, row_groups)
        return None


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
        with _reported(self.where()):
            for each in directories:
                self._system.create_dir(f"{self._base}/{each}", recursive=True)

    def names(self, directory: str) -> dict[str, fs.FileInfo]:
        """What lies in one of its directories; nothing if that was never made."""
        with _reported(self.where(directory)):
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
        with _reported(self.where(directory)):
            sink = Sink(self._system.open_output_stream(path, compression=None))
        try:
            with _reported(self.where(directory)):
                yield sink
                sink.close()
                self._settle(path)
        except BaseException:
            with suppress(OSError):
                sink.close()
            self.remove(directory, name)
            raise

    def rename(self, name: str, directory: str, new_name: str) -> None:
        """Put a file that was written aside into its place."""
        path = f"{self._base}/{directory}/{new_name}"
        with _reported(self.where(directory)):
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
        with suppress(FileNotFoundError), _reported(self.where(directory)):
            self._system.delete_file(f"{self._base}/{directory}/{name}")

    def open(self, directory: str, name: str) -> Any:
        """The file, to be read at any place.

        Raises:
            OffloadInvalid: it is not there.
        """
        return _open(self._system, f"{self._base}/{directory}/{name}", self.where(directory, name))


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
            numbers = [int(name[:-5]) for name in self.names(MANIFESTS) if name[:-5].isdecimal()]
            if not numbers:
                return 0, Manifest(self.identity)
            name = _manifest_name(max(numbers))
            path = f"{self._base}/{MANIFESTS}/{name}"
            # It is gone if a later one came meanwhile and this one was collected.
            with (
                suppress(FileNotFoundError),
                _reported(self.where(MANIFESTS)),
                self._system.open_input_stream(path) as stream,
            ):
                return max(numbers), Manifest.decode(stream.read(), self.where(MANIFESTS, name))
        raise OffloadInvalid(f"the manifests in {self.where(MANIFESTS)} vanish while they are read")

    def publish(self, number: int, manifest: Manifest) -> None:
        """Write the manifest of that number, which is there whole or not at all; one long replaced goes."""
        aside = f"manifest-{token()}"
        with self.writing(ASIDE, aside) as sink:
            sink.write(manifest.encode())
        self.rename(aside, MANIFESTS, _manifest_name(number))
        self.remove(MANIFESTS, _manifest_name(number - _MANIFESTS_KEPT))

    def ranges(self) -> list[RangeFile]:
        """The exported ranges in the order of their first positions."""
        found = [each for each in map(RangeFile.parse, self.names(RANGES)) if each is not None]
        return sorted(found, key=lambda each: (each.after, each.through))


def open_file(root: Root, path: str) -> Any:
    """A file under a root, to be read at any place; what a task does.

    Raises:
        OffloadInvalid: it is not there.
    """
    system, base = root.open()
    return _open(system, f"{base}/{path}", root.for_spark(path))


def _open(system: Any, path: str, shown: str) -> Any:
    try:
        with _reported(shown):
            return system.open_input_file(path)
    except FileNotFoundError:
        raise OffloadInvalid(
            f"{shown} is not there",
            hint="It was removed, or this machine does not see the place where the ledgers were offloaded.",
        ) from None


@contextmanager
def _reported(where: str) -> Iterator[None]:
    """Say of what the operating system, or a service, refuses where it was; that a file is missing says its reader."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OffloadInvalid(
            f"{where} cannot be used: {error}",
            hint="See that the place is there, has room, and lets this user read and write.",
        ) from error


def _manifest_name(number: int) -> str:
    return f"{number:010}.json"


def token() -> str:
    """What makes a name one that no other file has."""
    return secrets.token_hex(6)

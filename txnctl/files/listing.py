"""The files that a path, directory or pattern names, on this machine or by URI, and their formats.

Directories below belong to a directory, links included. Names that begin with `.` or `_` are passed over: writers mark
what is no data, or not complete, so. Every other name is a regular file, or an error by name.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from glob import glob
from typing import TYPE_CHECKING, Any, Final

from storage.errors import InvalidValue
from txnctl.output.shell import line
from txnctl.spark import file_systems
from txnctl.spark.file_systems import is_uri, open_file_system, without_secrets

if TYPE_CHECKING:
    from pyarrow import NativeFile

FORMATS: Final = ("csv", "json", "parquet")
_ENDINGS: Final = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_HADOOPS: Final = (".snappy", ".deflate")
"""Compressed in blocks as Hadoop does, which nothing but Hadoop reads."""

_PATTERN: Final = re.compile(r"[*?\[]")
_UNSEEN: Final = (".", "_")
_NO_FILES: Final = ("/dev/", "/proc/")
_READ_BYTES: Final = 1 << 20


def input_files(path: str) -> list[str]:
    """Return the files that a path, directory or pattern names, in the order of their names.

    The exact name of an existing file wins over its reading as a pattern.

    Raises:
        InvalidValue: no such file, none in the directory, one that is no regular file, a directory that cannot be read
            or leads back to one above, or a directory of a partition, whose column the files do not have.
    """
    if is_uri(path) and not os.path.exists(path):
        names = _remote_files(path)
    elif os.path.exists(path):
        names = list(_local_files(os.path.abspath(path)))
    elif _PATTERN.search(path):
        places = [place for place in sorted(glob(path)) if _is_seen(place, path)]
        names = [name for place in places for name in _local_files(os.path.abspath(place))]
    else:
        raise InvalidValue(f"cannot read {path!r}: there is no such file or directory", path=path)
    if not names:
        shown = without_secrets(path)
        raise InvalidValue(f"cannot read {shown!r}: there is no file", path=shown)
    return names


def _is_seen(place: str, pattern: str) -> bool:
    """Whether a path that a pattern matches is one of data; a pattern of unseen names asks for such."""
    pairs = zip(place.split("/"), pattern.split("/"), strict=False)
    return all(asked.startswith(_UNSEEN) for name, asked in pairs if name.startswith(_UNSEEN))


def _local_files(place: str, above: tuple[tuple[int, int], ...] = ()) -> Iterator[str]:
    """Yield the files of a file or directory.

    Args:
        above: device and inode of the directories on the way: a link may lead back to one.
    """
    try:
        status = os.stat(place)
        names = sorted(os.listdir(place)) if stat.S_ISDIR(status.st_mode) else []
    except OSError as error:
        raise InvalidValue(f"cannot read {place!r}: {error.strerror}", path=place) from error
    if stat.S_ISREG(status.st_mode):
        yield _name_for_all(place)
        return
    here = (status.st_dev, status.st_ino)
    if not stat.S_ISDIR(status.st_mode):
        raise InvalidValue(
            f"{place!r} is no regular file, and tasks open files by name",
            hint=f"Write it to a file first, or pipe it into `{line('produce', 'TOPIC', input='ndjson')}`.",
            path=place,
        )
    if here in above:
        raise InvalidValue(f"{place!r} leads back to a directory above", hint="Remove the link.", path=place)
    if above:
        _refuse_partition(place, os.path.basename(place))
    for name in names:
        if not name.startswith(_UNSEEN):
            yield from _local_files(os.path.join(place, name), (*above, here))


def _name_for_all(place: str) -> str:
    """Return a name by which further processes find a file: `/dev/stdin` is a different file in each."""
    first = os.readlink(place) if os.path.islink(place) else place
    return os.path.realpath(place) if first.startswith(_NO_FILES) or place.startswith(_NO_FILES) else place


def _refuse_partition(place: str, name: str) -> None:
    column, sign, _ = name.partition("=")
    if sign:
        raise InvalidValue(
            f"{place!r} is a partition: its files do not have the column {column}",
            hint=f"Read them without it by a pattern: {os.path.join(os.path.dirname(place), column)}=*",
            path=place,
        )


def _remote_files(uri: str) -> list[str]:
    from pyarrow import ArrowInvalid, fs

    try:
        system, place = open_file_system(uri)
        if system.type_name == "local":
            return input_files(place)
        kind = system.get_file_info(place).type
        if kind is fs.FileType.File:
            return [uri]
        pattern = _PATTERN.search(place) if kind is fs.FileType.NotFound else None
        root = place[: pattern.start()].rpartition("/")[0] if pattern else place
        listed = system.get_file_info(fs.FileSelector(root, recursive=True))
    except (ArrowInvalid, OSError) as error:
        shown = without_secrets(uri)
        raise InvalidValue(f"cannot read {shown!r}: {error}", path=shown) from None
    scheme = uri[: uri.index(place)] if place in uri else file_systems.arrow_uri(uri).split("://")[0] + "://"
    names = []
    for info in listed:
        below = info.path.removeprefix(root).strip("/").split("/")
        asked = place.removeprefix(root).strip("/").split("/") if pattern else []
        if (
            info.type is fs.FileType.Directory
            or not all(map(fnmatchcase, below, asked))
            or len(below) < len(asked)
        ):
            continue
        below = below[max(len(asked) - 1, 0) :]
        for directory in below[:-1][1 if asked else 0 :]:
            _refuse_partition(info.path, directory)
        if not any(name.startswith(_UNSEEN) for name in below):
            names.append(scheme + info.path + file_systems.parameters(uri))
    return sorted(names)


def is_compressed(path: str) -> bool:
    """Report whether the name of a file says that it is compressed: such a file is read from its beginning on."""
    return without_secrets(path).lower().endswith(COMPRESSED)


def size_of(path: str) -> int:
    """Return the bytes of a file of any file system that PyArrow reaches."""
    if not is_uri(path):
        return os.stat(path).st_size
    system, place = open_file_system(path)
    return int(system.get_file_info(place).size)


def check_whole(path: str, size: int) -> None:
    """Check that a file has at least the bytes that were planned.

    Raises:
        InvalidValue: the file was cut since.
    """
    if (now := size_of(path)) < size:
        shown = without_secrets(path)
        raise InvalidValue(
            f"{shown!r} became shorter while it was read: {now:,} of {size:,} bytes",
            hint="Nothing was stored. Run it again when nothing writes to the file.",
            path=shown,
        )


def plain_name(path: str) -> str:
    """Return the name of a file in lower case, without the endings of compression."""
    name = without_secrets(path).rstrip("/").lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return name


def format_of(path: str) -> str:
    """Return the format by the ending of a file name, compressed files included.

    Raises:
        InvalidValue
    """
    format_ = _ENDINGS.get(os.path.splitext(plain_name(path))[1])
    if format_ is None:
        raise InvalidValue(
            f"the name of {without_secrets(path)!r} does not tell the format of the file",
            hint=f"Give --format {'|'.join(FORMATS)}.",
            path=without_secrets(path),
        )
    return format_


@contextmanager
def read_errors(path: str) -> Iterator[None]:
    """Raise errors of reading as errors about the file, while the block runs.

    Raises:
        InvalidValue
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and not type(error).__module__.startswith("pyarrow."):
            raise
        shown = without_secrets(path)
        reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
        raise InvalidValue(f"cannot read {shown!r}: {reason}", path=shown) from error


def open_input(path: str, *, is_plain: bool = False) -> NativeFile:
    """Open a file of any file system that PyArrow reaches, decompressed by the ending of its name.

    Args:
        is_plain: the file is read as it lies, whatever its name.

    Raises:
        InvalidValue
    """
    from pyarrow import fs

    system: Any
    with read_errors(path):
        if not is_uri(path):
            system, place = fs.LocalFileSystem(), os.path.abspath(path)
        else:
            system, place = open_file_system(path)
        if is_plain or not is_compressed(path):
            return system.open_input_file(place)
        if without_secrets(path).lower().endswith(_HADOOPS):
            raise InvalidValue(
                f"{without_secrets(path)!r} is compressed in blocks, as Hadoop does",
                hint="Decompress it, or compress it with gzip, bzip2, zstd or lz4.",
                path=without_secrets(path),
            )
        return system.open_input_stream(place, compression="detect")


def opened(path: str) -> io.BufferedReader:
    """Open a file as `open_input` does, for reading line by line; a plain file of this machine without PyArrow.

    Raises:
        InvalidValue
    """
    if is_uri(path) or is_compressed(path):
        return io.BufferedReader(open_input(path), _READ_BYTES)
    with read_errors(path):
        return io.BufferedReader(io.FileIO(path), _READ_BYTES)

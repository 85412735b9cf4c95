"""URIs of files for Spark. The exact name of an existing file wins over its reading as a pattern."""

from __future__ import annotations

import os
import re

from storage.errors import AlreadyExists, InvalidValue

FORMATS = ("csv", "json", "parquet")
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_GLOB = re.compile(r"([\\*?\[\]{}])")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]+://?", re.IGNORECASE)


def is_uri(path: str) -> bool:
    """Report whether a path names its file system: `s3a://bucket/x`, `file:/x`."""
    return _SCHEME.match(path) is not None


def uri_to_write(path: str) -> str:
    """Return the URI of a path to write to."""
    return path if is_uri(path) else "file://" + os.path.abspath(path)


def uri_to_read(path: str) -> str:
    """Return the URI of a file or directory to read; a pattern stays a pattern.

    Raises:
        InvalidValue: no such file.
    """
    if is_uri(path):
        return path
    if os.path.exists(path):
        # Escape pattern characters, because a file with this exact name exists.
        return "file://" + _GLOB.sub(r"\\\1", os.path.abspath(path))
    if _GLOB.search(path):
        return "file://" + os.path.abspath(path)
    raise InvalidValue(f"cannot read {path!r}: there is no such file or directory", path=path)


def format_of(path: str) -> str:
    """Return the format by the ending of a file name, compressed files included.

    Raises:
        InvalidValue
    """
    name = path.rstrip("/").lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    format_ = _ENDINGS.get(os.path.splitext(name)[1])
    if format_ is None:
        raise InvalidValue(
            f"the name of {path!r} does not tell the format of the file",
            hint=f"Give --format {'|'.join(FORMATS)}.",
            path=path,
        )
    return format_


def check_absent(path: str) -> None:
    """Check that no file stands at the path to write.

    Raises:
        AlreadyExists
    """
    if not is_uri(path) and os.path.lexists(path):
        raise AlreadyExists(f"{path} exists already", hint="--overwrite replaces the files.", path=path)

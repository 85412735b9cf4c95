"""Files as Spark is to be told of them: one that is there under exactly this name is meant, whatever is in the name."""

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
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_GLOB = re.compile(r"([\\*?\[\]{}])")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]+://?", re.IGNORECASE)


def is_uri(path: str) -> bool:
    """Whether a path names its file system: `s3a://bucket/x`, `file:/x`."""
    return _SCHEME.match(path) is not None


def to_write(path: str) -> str:
    """What to tell Spark of a place to write to."""
    return path if is_uri(path) else "file://" + os.path.abspath(path)


def to_read(path: str) -> str:
    """What to tell Spark of a file or directory to be read; a pattern stays one.

    Raises:
        InvalidValue: nothing is there.
    """
    if is_uri(path):
        return path
    if os.path.exists(path):
        # Every character stands for itself.
        return "file://" + _GLOB.sub(r"\\\1", os.path.abspath(path))
    if _GLOB.search(path):
        return "file://" + os.path.abspath(path)
    raise InvalidValue(f"cannot read {path!r}: there is no such file or directory", path=path)


def format_of(path: str) -> str:
    """The format that a name ends in, also of a compressed file.

    Raises:
        InvalidValue
    """
    name = path.rstrip("/").lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    found = _ENDINGS.get(os.path.splitext(name)[1])
    if found is None:
        raise InvalidValue(
            f"what {path!r} holds is not to be seen from its name",
            hint=f"Say it with --format {'|'.join(FORMATS)}.",
            path=path,
        )
    return found


def check_free(path: str) -> None:
    """See that nothing is in the way of what is to be written.

    Raises:
        AlreadyExists
    """
    if not is_uri(path) and os.path.lexists(path):
        raise AlreadyExists(f"{path} is there already", hint="--overwrite replaces it.", path=path)

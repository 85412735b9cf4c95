"""The fingerprint of the input of a job: equal for equal files and options, computed without reading a row."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from glob import glob
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING

from storage.system_errors import refusal
from txnctl.pipelines import files

if TYPE_CHECKING:
    from txnctl.pipelines.ingest import InputOptions, MessageColumns


def of_files(paths: Sequence[str], columns: MessageColumns, options: InputOptions) -> str | None:
    """The SHA-256 over size and SHA-256 of each file and over the options; None where a path names a file system.

    A file that was moved or copied has the same fingerprint.

    Raises:
        InvalidValue: no such file.
        NotPermitted, StoreInvalid: a file cannot be read.
    """
    if any(files.is_uri(path) and not os.path.exists(path) for path in paths):
        return None
    parts: list[object] = [[_digests(path)] for path in paths]
    parts.append([columns.value, columns.key, columns.event_time])
    parts.append([options.format_, options.multi_line, options.skip])
    return "sha256:" + sha256(json.dumps(parts).encode()).hexdigest()


def _digests(path: str) -> list[tuple[int, str]]:
    files.uri_to_read(path)
    digests = []
    for name in sorted(_files_of(path)):
        try:
            with open(name, "rb") as file:
                digest = file_digest(file, "sha256").hexdigest()
                digests.append((os.fstat(file.fileno()).st_size, digest))
        except OSError as error:
            raise refusal(f"cannot read {name}", error) from error
    return digests


def _files_of(path: str) -> Iterator[str]:
    """The files that Spark reads: of a directory those whose names begin with neither `.` nor `_`."""
    for place in [path] if os.path.exists(path) else glob(path):
        if not os.path.isdir(place):
            yield place
            continue
        for directory, below, names in os.walk(place):
            below[:] = [name for name in below if name[0] not in "._"]
            yield from (os.path.join(directory, name) for name in names if name[0] not in "._")

"""The fingerprint of the input of a job: equal for equal files and options, computed without reading a row."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING

from storage.errors import InvalidValue
from txnctl.files import listing
from txnctl.spark.file_systems import is_uri

if TYPE_CHECKING:
    from txnctl.files.input_parts import InputOptions
    from txnctl.files.message_rows import MessageColumns


def of_files(paths: Sequence[str], columns: MessageColumns, options: InputOptions) -> str | None:
    """The SHA-256 over size and SHA-256 of each file and over the options; None where a path names a file system.

    A file that was moved or copied has the same fingerprint.

    Raises:
        InvalidValue: no such file, or one that cannot be read.
    """
    if any(is_uri(path) and not os.path.exists(path) for path in paths):
        return None
    parts: list[object] = [[_digests(path)] for path in paths]
    parts.append([columns.value, columns.key, columns.event_time])
    parts.append([options.format_, options.multi_line, options.skip, options.dialect])
    return "sha256:" + sha256(json.dumps(parts).encode()).hexdigest()


def _digests(path: str) -> list[tuple[int, str]]:
    digests = []
    for name in listing.input_files(path):
        try:
            with open(name, "rb") as file:
                digest = file_digest(file, "sha256").hexdigest()
                digests.append((os.fstat(file.fileno()).st_size, digest))
        except OSError as error:
            raise InvalidValue(f"cannot read {name!r}: {error.strerror}", path=name) from error
    return digests

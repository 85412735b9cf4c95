"""Layout of offloaded files: one directory for each topic of each incarnation of a store.

    ROOT/<store id>-<incarnation>/topic-<topic id>/manifests/<number>.json   the highest number counts
                                                   ledgers/<first>-<last>-<token>.parquet
                                                   ranges/<after>_<through>_<rows>_<aborted>_<groups>_<token>.parquet
                                                   undecided/   as ranges, with transaction states of a single plan
                                                   aside/       files that are being written
                                     table-<table id>/snapshots/<number>-<token>.parquet   rows of a single plan

No file is ever changed or written twice. Manifests and ranges, which are found by listing a directory, are written to
the build directory and renamed; a ledger's file counts once a manifest names it. Any file system of `pyarrow.fs` will
do, object stores included.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import NamedTuple

from storage import Position
from txnctl.spark.ledger_files.manifest import FileContent

TOPIC_DIRECTORIES = MANIFESTS, LEDGERS, RANGES, UNDECIDED, BUILD_DIR = (
    "manifests",
    "ledgers",
    "ranges",
    "undecided",
    "aside",
)
SNAPSHOTS = "snapshots"


class RangeFile(NamedTuple):
    """A file of entries that are not offloaded yet; its name has everything that planning needs."""

    name: str
    after: Position
    through: Position
    rows: int
    aborted: int
    row_groups: int

    @property
    def last(self) -> Position:
        return self.through

    @classmethod
    def of_export(cls, after: Position, through: Position, content: FileContent) -> RangeFile:
        """Return an exported range with a new unique name."""
        figures = (content.rows, content.aborted, content.row_groups)
        words = (*("{}.{}".format(*position) for position in (after, through)), *map(str, figures), token())
        return cls(f"{'_'.join(words)}.parquet", after, through, *figures)

    @classmethod
    def parse(cls, name: str) -> RangeFile | None:
        """Parse the name of a range; None for other files."""
        words = name.removesuffix(".parquet").split("_")
        with suppress(ValueError):
            (first, after), (last, through) = (map(int, word.split(".")) for word in words[:2])
            rows, aborted, row_groups = map(int, words[2:5])
            return cls(name, Position(first, after), Position(last, through), rows, aborted, row_groups)
        return None


def manifest_name(number: int) -> str:
    """Return the file name of a manifest."""
    return f"{number:010}.json"


def manifest_number(name: str) -> int:
    """Parse the name of a manifest; 0 for other files."""
    number = name.removesuffix(".json")
    return int(number) if number.isdecimal() else 0


def token() -> str:
    """Return a random suffix that makes a file name unique."""
    return secrets.token_hex(6)

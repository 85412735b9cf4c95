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

import secrets
from contextlib import suppress
from typing import NamedTuple

from txnctl.spark.ledger_files.manifest import FileContent

TOPIC_DIRECTORIES = MANIFESTS, LEDGERS, RANGES, UNDECIDED, ASIDE = (
    "manifests",
    "ledgers",
    "ranges",
    "undecided",
    "aside",
)
SNAPSHOTS = "snapshots"


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


def manifest_name(number: int) -> str:
    """The file of the manifest of that number."""
    return f"{number:010}.json"


def manifest_number(name: str) -> int:
    """The number of a manifest by its name; 0 for the name of something else."""
    number = name.removesuffix(".json")
    return int(number) if number.isdecimal() else 0


def token() -> str:
    """What makes a name one that no other file has."""
    return secrets.token_hex(6)

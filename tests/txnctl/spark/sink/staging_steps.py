"""Steps that the tests of staging share."""

from __future__ import annotations

from collections.abc import Iterable

from storage.topic.batching import columns_of, entries_of
from storage.topic.entry import PackedColumns
from txnctl.spark.sink.staged_file import StagedFile
from txnctl.spark.sink.staging import Staging, file_name, write_name

WRITE = write_name("00000000000000aa")


CHANCE = "0123456789abcdef"


def packed(*values: bytes) -> list[PackedColumns]:
    return entries_of(columns_of(values, None, None, None))


def staged(staging: Staging, targets: dict[str, Iterable[PackedColumns]], write: str = WRITE) -> StagedFile:
    with staging.writing(write, file_name(0, 0, CHANCE)) as file:
        for target, entries in targets.items():
            for entry in entries:
                file.add(target, entry)
        return file.close()


def read(staging: Staging, file: StagedFile, target: str) -> list[tuple[int, bytes]]:
    return [(entry.count, entry.data) for entry in staging.entries(file, target)]

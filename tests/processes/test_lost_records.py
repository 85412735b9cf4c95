"""Lost, emptied and stale records: each read and each change gives an answer or an error of ours, never a traceback.

A record is damaged as no flipped bit could do it: with a checksum that agrees.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from storage import Store
from storage.disk.codec import pack
from storage.disk.schema import ALL, ENTRIES, HEADS, Database
from storage.disk.view import WriteBatch
from storage.errors import CorruptStore, TxnctlError
from storage.process.clock import ManualClock
from tests.processes import damage_sample as sample

Record = tuple[bytes, bytes]

RECORDS = int(os.environ.get("LOST_RECORDS", "2"))
"""Records of each database that are damaged, in each way."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sample, to be copied."""
    path = str(tmp_path_factory.mktemp("sample") / "whole")
    sample.build(path)
    return path


@pytest.fixture(scope="module")
def changed(whole: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sample after some deliveries, appends and ends of transactions."""
    path = str(tmp_path_factory.mktemp("sample") / "changed")
    shutil.copytree(whole, path)
    with Store.open(path, clock=ManualClock()) as store:
        asked = sample.writes(store)
        for name in list(asked)[: list(asked).index("gc")]:
            if not name.startswith("clear"):
                with suppress(TxnctlError):
                    asked[name]()
    return path


@pytest.fixture
def copy(whole: str, tmp_path: Path) -> Iterator[str]:
    """A path for copies of the sample."""
    path = str(tmp_path / "copy")
    yield path
    shutil.rmtree(path, ignore_errors=True)


def damaged(whole: str, path: str, database: Database, key: bytes, payload: bytes | None) -> None:
    """Copy the sample, and replace or remove one record of the copy."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(whole, path)

    def change(batch: WriteBatch) -> None:
        if payload is None:
            batch.delete(database, key)
        else:
            batch.put(database, key, payload)

    with Store.open(path, clock=ManualClock()) as store:
        store.connection.write(change)


def every_record(path: str, database: Database) -> list[Record]:
    """All records of a database, in order."""
    with Store.open(path, read_only=True, clock=ManualClock()) as store, store.connection.view() as view:
        return [(key, bytes(payload)) for key, payload in view.scan(database)]


def some(records: list[Record]) -> list[Record]:
    """A few of the records, from the first to the last."""
    return records[:: max(1, (len(records) - 1) // max(1, RECORDS - 1))]


def chosen(path: str, database: Database) -> list[Record]:
    """A few records of a database."""
    return some(every_record(path, database))


def complaints(path: str) -> list[str]:
    """Ask a damaged store everything; the answers that are an exception of Python's, with their questions."""
    tracebacks = []
    for is_writing in (False, True):
        try:
            store = Store.open(path, read_only=not is_writing, clock=ManualClock())
        except TxnctlError:
            continue
        with store:
            for name, ask in (sample.writes(store) if is_writing else sample.reads(store)).items():
                try:
                    ask()
                except TxnctlError:
                    continue
                except Exception as error:  # noqa: BLE001 - the question is whether any other exception comes out
                    tracebacks.append(f"{name}: {error!r}")
    return tracebacks


@pytest.mark.parametrize("database", ALL, ids=str)
def test_a_lost_record_is_no_bug(whole: str, copy: str, database: Database) -> None:
    """Whatever record is missing: the answer is right, or an error of ours."""
    for key, _ in chosen(whole, database):
        if (database, key) != (HEADS, bytes(8)):  # The superblock is written by every batch.
            damaged(whole, copy, database, key, None)
            assert complaints(copy) == [], key.hex()


@pytest.mark.parametrize("database", ALL, ids=str)
@pytest.mark.parametrize(
    "payload", [b"", pack([]), pack(None), b"\xc1"], ids=["empty", "array", "nil", "noise"]
)
def test_an_undecodable_record_is_corrupt(whole: str, copy: str, database: Database, payload: bytes) -> None:
    """Whatever its content is: where a checksum agrees, decoding fails as `corrupt`, with database and key."""
    for key, before in chosen(whole, database)[:1]:
        if before and (database, key) != (HEADS, bytes(8)):
            damaged(whole, copy, database, key, payload)
            assert complaints(copy) == [], key.hex()


@pytest.mark.parametrize("database", ALL, ids=str)
def test_a_stale_record_is_no_bug(whole: str, changed: str, copy: str, database: Database) -> None:
    """Whatever record is of an earlier commit: the answer is of that commit, or an error of ours."""
    now = dict(every_record(changed, database))
    stale = [(key, before) for key, before in every_record(whole, database) if now.get(key) != before]
    for key, before in some(stale):
        if (database, key) != (HEADS, bytes(8)):
            damaged(changed, copy, database, key, before)
            assert complaints(copy) == [], key.hex()


def test_the_error_names_the_record(whole: str, copy: str) -> None:
    """Database and key are details of the error, and the hint names the check."""
    key, _ = chosen(whole, ENTRIES)[0]
    damaged(whole, copy, ENTRIES, key, b"short")
    with (
        Store.open(copy, read_only=True, clock=ManualClock()) as store,
        pytest.raises(CorruptStore) as raised,
    ):
        list(store.reports.topic_log("orders"))
    assert raised.value.details == {"database": "entries", "key": key.hex()}
    assert "verify" in str(raised.value.hint)

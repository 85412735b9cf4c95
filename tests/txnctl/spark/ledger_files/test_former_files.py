"""Files that were offloaded before a restore: `txnctl/spark/ledger_files/former_files.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from storage import IsolationLevel, Position, Store
from tests.txnctl.spark.offload_steps import fill, rows
from tests.txnctl.spark.source.topic_range_steps import ranges
from tests.txnctl.spark.source.topic_stream_steps import reader
from txnctl.spark.ledger_files.offload import offload
from txnctl.spark.ledger_files.root import Root
from txnctl.spark.ledger_files.trimming import verified_ledgers

LEVELS = [level.value for level in IsolationLevel]


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "off")


def trim(store: Store, place: str) -> Position:
    """Trim what was offloaded; the first position left."""
    ledgers = verified_ledgers(store, "t", place)
    return store.admin.topics.trim_topic("t", offloaded=ledgers).effects.first_position


def restored(store: Store, path: Path) -> str:
    store.maintenance.backup_store(f"{path}-backup")
    Store.restore(f"{path}-backup", path)
    return str(path)


@pytest.mark.parametrize("level", LEVELS)
def test_a_restored_store_reads_what_was_offloaded_before_the_backup(
    store: Store, path: str, place: str, tmp_path: Path, level: str
) -> None:
    """Also restored twice, and after it has offloaded and trimmed ledgers of its own, which the original has too."""
    fill(store)
    before = rows(ranges(path, isolationLevel=level))
    offload(store, "t", Root.of_path(place))
    trim(store, place)
    copy = restored(store, tmp_path / "copy")
    given = {"offloadPath": place, "isolationLevel": level}
    assert rows(ranges(copy, **given)) == before
    # The original goes on otherwise, in ledgers of the same numbers.
    fill(store, 11)
    offload(store, "t", Root.of_path(place))
    trim(store, place)
    assert rows(ranges(copy, **given)) == before
    with Store.open(copy) as own:
        fill(own, 17)
        later = rows(ranges(copy, **given))
        assert later[: len(before)] == before
        offload(own, "t", Root.of_path(place))
        trim(own, place)
        assert rows(ranges(copy, **given)) == later
        again = restored(own, tmp_path / "again")
        assert rows(ranges(again, **given)) == later
        assert own.maintenance.verify_store(full=True) == []
    stream = reader(again, startingPosition="earliest", **given)
    at = stream.initialOffset()
    end = stream.latestOffset(at, ReadMaxRows(7))
    found = rows(list(stream.partitions(at, end)))  # type: ignore[arg-type]
    assert found == later[: len(found)]
    assert stream.reportLatestOffset()["t"]["behind"] == len(later) - len(found)


def test_a_file_that_goes_on_behind_the_backup_is_read_up_to_it(
    store: Store, path: str, place: str, tmp_path: Path
) -> None:
    """The original has offloaded shared and further ledgers into one file."""
    fill(store)
    whole = rows(ranges(path))
    copy = restored(store, tmp_path / "copy")
    fill(store, 11)
    offload(store, "t", Root.of_path(place))
    with Store.open(copy) as own:
        shared = own.reports.topic_descent("t")[0].first_own
        own.admin.subscriptions.create_subscription("t", "s", initial_position=Position(shared, 0))
        own.admin.topics.set_retention("t", time_ms=0)
        assert own.admin.topics.trim_topic("t").effects.first_position == (shared, 0)
        assert len(rows(ranges(copy))) < len(whole)
        assert rows(ranges(copy, offloadPath=place)) == whole


def test_ledgers_of_an_open_transaction_are_not_shared(store: Store, tmp_path: Path) -> None:
    """The original may commit what the restore aborts."""
    store.create_topic("t", ledger_entries_max=2)
    producer, txn = store.create_producer("t"), store.begin_transaction()
    for _ in range(3):
        producer.send(b"0")
    producer.send(b"2", txn=txn)
    for _ in range(5):
        producer.send(b"x")
    copy = restored(store, tmp_path / "copy")
    with Store.open(copy) as own:
        assert [ancestor.first_own for ancestor in own.reports.topic_descent("t")] == [2]
        assert own.reports.topic_descent("t")[0].identity == store.identity
        own.admin.topics.delete_topic("t", force=True)
        assert own.maintenance.verify_store(full=True) == []


def test_files_of_two_restores_of_one_backup_lie_apart(store: Store, place: str, tmp_path: Path) -> None:
    """Each copy reads its own ledgers, and those of before the backup, after all was trimmed."""
    fill(store)
    store.maintenance.backup_store(tmp_path / "backup")
    copies, wholes = [tmp_path / "one", tmp_path / "two"], []
    for number, copy in enumerate(copies):
        Store.restore(tmp_path / "backup", copy)
        with Store.open(copy) as own:
            fill(own, 11 + number)
            wholes.append(rows(ranges(str(copy))))
            offload(own, "t", Root.of_path(place))
            trim(own, place)
    for copy, whole in zip(copies, wholes, strict=True):
        assert len(rows(ranges(str(copy)))) < len(whole)
        assert rows(ranges(str(copy), offloadPath=place)) == whole

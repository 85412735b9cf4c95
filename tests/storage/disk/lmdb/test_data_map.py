"""Data map: `storage/disk/lmdb/data_map.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store
from storage.disk.lmdb import data_file
from storage.disk.lmdb.environment import LmdbEnvironment
from storage.disk.schema import ROWS, TOPICS
from storage.errors import CorruptStore
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.store_steps import run_in_threads


class TestGrowth:
    """The map grows when the store needs more of it than the process asked for."""

    @pytest.fixture(autouse=True)
    def _small_map(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("MAP_BYTES_WANTED", "MAP_BYTES_FALLBACK", "MAP_BYTES_SPARE"):
            monkeypatch.setattr(data_file, name, 1 << 20)

    def test_a_write_that_does_not_fit_is_done_again(self, path: str, clock: ManualClock) -> None:
        """Nothing is lost or stored twice, also in the midst of a transaction."""
        with Store.open(path, clock=clock) as store:
            before = row_json(store.reports.store_info())["mapBytes"]
            store.create_topic("t")
            producer, txn = store.create_producer("t", producer_name="p"), store.begin_transaction()
            for number in range(40):
                producer.send(b"%d" % number + b"x" * 200_000, txn=txn if number % 2 else None)
            store.commit_transaction(txn)
            assert row_json(store.reports.store_info())["mapBytes"] >= 8_000_000 > before
            received = [(message.value or b"")[:2].rstrip(b"x") for message in store.reader("t")]
            assert received == [b"%d" % number for number in range(40)]
            assert [m.sequence_id for m in store.reader("t")] == list(range(40))

    def test_readers_of_other_threads_live_through_it(self, path: str) -> None:
        """The map grows between their views, never under one."""
        with Store.open(path) as store:
            store.create_topic("t")

            def work(number: int) -> None:
                if number < 2:
                    producer = store.create_producer("t")
                    for _ in range(20):
                        producer.send(b"x" * 150_000)
                else:
                    while (count := len(list(store.reader("t")))) < 40:
                        assert count == len(list(row_json(store.reports.topic_log("t", limit=count))))

            run_in_threads(4, work)
            assert len(list(store.reader("t"))) == 40


class TestPlaces:
    """A view gives the place of a reader back at the end, whatever still refers to the view."""

    def test_an_error_that_is_kept_keeps_no_place(self, tmp_path: Path, clock: ManualClock) -> None:
        """Frames of its traceback may be part of a cycle."""
        place = str(tmp_path / "damaged")
        Store.create(place, clock=clock)
        with Store.open(place, clock=clock) as store:
            table = store.table("accounts", create=True)
            table.import_rows((b"%d" % number, b"x") for number in range(3))
            environment = store.connection.environment
            assert isinstance(environment, LmdbEnvironment)
            rows = environment.data_map.databases[ROWS.name]
            with environment.data_map.raw.begin(write=True) as raw:
                for key, data in list(raw.cursor(db=rows)):
                    raw.put(key, b"\0" + data, db=rows)
            calls = (
                lambda: table.get(b"1"),
                lambda: table.get_row(b"1"),
                lambda: list(table.scan()),
                lambda: table.get(b"1", txn=store.transaction()),
                lambda: table.put(b"1", b""),
                lambda: table.versions(b"1"),
            )
            kept: list[pytest.ExceptionInfo[CorruptStore]] = []
            for call in calls:
                with pytest.raises(CorruptStore) as raised:
                    call()
                kept.append(raised)
            assert environment.reader_slots() == []

    def test_a_scan_left_half_way_keeps_no_place(self, store: Store) -> None:
        """Its cursor refers to the transaction of LMDB, in a rehearsal as well."""
        store.create_topic("u")
        environment = store.connection.environment
        with store.connection.view() as view:
            scans = [
                view.scan(TOPICS),
                view.scan_back(TOPICS, b"", b"\xff"),
                iter(view.stored(TOPICS, b"\0")),
            ]
            assert [next(scan) for scan in scans]
            assert len(environment.reader_slots()) == 1
        rehearsed = store.connection.rehearse(lambda batch: batch.scan(TOPICS))
        scans.append(rehearsed)
        half = store.connection.rehearse(lambda batch: (scan := batch.scan(TOPICS), next(scan))[0])
        scans.append(half)
        assert environment.reader_slots() == []

"""Data map: `storage/disk/lmdb/data_map.py`."""

from __future__ import annotations

import pytest

from storage import Store
from storage.disk.lmdb import data_file
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

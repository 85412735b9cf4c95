"""Environment: `storage/disk/lmdb/environment.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from storage import EARLIEST, IsolationLevel, Store
from storage.errors import (
    StoreClosed,
    StoreNotFound,
)
from storage.process.clock import ManualClock

RU = IsolationLevel.READ_UNCOMMITTED


class TestClosing:
    """What a closed store answers."""

    def test_everything_made_from_it_is_of_no_use(self, store: Store) -> None:
        """Producers, consumers, readers and transactions say that it is closed."""
        producer = store.create_producer("t")
        producer.send(b"x")
        consumer = store.subscribe("t", "a", initial_position=EARLIEST)
        reader, txn = store.reader("t"), store.transaction()
        store.close()
        calls: list[Callable[[], object]] = [
            lambda: producer.send(b"y"), lambda: consumer.receive(timeout=0), lambda: reader.read_next(timeout=0),
            txn.commit, txn.abort, store.topics, store.begin_transaction, store.maintenance.verify_store,
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(StoreClosed):
                call()
        store.close()

    def test_another_handle_of_the_process_goes_on(self, store: Store, path: str, clock: ManualClock) -> None:
        """Handles on one store share what LMDB opens once, and close one by one."""
        with Store.open(path, clock=clock) as other:
            assert other.topics() == ["t"]
        store.create_producer("t").send(b"x")
        assert len(list(store.reader("t"))) == 1

    def test_what_was_acknowledged_is_there_after_reopening(
        self, store: Store, path: str, clock: ManualClock
    ) -> None:
        """Messages, commits, acknowledgements, seeks (invariant 15)."""
        producer = store.create_producer("t")
        for number in range(3):
            producer.send(b"%d" % number)
        with store.subscribe("t", "a", initial_position=EARLIEST) as consumer:
            consumer.acknowledge(consumer.receive(timeout=1))
        open_txn = store.begin_transaction()
        producer.send(b"open", txn=open_txn)
        store.close()
        with Store.open(path, clock=clock) as again:
            assert [message.value for message in again.reader("t")] == [b"0", b"1", b"2"]
            assert len(list(again.reader("t", isolation_level=RU))) == 4
            again.commit_transaction(open_txn)
            received = again.subscribe("t", "a").receive_batch(9, timeout=0)
            assert [message.value for message in received] == [b"1", b"2", b"open"]

    def test_opening_creates_nothing(self, tmp_path: object) -> None:
        """A missing store is an error, and stays missing."""
        place = os.path.join(str(tmp_path), "nothing")
        with pytest.raises(StoreNotFound):
            Store.open(place)
        assert not os.path.exists(place)


class TestFork:
    """LMDB does not cross a fork."""

    SCRIPT = """
import os, sys
from storage import Store
from storage.errors import StoreClosed

store = Store.open(sys.argv[1])
producer, txn = store.create_producer("t"), store.transaction()
producer.send(b"parent", txn=txn)
txn.flush()
child = os.fork()
if child == 0:
    refused = 0
    for call in (store.topics, lambda: producer.send(b"child"), txn.commit):
        try:
            call()
        except StoreClosed:
            refused += 1
    store.close()
    with Store.open(sys.argv[1]) as own:
        own.create_producer("t").send(b"child")
        own.admin.transactions.reap_transactions()
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
txn.commit()
"""

    def test_a_forked_child_is_told_and_may_open_the_store_anew(self, path: str) -> None:
        """The parent's handle is closed in the child, and goes on in the parent with its locks."""
        with Store.open(path) as store:
            store.create_topic("t")
        subprocess.run([sys.executable, "-c", self.SCRIPT, path], check=True, timeout=60)
        with Store.open(path) as store:
            assert [message.value for message in store.reader("t")] == [b"parent", b"child"]

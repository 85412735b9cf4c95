"""A store as a whole: opening, closing, threads, growth of the map, a forked child."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from storage import Message, Store, SubscriptionType
from storage.errors import InvalidValue
from tests.row_json import row_json
from tests.storage.store_steps import run_in_threads


class TestDurability:
    """A directory is kept by one machine."""

    def test_a_directory_is_local(self, tmp_path: Path) -> None:
        Store.create(tmp_path / "a", durability="local")
        with Store.open(tmp_path / "a") as store:
            assert store.topics() == []

    def test_a_replicated_directory_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidValue, match="is a directory"):
            Store.create(tmp_path / "a", durability="replicated")
        with pytest.raises(InvalidValue, match="is no durability"):
            Store.create(tmp_path / "a", durability="two")
        assert not (tmp_path / "a").exists()


class TestThreads:
    """A Store may be used by many threads."""

    def test_producers_of_many_threads(self, path: str) -> None:
        """Every message is stored once, and those of each thread are in its order."""
        with Store.open(path) as store:
            store.create_topic("t", ledger_entries_max=7)

            def produce(number: int) -> None:
                producer = store.create_producer("t", producer_name=f"p{number}")
                for each in range(25):
                    if each % 5:
                        producer.send(b"%d" % each)
                    else:
                        with store.transaction() as txn:
                            producer.send(b"%d" % each, txn=txn)

            run_in_threads(4, produce)
            by_producer: dict[str, list[bytes | None]] = {}
            for message in store.reader("t"):
                by_producer.setdefault(message.producer_name, []).append(message.value)
            assert by_producer == {f"p{n}": [b"%d" % each for each in range(25)] for n in range(4)}

    def test_consumers_of_many_threads_divide_the_messages(self, path: str) -> None:
        """On Shared each message is received and acknowledged once, while others produce."""
        with Store.open(path) as store:
            store.create_topic("t")
            store.admin.subscriptions.create_subscription("t", "a", subscription_type=SubscriptionType.SHARED)
            received: list[Message] = []

            def work(number: int) -> None:
                if number == 0:
                    producer = store.create_producer("t")
                    for each in range(40):
                        producer.send_batch([b"%d-%d" % (each, place) for place in range(5)])
                    return
                with store.subscribe("t", "a", receiver_queue_size=10) as consumer:
                    while len(received) < 200:
                        messages = consumer.receive_batch(7, timeout=0.05)
                        consumer.acknowledge(list(messages))
                        received.extend(messages)

            run_in_threads(4, work)
            counted = Counter(message.value for message in received)
            assert len(counted) == 200
            assert set(counted.values()) == {1}
            assert row_json(store.reports.subscription_stats("t", "a"))["msgBacklog"] == 0

    def test_readers_beside_writers(self, path: str) -> None:
        """A READ_COMMITTED reader in one thread sees whole transactions of another, in order, and never an open one."""
        with Store.open(path) as store:
            store.create_topic("t")
            done = threading.Event()

            def work(number: int) -> None:
                if number == 0:
                    producer = store.create_producer("t")
                    for each in range(30):
                        txn = store.begin_transaction()
                        for place in range(3):
                            producer.send(b"%d-%d" % (each, place), txn=txn)
                        (
                            store.admin.transactions.abort_transaction
                            if each % 3 == 2
                            else store.commit_transaction
                        )(txn)
                    done.set()
                    return
                whole = [
                    b"%d-%d" % (each, place) for each in range(30) if each % 3 != 2 for place in range(3)
                ]
                is_last = False
                while not is_last:
                    is_last = done.is_set()
                    seen = [message.value for message in store.reader("t")]
                    assert seen == whole[: len(seen)]
                    assert len(seen) % 3 == 0
                assert seen == whole

            run_in_threads(3, work)

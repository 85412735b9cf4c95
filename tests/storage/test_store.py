"""A store as a whole: opening, closing, threads, growth of the map, a forked child."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from storage import EARLIEST, IsolationLevel, Message, Store, SubscriptionType
from storage.disk import data_file
from storage.errors import (
    AlreadyExists,
    InvalidName,
    InvalidValue,
    NotFound,
    StoreClosed,
    StoreNotFound,
    TopicNotFound,
    WriteTooOld,
)
from storage.process.clock import ManualClock
from tests.row_json import row_json

RU = IsolationLevel.READ_UNCOMMITTED


def run_in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run `work` in so many threads at once; the first exception of any of them is raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def guarded(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as error:  # noqa: BLE001 - it is raised again below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class TestTopics:
    """The catalogue."""

    def test_topics_are_listed_in_order(self, store: Store) -> None:
        """By name, short where they can be."""
        for name in ("b", "a", "persistent://x/y/z"):
            store.create_topic(name)
        assert store.topics() == ["a", "b", "t", "persistent://x/y/z"]
        assert store.has_topic("persistent://public/default/a")
        assert not store.has_topic("c")

    def test_a_topic_is_created_once(self, store: Store) -> None:
        """Under either of its names."""
        for name in ("t", "persistent://public/default/t"):
            with pytest.raises(AlreadyExists):
                store.create_topic(name)

    @pytest.mark.parametrize("name", ["", "a/b", "../a", "a b", "a\0", "x" * 129])
    def test_a_bad_name_is_refused_everywhere(self, store: Store, name: str) -> None:
        """Creating, producing, reading, subscribing, asking: never a path, never a traceback."""
        calls: list[Callable[[str], object]] = [
            store.create_topic, store.has_topic, store.create_producer, store.reader, store.reports.topic_stats,
            store.admin.topics.delete_topic, store.reports.last_message_id, lambda each: store.subscribe(each, "a"),
            lambda each: list(row_json(store.reports.topic_log(each))),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(InvalidName):
                call(name)

    @pytest.mark.parametrize("limit", ["ledger_entries_max", "ledger_bytes_max", "ledger_age_max_ms"])
    @pytest.mark.parametrize("value", [0, -1, 1 << 62])
    def test_limits_of_a_ledger_have_bounds(self, store: Store, limit: str, value: int) -> None:
        """At least one, and no absurd number; nothing is created."""
        with pytest.raises(InvalidValue):
            store.create_topic("u", **{limit: value})  # type: ignore[arg-type]
        assert not store.has_topic("u")


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


class TestDeletion:
    """A deleted topic and its successor of the same name."""

    def test_ledger_ids_go_on_counting(self, store: Store) -> None:
        """A position of the first life never names anything in the second (invariant 5)."""
        store.create_topic("r", ledger_entries_max=1)
        with store.create_producer("r") as producer:
            producer.send(b"x")
            producer.send(b"y")
        store.admin.topics.delete_topic("r")
        with pytest.raises(TopicNotFound):
            store.reader("r")
        store.create_topic("r")
        assert str(store.create_producer("r").send(b"z")) == "3:0"
        store.admin.topics.delete_topic("r", force=True)
        store.create_topic("r")
        assert row_json(store.reports.topic_stats("r"))["maxReadPosition"] == "4:-1"

    def test_nothing_of_it_is_left(self, store: Store) -> None:
        """Entries, subscriptions, sequence ids, aborted sets: the successor begins empty."""
        producer = store.create_producer("t", producer_name="p")
        producer.send(b"x", sequence_id=1)
        txn = store.begin_transaction()
        producer.send(b"aborted", txn=txn)
        store.admin.transactions.abort_transaction(txn)
        producer.close()
        store.subscribe("t", "a", initial_position=EARLIEST).close()
        store.admin.topics.delete_topic("t")
        space = {row["database"]: row["entries"] for row in row_json(store.reports.list_databases())}
        for name in (
            "entries",
            "ledgers",
            "sequences",
            "aborted",
            "txn_runs",
            "subscriptions",
            "cursors",
            "producers",
            "owners",
        ):
            assert space[name] == 0, name
        store.create_topic("t")
        assert store.create_producer("t", producer_name="p").send(b"x", sequence_id=1).entry_id == 0
        assert row_json(store.reports.list_subscriptions("t")) == []


class TestLimits:
    """How many rows are asked for: all, none, or so many; anything else is bad input."""

    LISTS: ClassVar[list[Callable[[Store, Any], Any]]] = [
        lambda store, limit: row_json(store.reports.list_transactions(limit=limit)),
        lambda store, limit: row_json(store.reports.list_transactions(ended=True, limit=limit)),
        lambda store, limit: row_json(store.reports.list_ended_transactions(limit=limit)),
        lambda store, limit: row_json(store.reports.list_audit_records(limit)),
        lambda store, limit: row_json(store.reports.list_intents(limit=limit)),
        lambda store, limit: row_json(store.reports.list_conflicts(limit)),
        lambda store, limit: list(row_json(store.reports.topic_log("t", limit=limit))),
    ]

    @pytest.mark.parametrize("rows", LISTS)
    def test_a_limit_is_kept_or_refused(self, store: Store, rows: Callable[[Store, Any], Any]) -> None:
        """However large it is: there are never so many."""
        something_of_everything(store)
        every = rows(store, None)
        assert every
        assert rows(store, 1 << 70) == every
        assert (rows(store, 1), rows(store, 0)) == (every[:1], [])
        with pytest.raises(InvalidValue):
            rows(store, -1)

    def test_a_record_that_never_was_is_not_found(self, store: Store) -> None:
        """Also under a number that no record can have."""
        for number in (0, -1, 1, 1 << 63, 1 << 70):
            with pytest.raises(NotFound):
                store.reports.show_audit_record(number)

    @pytest.mark.parametrize("parts", [0, -1])
    def test_a_table_is_cut_into_one_part_at_least(self, store: Store, parts: int) -> None:
        """One part needs no cut."""
        store.create_table("a")
        assert store.table("a").split(1) == []
        with pytest.raises(InvalidValue):
            store.table("a").split(parts)


def something_of_everything(store: Store) -> None:
    """An ended transaction, a conflict, a change; and open transactions, messages, intents, two each."""
    store.create_table("a")
    table, producer = store.table("a"), store.create_producer("t")
    older = store.begin_transaction()
    table.put(b"0", b"0")
    with pytest.raises(WriteTooOld):
        table.put(b"0", b"1", txn=older)
    for number in range(2):
        txn = store.begin_transaction()
        table.put(b"%d" % (number + 1), b"0", txn=txn)
        producer.send(b"x", txn=txn)
    store.admin.settings.set_reap_policy("manual")

"""Reading without a subscription (semantics section 4)."""

from __future__ import annotations

import threading

import pytest

from storage import EARLIEST, IsolationLevel, MessageId, Position, Store
from storage.errors import InvalidValue, TopicNotFound, WaitTimeout
from storage.process.clock import ManualClock
from storage.topic import log
from tests.row_json import row_json

RC, RU = IsolationLevel


def send_batches(store: Store, *sizes: int) -> None:
    producer, sent = store.create_producer("t"), 0
    for size in sizes:
        producer.send_batch([b"%d" % number for number in range(sent, sent + size)])
        sent += size


class TestReading:
    """All ways to read show the same."""

    def test_messages_entries_and_batches(self, store: Store) -> None:
        """Iteration, `read_next`, `read_batch` and `entries` agree, whatever the size of their steps."""
        send_batches(store, 3, 1, 2)
        expected = [b"%d" % number for number in range(6)]
        assert [message.value for message in store.reader("t")] == expected
        reader = store.reader("t")
        assert [reader.read_next(timeout=0).value for _ in range(6)] == expected
        reader = store.reader("t")
        steps = [[message.value for message in reader.read_batch(count)] for count in (2, 0, 3, 9, 9)]
        assert [len(step) for step in steps] == [2, 0, 3, 1, 0]
        assert [value for step in steps for value in step] == expected
        assert [value for entry in store.reader("t").entries() for value in entry.values] == expected

    def test_whole_entries_after_single_messages(self, store: Store) -> None:
        """Where some of a batch was read before, or the start lies inside it, `first_index` says where to go on."""
        send_batches(store, 3, 2)
        reader = store.reader("t")
        reader.read_next(timeout=0)
        entries = list(reader.entries())
        assert [(str(entry.position), entry.first_index) for entry in entries] == [("1:0", 1), ("1:1", 0)]
        (entry, _) = store.reader("t", start=MessageId(1, 0, 2)).entries()
        assert entry.first_index == 2

    @pytest.mark.parametrize("page", [1, 2, 3])
    def test_pages_neither_skip_nor_repeat(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, page: int
    ) -> None:
        """However small the pages, and whatever is filtered out of them."""
        monkeypatch.setattr(log, "PAGE_ENTRIES", page)
        producer = store.create_producer("t")
        for number in range(5):
            producer.send(b"%d" % number)
            txn = store.begin_transaction()
            producer.send(b"aborted", txn=txn)
            store.admin.transactions.abort_transaction(txn)
        assert [message.value for message in store.reader("t")] == [b"%d" % number for number in range(5)]

    def test_two_readers_of_one_range_read_the_same(self, store: Store) -> None:
        """And what lies at or below an earlier maxReadPosition never changes (invariant 4)."""
        producer = store.create_producer("t")
        txns = [store.begin_transaction() for _ in range(4)]
        for number in range(12):
            producer.send(b"%d" % number, txn=txns[number % 4] if number % 3 else None)
        earlier: list[tuple[str, bytes | None]] = []
        for number, txn in enumerate(txns):
            (store.commit_transaction if number % 2 else store.admin.transactions.abort_transaction)(txn)
            reads = [[(str(m.message_id), m.value) for m in store.reader("t")] for _ in range(2)]
            assert reads[0] == reads[1]
            assert reads[0][: len(earlier)] == earlier
            earlier = reads[0]
            everything = [(str(m.message_id), m.value) for m in store.reader("t", isolation_level=RU)]
            assert set(earlier) <= set(everything)

    def test_a_reader_leaves_nothing_behind(self, store: Store) -> None:
        """Reading commits nothing."""
        send_batches(store, 3)
        before = row_json(store.reports.store_info())["commits"]
        assert len(list(store.reader("t"))) == 3
        assert row_json(store.reports.store_info())["commits"] == before
        assert row_json(store.reports.list_subscriptions("t")) == []

    def test_there_must_be_the_topic(self, store: Store) -> None:
        """Reading creates none."""
        with pytest.raises(TopicNotFound):
            store.reader("u")
        assert store.topics() == ["t"]


class TestMore:
    """`has_message_available` never promises a message that will not come."""

    def test_behind_an_open_transaction_there_is_none(self, store: Store) -> None:
        """And `blocked_by` says who holds it and how much waits."""
        producer, txn = store.create_producer("t"), store.begin_transaction()
        producer.send_batch([b"open", b"open"], txn=txn)
        producer.send_batch([b"0", b"1", b"2"])
        reader = store.reader("t")
        assert not reader.has_message_available()
        blocked = reader.blocked_by()
        assert blocked is not None
        assert (blocked.txn_id, blocked.messages, blocked.uncommitted) == (txn, 3, 2)
        assert store.reader("t", isolation_level=RU).has_message_available()

    def test_aborted_messages_and_markers_are_none(self, store: Store) -> None:
        """At the end of the topic they promise nothing."""
        txn = store.begin_transaction()
        store.create_producer("t").send(b"x", txn=txn)
        store.admin.transactions.abort_transaction(txn)
        reader = store.reader("t")
        assert not reader.has_message_available()
        assert reader.read_batch(1) == []
        assert reader.blocked_by() is None

    def test_what_is_promised_comes(self, store: Store) -> None:
        """Also in the midst of a batch."""
        send_batches(store, 2)
        reader = store.reader("t")
        read = 0
        while reader.has_message_available():
            reader.read_next(timeout=0)
            read += 1
        assert read == 2


class TestFollowing:
    """A reader goes on where it stood."""

    def test_it_sees_what_is_sent_later(self, store: Store) -> None:
        """In place, from the next page on."""
        send_batches(store, 2)
        reader = store.reader("t")
        assert len(reader.read_batch(9)) == 2
        send_batches(store, 1)
        assert [str(message.message_id) for message in reader] == ["1:1"]

    def test_it_sees_what_is_committed_later(self, store: Store) -> None:
        """A message that was open when the reader passed by is read in its place, as what it became."""
        one, two = store.begin_transaction(), store.begin_transaction()
        producer = store.create_producer("t")
        producer.send(b"one", txn=one)
        producer.send(b"two", txn=two)
        producer.send(b"plain")
        reader = store.reader("t")
        assert list(reader) == []
        store.admin.transactions.abort_transaction(two)
        assert list(reader) == []
        store.commit_transaction(one)
        assert [message.value for message in reader] == [b"one", b"plain"]

    def test_waiting_ends_in_time(self, store: Store, clock: ManualClock) -> None:
        """By the boot clock, with a WaitTimeout."""
        began = clock.boot_now_ns
        with pytest.raises(WaitTimeout):
            store.reader("t").read_next(timeout=3)
        assert 3 <= (clock.boot_now_ns - began) / 1e9 < 4

    def test_a_bad_timeout_is_refused(self, store: Store) -> None:
        """Less than nothing is no time."""
        for timeout in (-1, float("nan")):
            with pytest.raises(InvalidValue):
                store.reader("t").read_next(timeout=timeout)

    def test_a_message_wakes_it(self, path: str) -> None:
        """A commit by another thread ends the wait."""
        with Store.open(path) as store:
            store.create_topic("t")
            reader = store.reader("t", start=EARLIEST)
            sender = threading.Timer(0.05, lambda: store.create_producer("t").send(b"wake"))
            sender.start()
            assert reader.read_next(timeout=60).value == b"wake"
            sender.join()

    def test_a_topic_deleted_meanwhile(self, store: Store) -> None:
        """The reader is told, and does not wander into the successor."""
        send_batches(store, 1)
        reader = store.reader("t", start=Position(1, 1))
        store.admin.topics.delete_topic("t", force=True)
        store.create_topic("t")
        send_batches(store, 1)
        with pytest.raises(TopicNotFound):
            reader.read_next(timeout=0)

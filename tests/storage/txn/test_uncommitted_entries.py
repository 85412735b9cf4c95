"""Uncommitted entries: maxReadPosition, markers, what each level shows (semantics section 4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from storage import EARLIEST, LATEST, IsolationLevel, MessageId, Position, Store, TransactionState, TxnID
from storage.disk.view import WriteBatch
from storage.errors import MessageNotFound
from storage.topic.entry import Columns
from storage.topic.open_topic import OpenTopic
from storage.txn import uncommitted_entries
from storage.txn.begin import NewTransaction, new_record
from tests.row_json import row_json
from tests.storage.conftest import Scratch
from tests.storage.lmdb_operations import counted
from tests.storage.written_log import Step, WrittenLog, steps

RC, RU = IsolationLevel
KnownAnswer = Callable[[], tuple[TxnID, TxnID]]


def max_read(store: Store) -> str:
    found: str = row_json(store.reports.topic_stats("t"))["maxReadPosition"]
    return found


def shown(store: Store, level: IsolationLevel) -> list[str]:
    return [str(message.message_id) for message in store.reader("t", isolation_level=level)]


class TestKnownAnswer:
    """n 1:0..1:2; txn1 1:3, n 1:4, txn2 1:5; commit txn1 (m 1:6); abort txn2 (m 1:7)."""

    def test_before_anything_ends(self, store: Store, known_answer: KnownAnswer) -> None:
        """Last visible and maxReadPosition are 1:2, just before the first open transaction's first message."""
        known_answer()
        assert store.reports.last_message_id("t", RC) == MessageId(1, 2)
        assert max_read(store) == "1:2"
        assert shown(store, RC) == ["1:0", "1:1", "1:2"]
        assert shown(store, RU) == ["1:0", "1:1", "1:2", "1:3", "1:4", "1:5"]

    def test_after_the_first_is_committed(self, store: Store, known_answer: KnownAnswer) -> None:
        """The marker is 1:6; last visible and maxReadPosition are 1:4, held by the second transaction."""
        first, _ = known_answer()
        assert store.commit_transaction(first)
        assert [row["position"] for row in row_json(store.reports.topic_log("t", Position(1, 6)))] == ["1:6"]
        assert store.reports.last_message_id("t", RC) == MessageId(1, 4)
        assert max_read(store) == "1:4"
        assert shown(store, RC) == ["1:0", "1:1", "1:2", "1:3", "1:4"]

    def test_after_the_second_is_aborted(self, store: Store, known_answer: KnownAnswer) -> None:
        """The marker is 1:7; maxReadPosition moves there, while the last visible message stays 1:4."""
        first, second = known_answer()
        store.commit_transaction(first)
        store.admin.transactions.abort_transaction(second)
        assert store.reports.last_message_id("t", RC) == MessageId(1, 4)
        assert max_read(store) == "1:7"
        assert shown(store, RC) == ["1:0", "1:1", "1:2", "1:3", "1:4"]
        assert shown(store, RU) == ["1:0", "1:1", "1:2", "1:3", "1:4", "1:5"]

    def test_a_subscription_of_each_level_is_handed_just_that(
        self, store: Store, known_answer: KnownAnswer
    ) -> None:
        """E (read committed) stands still where D (read uncommitted) goes on, and follows as transactions end."""
        first, second = known_answer()
        committed = store.subscribe("t", "E", initial_position=EARLIEST)
        uncommitted = store.subscribe("t", "D", initial_position=EARLIEST, subscription_isolation_level=RU)

        def received(consumer: object) -> list[str]:
            return [str(m.message_id) for m in consumer.receive_batch(99, timeout=0)]  # type: ignore[attr-defined]

        assert received(committed) == ["1:0", "1:1", "1:2"]
        assert received(uncommitted) == ["1:0", "1:1", "1:2", "1:3", "1:4", "1:5"]
        assert row_json(store.reports.topic_stats("t"))["subscriptions"]["E"]["blocked"] == 1
        store.commit_transaction(first)
        assert received(committed) == ["1:3", "1:4"]
        store.admin.transactions.abort_transaction(second)
        assert received(committed) == []
        assert received(uncommitted) == []
        assert row_json(store.reports.topic_stats("t"))["subscriptions"]["E"]["blocked"] == 0


class TestMaxReadPosition:
    """The entry just before the first message of the open transaction whose first message comes first."""

    @given(wanted=steps, limit=st.integers(1, 5))
    def test_it_equals_its_formula_after_every_step(
        self, scratch: Scratch, wanted: list[Step], limit: int
    ) -> None:
        """Recomputed from the log it is the same, in the previous ledger if need be, and never lower than before."""

        def check(batch: WriteBatch) -> None:
            log, before = WrittenLog(scratch.store, batch, limit, []), (1, -1)
            for step in wanted:
                log.go_on([step])
                expected = (1, -1)
                for entry in log.entries:
                    if entry.count and log.state(entry) == "OPEN":
                        break
                    expected = entry.at
                assert log.head.max_read == expected >= before
                before = expected

        scratch.run(check)

    @given(wanted=steps, limit=st.integers(1, 5))
    def test_open_transactions_are_indexed_by_first_message(
        self, scratch: Scratch, wanted: list[Step], limit: int
    ) -> None:
        """The index holds each open transaction with its first message, in order; the head counts them."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            expected: dict[int, tuple[int, int]] = {}
            for entry in log.entries:
                if entry.count and log.state(entry) == "OPEN":
                    expected.setdefault(entry.txn, entry.at)
            assert uncommitted_entries.open_transactions(batch, log.topic_id) == list(expected.items())
            assert log.head.open_txns == len(expected)
            assert log.head.uncommitted == log.messages((0, -1), log.head.last_confirmed, set(expected))

        scratch.run(check)

    def test_of_an_empty_topic(self, store: Store) -> None:
        """There is no entry before the first: `L:-1`."""
        assert max_read(store) == "1:-1"
        assert store.reports.last_message_id("t", RC) is None

    def test_before_the_first_message_of_a_topic(self, store: Store) -> None:
        """An open transaction with the very first message leaves nothing to read."""
        store.create_producer("t").send(b"x", txn=store.begin_transaction())
        assert max_read(store) == "1:-1"
        assert shown(store, RC) == []
        assert store.reports.last_message_id("t", RC) is None
        assert store.reports.last_message_id("t", RU) == MessageId(1, 0)

    def test_in_the_previous_ledger(self, store: Store) -> None:
        """Where the open transaction's first message opens a ledger, it is the last entry of the one before."""
        store.create_topic("r", ledger_entries_max=2)
        producer = store.create_producer("r")
        producer.send(b"0")
        producer.send(b"1")
        assert str(producer.send(b"2", txn=store.begin_transaction())) == "2:0"
        assert row_json(store.reports.topic_stats("r"))["maxReadPosition"] == "1:1"

    def test_ending_one_that_does_not_come_first_moves_nothing(
        self, store: Store, known_answer: KnownAnswer
    ) -> None:
        """The second transaction's end appends its marker, and maxReadPosition stays."""
        _, second = known_answer()
        store.commit_transaction(second)
        assert max_read(store) == "1:2"
        assert row_json(store.reports.topic_stats("t"))["lastConfirmedEntry"] == "1:6"

    def test_a_transaction_without_messages_here_holds_nothing(self, store: Store) -> None:
        """What is open elsewhere does not hold this topic, and leaves no marker in it."""
        store.create_topic("elsewhere")
        txn = store.begin_transaction()
        store.create_producer("elsewhere").send(b"x", txn=txn)
        store.create_producer("t").send(b"y")
        assert max_read(store) == "1:0"
        store.commit_transaction(txn)
        assert row_json(store.reports.topic_stats("t"))["lastConfirmedEntry"] == "1:0"

    def test_a_start_in_a_former_life_reads_nothing_uncommitted(self, store: Store) -> None:
        """A position of a deleted topic of the same name is refused, by a reader and by a subscription."""
        with store.create_producer("t") as producer:
            producer.send(b"old")
        store.admin.topics.delete_topic("t")
        store.create_topic("t")
        store.create_producer("t").send(b"open", txn=store.begin_transaction())
        with pytest.raises(MessageNotFound):
            list(store.reader("t", start=Position(1, 0)))
        with pytest.raises(MessageNotFound):
            store.subscribe("t", "a", initial_position=Position(1, 0))


class TestWhatALevelShows:
    """Open, committed, aborted, and by whom."""

    def test_read_uncommitted_tells_the_state(self, store: Store, known_answer: KnownAnswer) -> None:
        """Every message carries its transaction and the transaction's state at delivery."""
        first, second = known_answer()
        store.commit_transaction(first)
        states = [(m.txn_id, m.txn_state) for m in store.reader("t", isolation_level=RU)]
        assert states[2:] == [
            (None, None),
            (first, TransactionState.COMMITTED),
            (None, None),
            (second, TransactionState.OPEN),
        ]
        store.admin.transactions.abort_transaction(second)
        *_, last = store.reader("t", isolation_level=RU)
        assert (last.txn_id, last.txn_state) == (second, TransactionState.ABORTED)

    def test_a_transaction_does_not_see_its_own_messages(self, store: Store) -> None:
        """A consumer inside a transaction is not handed that transaction's messages at READ_COMMITTED."""
        consumer = store.subscribe("t", "a", initial_position=EARLIEST)
        producer = store.create_producer("t")
        producer.send(b"before")
        with store.transaction() as txn:
            consumer.acknowledge(consumer.receive(timeout=1), txn=txn)
            producer.send(b"mine", txn=txn)
            assert consumer.receive_batch(9, timeout=0) == []
        assert [message.value for message in consumer.receive_batch(9, timeout=0)] == [b"mine"]

    def test_everything_of_a_transaction_shows_at_one_instant(self, store: Store) -> None:
        """Messages on two topics and an acknowledgement: none before the commit, all after it (invariant 6)."""
        store.create_topic("u")
        request = store.create_producer("t").send(b"request")
        consumer = store.subscribe("t", "a", initial_position=EARLIEST)
        txn = store.begin_transaction()
        for topic in ("t", "u"):
            store.create_producer(topic).send(b"answer", txn=txn)
        consumer.acknowledge(consumer.receive(timeout=1), txn=txn)
        assert shown(store, RC) == [str(request)]
        assert list(store.reader("u")) == []
        assert row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"] == "1:-1"
        store.commit_transaction(txn)
        assert shown(store, RC) == ["1:0", "1:1"]
        assert [message.value for message in store.reader("u")] == [b"answer"]
        assert row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"] == "1:0"

    @pytest.mark.parametrize("level", [RC, RU])
    def test_markers_are_delivered_at_neither_level(self, store: Store, level: IsolationLevel) -> None:
        """A committed and an aborted transaction leave two markers, which nobody is handed."""
        producer = store.create_producer("t")
        for end in (store.commit_transaction, store.admin.transactions.abort_transaction):
            txn = store.begin_transaction()
            producer.send(b"x", txn=txn)
            end(txn)
        expected = ["1:0"] if level is RC else ["1:0", "1:2"]
        assert shown(store, level) == expected
        consumer = store.subscribe("t", "a", initial_position=EARLIEST, subscription_isolation_level=level)
        assert [str(m.message_id) for m in consumer.receive_batch(9, timeout=0)] == expected


class TestLatest:
    """`latest` misses nothing that commits later."""

    def test_at_read_committed_it_is_just_after_max_read(
        self, store: Store, known_answer: KnownAnswer
    ) -> None:
        """A new subscription is handed what was open, and what was blocked, as it becomes visible."""
        first, second = known_answer()
        consumer = store.subscribe("t", "a", initial_position=LATEST)
        assert row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"] == "1:2"
        store.commit_transaction(first)
        store.commit_transaction(second)
        assert [str(m.message_id) for m in consumer.receive_batch(9, timeout=0)] == ["1:3", "1:4", "1:5"]

    def test_at_read_uncommitted_it_is_just_after_the_last_entry(
        self, store: Store, known_answer: KnownAnswer
    ) -> None:
        """A new subscription is handed only what is sent from now on."""
        first, _ = known_answer()
        consumer = store.subscribe("t", "a", initial_position=LATEST, subscription_isolation_level=RU)
        store.commit_transaction(first)
        assert store.create_producer("t").send(b"new") == MessageId(1, 7)
        assert [m.value for m in consumer.receive_batch(9, timeout=0)] == [b"new"]

    def test_of_a_reader(self, store: Store, known_answer: KnownAnswer) -> None:
        """A reader's `latest` is that of its level."""
        first, second = known_answer()
        readers = [store.reader("t", start=LATEST, isolation_level=level) for level in (RC, RU)]
        store.commit_transaction(first)
        store.commit_transaction(second)
        store.create_producer("t").send(b"new")
        assert [m.value for m in readers[0]] == [b"txn1", b"n3", b"txn2", b"new"]
        assert [m.value for m in readers[1]] == [b"new"]


class TestPartOfOneBatch:
    """The part of a transaction that begins and ends in one batch."""

    def test_it_is_written_once(self, store: Store) -> None:
        """Three large messages are three entries: nothing is read, and the part is no record for each."""
        producer = store.create_producer("t")

        def commit() -> None:
            with store.transaction() as txn:
                for _ in range(3):
                    producer.send(b"v" * 200_000, txn=txn)

        with counted(store) as operations:
            commit()
            reads, writes = operations.reads, operations.writes
            commit()
        assert operations.reads == reads
        # Three entries, the run each time, the index there and gone, part, marker, transaction, topic and superblock.
        assert operations.writes - writes == 3 + 3 + 2 + 5
        assert store.maintenance.verify_store(full=True) == []

    def test_it_moves_to_a_new_epoch(self, store: Store) -> None:
        """A part that is not written yet is accepted under a new epoch like one that is."""

        def change(batch: WriteBatch) -> None:
            topic, coordinator = OpenTopic.load(batch, 1), store.engine.coordinator
            record = new_record(batch, store.engine.process, 0, NewTransaction(60_000), None)
            batch.ending = record.txn_id
            body = Columns([b"v"]).body("p", 0)
            uncommitted_entries.append(topic, record.txn_id, 1, body)
            topic.state.epoch += 1
            uncommitted_entries.accept(batch, record.txn_id, 1, topic.state.epoch)
            uncommitted_entries.append(topic, record.txn_id, 1, body)
            coordinator.commit(batch, record.txn_id, store.engine.process, record=record)
            assert batch.ending == 0
            part = uncommitted_entries.part_of(batch, record.txn_id, 1)
            assert part is not None
            assert (part.epoch, part.entries, part.messages) == (topic.state.epoch, 2, 2)

        store.connection.write(change, dry_run=True)

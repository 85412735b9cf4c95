"""The queue of a group: order in the store, reads, and threads."""

from __future__ import annotations

import pytest

from storage import Producer, Store, Table
from storage.errors import (
    TransactionNotOpen,
)
from tests.storage.client.group_steps import commits, in_thread, stored
from tests.storage.producer_steps import values


class TestOrder:
    """What cannot wait takes the queue along, and a read sees what its thread has ended before."""

    def test_a_write_that_cannot_wait_takes_the_queue_along(self, store: Store, producer: Producer) -> None:
        """In one commit, behind the queue."""
        with store.group() as group:
            producer.send(b"a")
            before = commits(store)
            number = store.begin_transaction()
            assert commits(store) == before + 1
            assert group.durable == 1
            producer.send(b"b", txn=number)
            producer.send(b"c")
            store.commit_transaction(number)
        assert values(store) == [b"a", b"b", b"c"]

    def test_a_refused_write_leaves_the_queue_durable(self, store: Store, producer: Producer) -> None:
        """And is raised where it is called."""
        with store.group():
            producer.send(b"a")
            with pytest.raises(TransactionNotOpen):
                _aborted(store, producer)
            assert stored(store) == [b"a"]

    def test_a_message_id_is_known_at_the_first_look(self, store: Store, producer: Producer) -> None:
        """The look flushes."""
        with store.group() as group:
            first, second = producer.send(b"a"), producer.send(b"b")
            assert group.durable == 0
            assert (first.entry_id, second.entry_id) == (0, 1)
            assert group.durable == 2

    def test_views_of_the_thread_see_the_queue(self, store: Store, producer: Producer) -> None:
        """So the thread reads what it has written; reports too."""
        with store.group():
            producer.send(b"a")
            assert values(store) == [b"a"]
            producer.send(b"b")
            assert len(list(store.reports.topic_log("t"))) == 2

    def test_a_read_of_a_written_key_sees_the_write(self, store: Store, table: Table) -> None:
        """Also without a transaction, and of a range; other keys need no flush."""
        with store.group() as group:
            with store.transaction() as txn:
                table.put(b"a", b"1", txn=txn)
            with store.transaction() as txn:
                assert table.get(b"b", txn=txn) is None
                assert group.durable == 0
                assert table.get(b"a", txn=txn) == b"1"
                assert group.durable == 1
                table.put(b"b", b"2", txn=txn)
            assert table.get(b"b") == b"2"
            with store.transaction() as txn:
                table.put(b"c", b"3", txn=txn)
            with store.transaction() as txn:
                assert [row.key for row in table.scan(txn=txn)] == [b"a", b"b", b"c"]
        assert group.refused == []

    def test_transfers_over_one_account_lose_no_conflict(self, store: Store, table: Table) -> None:
        """Each reads what the one before has written."""
        with store.group() as group:
            for _ in range(10):
                with store.transaction() as txn:
                    table.put(b"a", b"%d" % (int(table.get(b"a", txn=txn) or 0) + 1), txn=txn)
        assert table.get(b"a") == b"10"
        assert group.durable == 10

    def test_run_transaction_is_durable_at_its_return(self, store: Store, producer: Producer) -> None:
        """With the queue before it, in one commit."""
        with store.group() as group:
            producer.send(b"a")
            before = commits(store)
            store.run_transaction(lambda txn: producer.send(b"b", txn=txn))
            assert commits(store) == before + 1
            assert group.durable == 1
        assert values(store) == [b"a", b"b"]

    def test_an_acknowledgement_follows_the_sends_before_it(self, store: Store, producer: Producer) -> None:
        """An acknowledgement must not be durable before the answer that was sent first."""
        store.create_topic("answers")
        answers = store.create_producer("answers")
        producer.send(b"question")
        consumer = store.subscribe("t", "a", initial_position="earliest")
        with store.group():
            for message in consumer.receive_batch(10, 0):
                answers.send(b"answer")
                consumer.acknowledge(message)
            assert [m.value for m in store.reader("answers")] == [b"answer"]


def _aborted(store: Store, producer: Producer) -> None:
    number = store.begin_transaction()
    store.admin.transactions.abort_transaction(number)
    producer.send(b"x", txn=number)


class TestThreads:
    """A group is of one thread."""

    def test_ends_of_other_threads_are_theirs(self, store: Store, producer: Producer) -> None:
        """They are durable at once."""
        other = store.create_producer("t")
        with store.group() as group:
            producer.send(b"queued")
            in_thread(lambda: other.send(b"other"))
            assert stored(store) == [b"other"]
        assert group.durable == 1
        assert values(store) == [b"other", b"queued"]

    def test_a_producer_that_changes_the_thread_keeps_its_order(
        self, store: Store, producer: Producer
    ) -> None:
        """Its queued messages are written first."""
        with store.group():
            producer.send(b"first")
            in_thread(lambda: producer.send(b"second"))
        assert values(store) == [b"first", b"second"]

    def test_each_thread_has_its_own_group(self, store: Store, producer: Producer) -> None:
        """The flush of one flushes nothing of the other."""
        other = store.create_producer("t")

        def group_of_other() -> None:
            with store.group():
                other.send(b"other")

        with store.group():
            producer.send(b"queued")
            in_thread(group_of_other)
            assert stored(store) == [b"other"]

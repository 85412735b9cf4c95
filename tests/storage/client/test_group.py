"""Groups: many ends in one flush, each with its own outcome."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TypeVar

import pytest

from storage import DUPLICATE, Producer, Store, Table, TransactionState, faults
from storage.disk.view import WriteBatch
from storage.errors import (
    GroupRefused,
    LostConflict,
    OutcomeUnknown,
    ProducerFenced,
    SequenceConflict,
    StoreClosed,
    TransactionNotOpen,
    WriterBusy,
    WriteTooOld,
)
from storage.limits import GROUP_ENDS_MAX
from storage.process.clock import ManualClock
from tests.storage.producer_steps import values

E = TypeVar("E", bound=BaseException)


@pytest.fixture
def producer(store: Store) -> Producer:
    """A producer of `t`."""
    return store.create_producer("t")


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.disarm()


def ends_in(error: type[E]) -> pytest.RaisesExc[E]:
    """That the block of a group, all of it, ends in an error."""
    return pytest.raises(error)


def commits(store: Store) -> int:
    """The number of commits of the store so far."""
    return store.connection.environment.last_commit()


def stored(store: Store) -> list[bytes]:
    """What another process sees: read through a view of LMDB, not through the group's thread."""
    seen: list[list[bytes]] = []
    thread = threading.Thread(target=lambda: seen.append(values(store)))
    thread.start()
    thread.join()
    return seen[0]


class TestFlush:
    """One store transaction for all ends, at the end of the block."""

    def test_many_ends_are_one_commit(self, store: Store, producer: Producer) -> None:
        """Transactions and sends, in the order of the program."""
        before = commits(store)
        with store.group() as group:
            for number in range(5):
                with store.transaction() as txn:
                    producer.send(b"in %d" % number, txn=txn)
                producer.send(b"out %d" % number)
            assert commits(store) == before
            assert stored(store) == []
        assert commits(store) == before + 1
        assert values(store) == [b"%s %d" % (kind, number) for number in range(5) for kind in (b"in", b"out")]
        assert (group.durable, group.refused) == (10, [])

    def test_an_exception_flushes_what_was_committed(self, store: Store, producer: Producer) -> None:
        """The transaction that the exception leaves is aborted; those before it are durable."""
        with ends_in(ZeroDivisionError), store.group():
            with store.transaction() as txn:
                producer.send(b"before", txn=txn)
            with store.transaction() as txn:
                producer.send(b"lost", txn=txn)
                raise ZeroDivisionError
        assert values(store) == [b"before"]

    def test_flush_makes_durable_within_the_block(self, store: Store, producer: Producer) -> None:
        """What comes after it is queued again."""
        with store.group() as group:
            producer.send(b"a")
            group.flush()
            assert stored(store) == [b"a"]
            producer.send(b"b")
            assert stored(store) == [b"a"]
        assert values(store) == [b"a", b"b"]

    def test_a_full_queue_is_flushed_on_the_way(self, store: Store, producer: Producer) -> None:
        """The queue is bounded."""
        with store.group() as group:
            for _ in range(GROUP_ENDS_MAX):
                producer.send(b"x")
            assert group.durable == GROUP_ENDS_MAX

    def test_an_idle_group_is_flushed_within_a_second(
        self, store: Store, producer: Producer, clock: ManualClock
    ) -> None:
        """By the watch over buffered messages."""
        with store.group() as group:
            producer.send(b"x")
            clock.advance(1)
            assert group.durable == 1
            assert stored(store) == [b"x"]

    def test_a_group_without_ends_commits_nothing(self, store: Store) -> None:
        """Also with a transaction that only begins."""
        before = commits(store)
        with store.group(), store.transaction():
            pass
        assert commits(store) == before

    def test_groups_nest(self, store: Store, producer: Producer) -> None:
        """The inner block flushes at its end; each group knows its own ends."""
        with store.group() as outer:
            producer.send(b"a")
            with store.group() as inner:
                producer.send(b"b")
            assert stored(store) == [b"a", b"b"]
            producer.send(b"c")
        assert (outer.durable, inner.durable) == (2, 1)

    def test_a_group_may_be_entered_again(self, store: Store, producer: Producer) -> None:
        """It goes on counting."""
        group = store.group()
        for _ in range(2):
            with group:
                producer.send(b"x")
        assert group.durable == 2

    def test_sequence_ids_go_on_from_flush_to_flush(self, store: Store, producer: Producer) -> None:
        """Also of a producer whose ids are kept in its process alone."""
        for _ in range(2):
            with store.group():
                for _ in range(2):
                    with store.transaction() as txn:
                        producer.send(b"in", txn=txn)
                    producer.send(b"out")
        assert [message.sequence_id for message in store.reader("t")] == list(range(8))


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


class TestOutcomes:
    """A refusal is one end's alone, and the same as without a group."""

    def test_a_lost_conflict_leaves_the_others(self, store: Store, table: Table, producer: Producer) -> None:
        """The refused transaction is aborted, and the end of the block names it."""
        with ends_in(GroupRefused) as refusal, store.group() as group:
            with store.transaction() as first:
                producer.send(b"first", txn=first)
            older = store.transaction()
            table.put(b"k", b"old", txn=older)
            _in_thread(lambda: table.put(b"k", b"new"))
            _in_thread(lambda: table.get(b"k", txn=_kept(store)))
            older.commit()
            with store.transaction() as last:
                producer.send(b"last", txn=last)
        assert values(store) == [b"first", b"last"]
        [refused] = group.refused
        assert refused.subject is older
        assert isinstance(refused.error, WriteTooOld | LostConflict)
        assert (refused.place, group.durable) == (1, 2)
        assert refusal.value.details == {"refused": 1, "durable": 2}
        assert [txn.state for txn in (first, older, last)] == [
            TransactionState.COMMITTED,
            TransactionState.ABORTED,
            TransactionState.COMMITTED,
        ]
        assert table.get(b"k") == b"new"

    def test_a_refused_send_leaves_the_others(self, store: Store) -> None:
        """Nothing of it is stored, and its message id raises the refusal."""
        named = store.create_producer("t", producer_name="p")
        other = store.begin_transaction()
        named.send(b"held", sequence_id=5, txn=other)
        with ends_in(GroupRefused), store.group() as group:
            first = named.send(b"a", sequence_id=1)
            second = named.send(b"b", sequence_id=5)
            third = named.send(b"c", sequence_id=6)
            again = named.send(b"c", sequence_id=6)
        assert [refused.place for refused in group.refused] == [1]
        assert isinstance(group.refused[0].error, SequenceConflict)
        with pytest.raises(SequenceConflict):
            second.entry_id  # noqa: B018
        assert again == DUPLICATE
        assert third.entry_id > first.entry_id
        store.admin.transactions.abort_transaction(other)
        assert values(store) == [b"a", b"c"]

    def test_every_end_may_be_refused(self, store: Store) -> None:
        """Then nothing is stored."""
        producer = store.create_producer("t", access_mode="exclusive")
        with ends_in(GroupRefused), store.group() as group:
            for _ in range(3):
                producer.send(b"x")
            _in_thread(lambda: store.create_producer("t", access_mode="exclusive-with-fencing"))
        assert [type(refused.error) for refused in group.refused] == [ProducerFenced] * 3
        assert values(store) == []
        with pytest.raises(ProducerFenced):
            producer.send(b"y")

    def test_an_exception_of_the_block_keeps_refusals_as_a_note(self, store: Store) -> None:
        """The exception itself is raised."""
        producer = store.create_producer("t", access_mode="exclusive")
        with ends_in(ZeroDivisionError) as raised, store.group() as group:
            producer.send(b"x")
            _in_thread(lambda: store.create_producer("t", access_mode="exclusive-with-fencing"))
            raise ZeroDivisionError
        assert len(group.refused) == 1
        assert "1 of 1 ends of a group were refused" in raised.value.__notes__[0]

    def test_a_queued_transaction_cannot_be_used_or_aborted(self, store: Store, producer: Producer) -> None:
        """Its outcome comes first."""
        with store.group():
            with store.transaction() as txn:
                producer.send(b"x", txn=txn)
            with pytest.raises(TransactionNotOpen):
                producer.send(b"y", txn=txn)
            with store.transaction() as second:
                producer.send(b"z", txn=second)
            with pytest.raises(TransactionNotOpen):
                second.abort()
        assert values(store) == [b"x", b"z"]

    def test_a_commit_is_repeated_without_effect(self, store: Store, producer: Producer) -> None:
        """As without a group."""
        with store.group() as group:
            txn = store.transaction()
            producer.send(b"x", txn=txn)
            assert store.commit_transaction(txn)
            assert not store.commit_transaction(txn)
        assert group.durable == 1
        assert values(store) == [b"x"]

    def test_the_first_message_creates_its_topic(self, store: Store) -> None:
        """The sends behind it find the topic."""
        producer = store.create_producer("late", create_topic=True, create_late=True)
        with store.group():
            for number in range(3):
                producer.send(b"%d" % number)
            assert not _in_thread(lambda: store.has_topic("late"))
        assert [message.value for message in store.reader("late")] == [b"0", b"1", b"2"]


_open: list[object] = []


def _kept(store: Store) -> object:
    """A transaction that stays open, so that its reads count."""
    _open[:] = [store.transaction()]
    return _open[0]


def _in_thread(call: object) -> object:
    """Call outside of the thread of the group, as another user of the store."""
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(call()))  # type: ignore[operator]
    thread.start()
    thread.join()
    return results[0]


class TestThreads:
    """A group is of one thread."""

    def test_ends_of_other_threads_are_theirs(self, store: Store, producer: Producer) -> None:
        """They are durable at once."""
        other = store.create_producer("t")
        with store.group() as group:
            producer.send(b"queued")
            _in_thread(lambda: other.send(b"other"))
            assert stored(store) == [b"other"]
        assert group.durable == 1
        assert values(store) == [b"other", b"queued"]

    def test_a_producer_that_changes_the_thread_keeps_its_order(
        self, store: Store, producer: Producer
    ) -> None:
        """Its queued messages are written first."""
        with store.group():
            producer.send(b"first")
            _in_thread(lambda: producer.send(b"second"))
        assert values(store) == [b"first", b"second"]

    def test_each_thread_has_its_own_group(self, store: Store, producer: Producer) -> None:
        """The flush of one flushes nothing of the other."""
        other = store.create_producer("t")

        def group_of_other() -> None:
            with store.group():
                other.send(b"other")

        with store.group():
            producer.send(b"queued")
            _in_thread(group_of_other)
            assert stored(store) == [b"other"]


class TestFailures:
    """A flush that fails as a whole."""

    def test_a_busy_gate_leaves_all_to_be_done_again(self, store: Store, table: Table) -> None:
        """The transactions are open, and can be committed one by one."""
        store.connection.cap_lock_timeout(0)
        with ends_in(WriterBusy), store.group() as group:
            txn = store.transaction()
            table.put(b"k", b"v", txn=txn)
            txn.commit()
            gate = store.connection.environment.lock_file.gate
            held, let_go = threading.Event(), threading.Event()

            def hold() -> None:
                gate.enter(1, None)
                held.set()
                let_go.wait()
                gate.leave()

            holder = threading.Thread(target=hold)
            holder.start()
            held.wait()
        assert [type(refused.error) for refused in group.refused] == [WriterBusy]
        let_go.set()
        holder.join()
        assert txn.state is TransactionState.OPEN
        txn.commit()
        assert table.get(b"k") == b"v"

    def test_a_closed_store_refuses_the_flush(self, path: str, clock: ManualClock) -> None:
        """Nothing is stored."""
        store = Store.open(path, clock=clock)
        store.create_topic("t")
        producer = store.create_producer("t")
        with ends_in(StoreClosed), store.group() as group:
            producer.send(b"x")
            store.close()
        assert len(group.refused) == 1
        with Store.open(path, clock=clock) as again:
            assert values(again) == []

    @pytest.mark.parametrize(
        ("point", "is_stored"),
        [
            ("environment.before_commit", False),
            ("environment.after_commit", True),
            ("group.between_ends", False),
        ],
    )
    def test_an_interrupt_is_resolved(
        self, store: Store, producer: Producer, table: Table, point: str, is_stored: bool
    ) -> None:
        """Nothing is written twice, and outcomes say what is stored."""

        def stop() -> None:
            faults.disarm()
            raise KeyboardInterrupt

        with ends_in(KeyboardInterrupt), store.group() as group:
            with store.transaction() as txn:
                producer.send(b"in", txn=txn)
                table.put(b"k", b"v", txn=txn)
            producer.send(b"out")
            faults.arm(point, stop)
        assert group.durable == (2 if is_stored else 0)
        assert len(group.refused) == (0 if is_stored else 2)
        assert txn.state is (TransactionState.COMMITTED if is_stored else TransactionState.OPEN)
        assert values(store) == ([b"in", b"out"] if is_stored else [])
        if not is_stored:
            txn.commit()
            assert values(store) == [b"in"]

    def test_an_interrupted_flush_within_the_block_goes_on(self, store: Store, producer: Producer) -> None:
        """The end of the block does the rest, once."""

        def stop() -> None:
            faults.disarm()
            raise KeyboardInterrupt

        with store.group() as group:
            producer.send(b"a")
            producer.send(b"b")
            faults.arm("environment.after_commit", stop)
            with suppress(KeyboardInterrupt):
                group.flush()
            producer.send(b"c")
        assert values(store) == [b"a", b"b", b"c"]
        assert group.durable == 3

    def test_a_disk_that_fails_in_the_commit_leaves_the_outcome_unknown(
        self, store: Store, producer: Producer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of every end of the batch; none is reported as durable."""
        writer = store.connection.environment.writer

        def fail(raw: object, batch: WriteBatch) -> None:
            raise OutcomeUnknown("the disk failed during the commit")

        monkeypatch.setattr(writer, "_commit", fail)
        with ends_in(OutcomeUnknown), store.group() as group:
            producer.send(b"a")
            with store.transaction() as txn:
                producer.send(b"b", txn=txn)
        monkeypatch.undo()
        assert group.durable == 0
        assert [type(refused.error) for refused in group.refused] == [OutcomeUnknown] * 2


class TestGate:
    """A group holds the writer gate only during its flush."""

    def test_other_writers_pass_while_the_group_is_open(self, store: Store, producer: Producer) -> None:
        """Another handle writes without waiting."""
        with store.group():
            producer.send(b"queued")
            _in_thread(lambda: store.create_topic("other"))
            assert not store.connection.environment.lock_file.gate.is_held()

"""Groups: many ends in one flush, each with its own outcome."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from storage import (
    EARLIEST,
    Consumer,
    MessageId,
    Producer,
    Store,
    SubscriptionType,
    Table,
    TransactionState,
)
from storage.client import group
from storage.disk import connection
from storage.errors import (
    GroupRefused,
    ProducerFenced,
    StoreClosed,
    WriterBusy,
)
from storage.limits import GROUP_ENDS_MAX
from storage.process.clock import ManualClock
from tests.storage.busy import busy
from tests.storage.client.group_steps import commits, ends_in, in_thread, stored
from tests.storage.interrupt_lines import interrupted_runs
from tests.storage.producer_steps import values

SECOND = MessageId(1, 0, 1)


def _acknowledge_in_transaction(store: Store, consumer: Consumer) -> None:
    with store.transaction() as txn:
        consumer.acknowledge(SECOND, txn=txn)


SETTLES: dict[str, Callable[[Store, Consumer], object]] = {
    "acknowledge": lambda _, consumer: consumer.acknowledge(SECOND),
    "acknowledge in a transaction": _acknowledge_in_transaction,
    "give back": lambda _, consumer: consumer.negative_acknowledge(SECOND),
    "operator's acknowledge": lambda store, _: store.admin.acknowledgements.acknowledge_messages("t", "a", [SECOND]),
    "seek": lambda store, _: store.admin.subscriptions.seek_subscription("t", "a", MessageId(1, 0, 2)),
    "skip": lambda store, _: store.admin.subscriptions.skip_messages("t", "a", 2),
}  # fmt: skip


class TestReceiveWindow:
    """Changes of a subscription are not queued, but written behind the queue."""

    @pytest.mark.parametrize("kind", SubscriptionType)
    @pytest.mark.parametrize("settle", SETTLES.values(), ids=SETTLES)
    def test_a_settled_message_leaves_the_window(
        self,
        store: Store,
        producer: Producer,
        kind: SubscriptionType,
        settle: Callable[[Store, Consumer], object],
    ) -> None:
        """The thread that settles a message within a group does not receive it from its own window."""
        producer.send_batch([b"0", b"1", b"2", b"3"])
        consumer = store.subscribe("t", "a", subscription_type=kind, initial_position=EARLIEST)
        consumer.receive(timeout=0)
        with store.group():
            producer.send(b"queued")
            settle(store, consumer)
            rest = consumer.receive_batch(2, timeout=0)
        assert [message.value for message in rest] == [b"2", b"3"]


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


class TestOutcomes:
    """A refusal is one end's alone, and the same as without a group."""

    def test_every_end_may_be_refused(self, store: Store) -> None:
        """Then nothing is stored."""
        producer = store.create_producer("t", access_mode="exclusive")
        with ends_in(GroupRefused), store.group() as group:
            for _ in range(3):
                producer.send(b"x")
            in_thread(lambda: store.create_producer("t", access_mode="exclusive-with-fencing"))
        assert [type(refused.error) for refused in group.refused] == [ProducerFenced] * 3
        assert values(store) == []
        with pytest.raises(ProducerFenced):
            producer.send(b"y")

    def test_an_exception_of_the_block_keeps_refusals_as_a_note(self, store: Store) -> None:
        """The exception itself is raised."""
        producer = store.create_producer("t", access_mode="exclusive")
        with ends_in(ZeroDivisionError) as raised, store.group() as group:
            producer.send(b"x")
            in_thread(lambda: store.create_producer("t", access_mode="exclusive-with-fencing"))
            raise ZeroDivisionError
        assert len(group.refused) == 1
        assert "1 of 1 ends of a group were refused" in raised.value.__notes__[0]


class TestFailures:
    """A flush that fails as a whole."""

    def test_a_busy_gate_leaves_all_to_be_done_again(self, store: Store, table: Table) -> None:
        """The transactions are open, and can be committed one by one."""
        store.connection.cap_lock_timeout(0)
        writing = ExitStack()
        with ends_in(WriterBusy), store.group() as group:
            txn = store.transaction()
            table.put(b"k", b"v", txn=txn)
            txn.commit()
            writing.enter_context(busy(store))
        assert [type(refused.error) for refused in group.refused] == [WriterBusy]
        writing.close()
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


class TestGate:
    """A group holds the writer gate only during its flush."""

    def test_other_writers_pass_while_the_group_is_open(self, store: Store, producer: Producer) -> None:
        """Another handle writes without waiting."""
        with store.group():
            producer.send(b"queued")
            in_thread(lambda: store.create_topic("other"))
            assert store.connection.environment.gate_holder() is None


class TestInterrupts:
    """Ctrl-C at any line."""

    def test_interrupt_of_begin_or_end_leaves_no_queue(self, store: Store, producer: Producer) -> None:
        """A later send is durable when it returns; each message is stored once at most."""
        later = list[bytes]()

        def send() -> None:
            with store.group():
                producer.send(b"maybe")

        for line in interrupted_runs(send, group, connection):
            assert store.connection.queue is None, f"sends are queued behind an interrupt at line {line}"
            before = commits(store)
            producer.send(b"%d" % line)
            assert commits(store) > before
            later.append(b"%d" % line)
        assert [value for value in values(store) if value != b"maybe"] == later

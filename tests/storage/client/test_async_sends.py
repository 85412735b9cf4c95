"""`Producer.send_async`: futures, order, batches, errors, the bound, and the end of the thread."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import Future, wait

import pytest

from storage import DUPLICATE, MessageId, Producer, Store
from storage.client import async_sends
from storage.errors import (
    InvalidValue,
    ProducerFenced,
    SequenceConflict,
    StoreClosed,
    WriterBusy,
)
from storage.process.clock import ManualClock
from tests.storage.client.group_steps import gate_held
from tests.storage.interrupt_lines import interrupted_runs
from tests.storage.producer_steps import values

WAIT_S = 30


@pytest.fixture
def producer(store: Store) -> Producer:
    """A producer of `t` with a name."""
    return store.create_producer("t", producer_name="p")


def results(futures: list[Future[MessageId]]) -> list[MessageId]:
    """The message ids."""
    return [future.result(WAIT_S) for future in futures]


@pytest.mark.parametrize("count", [0, 5])
def test_interrupt_at_any_line_leaves_the_thread_and_the_order(store: Store, count: int) -> None:
    """The next messages, if any, are stored in order by one thread, and closing the producer ends."""
    expected, producers = list[bytes](), list[Producer]()

    def send() -> None:
        producers.append(store.create_producer("t"))
        producers[-1].send_async(b"maybe")

    for line in interrupted_runs(send, async_sends):
        sent = [b"%d %d" % (line, number) for number in range(count)]
        later = [producers[-1].send_async(value) for value in sent]
        closing = threading.Thread(target=producers[-1].close, daemon=True)
        closing.start()
        closing.join(WAIT_S)
        assert not closing.is_alive(), f"closing waits for ever behind an interrupt at line {line}"
        assert all(future.done() and future.exception() is None for future in later)
        expected += sent
    assert [value for value in values(store) if value != b"maybe"] == expected


class TestFutures:
    """Each has what `send` returns, or raises what `send` raises."""

    def test_a_future_has_the_message_id(self, store: Store, producer: Producer) -> None:
        """The message is durable by then."""
        message_id = producer.send_async(b"x", key="k", properties={"a": "b"}, event_time=7).result(WAIT_S)
        [message] = store.reader("t")
        assert message.message_id == message_id
        assert (message.value, message.key, message.properties, message.event_time) == (
            b"x", b"k", {"a": "b"}, 7,
        )  # fmt: skip

    def test_messages_that_wait_are_one_commit(self, store: Store, producer: Producer) -> None:
        """A batch is filled while the one before it waits for the gate."""
        before = store.connection.environment.last_commit()
        with gate_held(store):
            futures = [producer.send_async(b"%d" % number) for number in range(100)]
            assert not any(future.done() for future in futures)
        ids = results(futures)
        assert store.connection.environment.last_commit() - before <= 2
        messages = list(store.reader("t"))
        assert [message.value for message in messages] == [b"%d" % number for number in range(100)]
        assert [message.message_id for message in messages] == ids

    def test_sequence_ids_are_those_of_send(self, store: Store, producer: Producer) -> None:
        """Assigned in order, and deduplicated where the caller gives them."""
        with gate_held(store):
            futures = [producer.send_async(b"a"), producer.send_async(b"b", sequence_id=5)]
            futures += [
                producer.send_async(b"b again", sequence_id=5),
                producer.send_async(b"c", sequence_id=9),
            ]
            futures.append(producer.send_async(b"d"))
        ids = results(futures)
        assert ids[2] == DUPLICATE
        assert [m.sequence_id for m in store.reader("t")] == [0, 5, 9, 10]
        assert producer.last_sequence_id == 10
        assert values(store) == [b"a", b"b", b"c", b"d"]

    def test_a_message_in_conflict_fails_alone(self, store: Store, producer: Producer) -> None:
        """The messages beside it are stored."""
        txn = store.begin_transaction()
        producer.send(b"held", sequence_id=5, txn=txn)
        with gate_held(store):
            futures = [producer.send_async(b"%d" % number, sequence_id=number) for number in range(4, 7)]
        wait(futures, WAIT_S)
        assert isinstance(futures[1].exception(), SequenceConflict)
        assert futures[0].result() < futures[2].result()
        store.admin.transactions.abort_transaction(txn)
        assert values(store) == [b"4", b"6"]

    def test_a_fenced_producer_fails_its_futures(self, store: Store) -> None:
        """With the error of `send`; later ones too."""
        producer = store.create_producer("t", access_mode="exclusive")
        producer.send_async(b"stored").result(WAIT_S)
        store.create_producer("t", access_mode="exclusive-with-fencing")
        futures = [producer.send_async(b"x") for _ in range(3)]
        errors = [future.exception(WAIT_S) for future in futures]
        with pytest.raises(ProducerFenced) as raised:
            producer.send(b"y")
        assert [type(error) for error in errors] == [ProducerFenced] * 3
        assert {str(error) for error in errors} == {str(raised.value)}
        assert values(store) == [b"stored"]

    def test_a_busy_gate_fails_the_futures_that_waited(self, store: Store, producer: Producer) -> None:
        """Those that come later are stored."""
        store.connection.cap_lock_timeout(0)
        with gate_held(store):
            assert isinstance(producer.send_async(b"lost").exception(WAIT_S), WriterBusy)
        producer.send_async(b"stored").result(WAIT_S)
        assert values(store) == [b"stored"]

    def test_a_bad_message_is_refused_at_once(self, producer: Producer) -> None:
        """As by `send`, and nothing is sent."""
        with pytest.raises(InvalidValue):
            producer.send_async("text")  # type: ignore[arg-type]
        with pytest.raises(InvalidValue):
            producer.send_async(b"x", sequence_id=-1)

    def test_an_unknown_field_is_refused(self, store: Store, producer: Producer) -> None:
        """A transaction too: it buffers its messages by itself."""
        with store.transaction() as txn, pytest.raises(TypeError, match="'txn'"):
            producer.send_async(b"x", txn=txn)  # type: ignore[call-arg]

    def test_a_cancelled_message_is_not_sent(self, store: Store, producer: Producer) -> None:
        """As long as its batch has not begun."""
        with gate_held(store):
            first = producer.send_async(b"first")
            _until(first.running)
            second, third = producer.send_async(b"second"), producer.send_async(b"third")
            assert second.cancel()
            assert not first.cancel()
        third.result(WAIT_S)
        assert values(store) == [b"first", b"third"]

    def test_a_callback_may_send(self, store: Store, producer: Producer) -> None:
        """Through the same producer, which does not wait for itself."""
        sent = threading.Event()

        def answer(_: object) -> None:
            producer.send_async(b"second").add_done_callback(lambda _: sent.set())

        producer.send_async(b"first").add_done_callback(answer)
        assert sent.wait(WAIT_S)
        assert values(store) == [b"first", b"second"]

    def test_a_callback_that_ends_its_thread_ends_no_other(self, store: Store, producer: Producer) -> None:
        """The futures behind it are resolved."""

        def leave(_: object) -> None:
            raise SystemExit

        with gate_held(store):
            first = producer.send_async(b"first")
            first.add_done_callback(leave)
            second = producer.send_async(b"second")
        second.result(WAIT_S)
        assert values(store) == [b"first", b"second"]


def _until(condition: object) -> None:
    """Wait for a condition."""
    deadline = threading.Event()
    for _ in range(WAIT_S * 1000):
        if condition():  # type: ignore[operator]
            return
        deadline.wait(0.001)
    raise AssertionError("the condition did not come")


class TestOrder:
    """Messages of a producer stand in the order of its calls."""

    def test_every_other_call_waits(self, store: Store, producer: Producer) -> None:
        """Sends, sends in transactions, and batches."""
        producer.send_async(b"1")
        producer.send(b"2")
        producer.send_async(b"3")
        producer.send_batch([b"4", b"5"])
        producer.send_async(b"6")
        with store.transaction() as txn:
            producer.send(b"7", txn=txn)
            future = producer.send_async(b"8")
        future.result(WAIT_S)
        producer.send_async(b"9")
        producer.flush()
        assert values(store) == [b"%d" % number for number in range(1, 10)]

    def test_a_group_comes_first(self, store: Store, producer: Producer) -> None:
        """What it has queued is stored before the message is sent."""
        with store.group():
            producer.send(b"1")
            with store.transaction() as txn:
                producer.send(b"2", txn=txn)
            producer.send_async(b"3").result(WAIT_S)
            producer.send(b"4")
        assert values(store) == [b"1", b"2", b"3", b"4"]

    def test_an_ending_thread_loses_no_message(
        self, store: Store, producer: Producer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A thread that ends at once is started anew."""
        monkeypatch.setattr(async_sends, "_IDLE_S", 0.0)
        for number in range(50):
            producer.send_async(b"%d" % number).result(WAIT_S)
        assert len(values(store)) == 50


class TestBound:
    """The messages that wait are bounded."""

    def test_a_send_beyond_the_bound_waits(
        self, store: Store, producer: Producer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Until messages before it are stored."""
        monkeypatch.setattr(async_sends, "ASYNC_MESSAGES_MAX", 3)
        sent: list[int] = []

        def send() -> None:
            for number in range(6):
                producer.send_async(b"%d" % number)
                sent.append(number)

        sender = threading.Thread(target=send)
        with gate_held(store):
            sender.start()
            _until(lambda: len(sent) == 3)
            sender.join(0.05)
            assert sent == [0, 1, 2]
        sender.join()
        producer.flush()
        assert values(store) == [b"%d" % number for number in range(6)]

    def test_a_message_above_the_bound_goes_alone(
        self, store: Store, producer: Producer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of bytes."""
        monkeypatch.setattr(async_sends, "ASYNC_BYTES_MAX", 10)
        for _ in range(3):
            producer.send_async(b"x" * 100)
        producer.flush()
        assert len(values(store)) == 3


class TestEnds:
    """Closing resolves every future."""

    def test_close_resolves_all(self, store: Store, producer: Producer) -> None:
        """And refuses later messages."""
        with gate_held(store):
            futures = [producer.send_async(b"%d" % number) for number in range(10)]
        producer.close()
        assert all(future.done() for future in futures)
        assert len(values(store)) == 10
        with pytest.raises(StoreClosed):
            producer.send_async(b"x")

    def test_a_block_that_raises_resolves_all(self, store: Store) -> None:
        """The messages are stored: they were sent."""
        futures: list[Future[MessageId]] = []

        def run() -> None:
            with store.create_producer("t") as producer:
                futures.append(producer.send_async(b"x"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            run()
        assert futures[0].done()
        assert values(store) == [b"x"]

    def test_closing_the_store_stores_what_was_sent(self, path: str, clock: ManualClock) -> None:
        """Also through a producer that nobody closes."""
        with Store.open(path, clock=clock) as store:
            store.create_topic("t")
            futures = [store.create_producer("t").send_async(b"%d" % number) for number in range(10)]
        assert all(future.exception(WAIT_S) is None for future in futures)
        with Store.open(path, clock=clock) as store:
            assert len(values(store)) == 10

    def test_the_end_of_the_interpreter_stores_what_was_sent(self, tmp_path: os.PathLike[str]) -> None:
        """Without a close."""
        path = os.path.join(tmp_path, "store")
        program = (
            "import sys; from storage import Store\n"
            "Store.create(sys.argv[1]); store = Store.open(sys.argv[1]); store.create_topic('t')\n"
            "producer = store.create_producer('t')\n"
            "for number in range(1000): producer.send_async(b'x')\n"
        )
        subprocess.run([sys.executable, "-c", program, path], check=True, timeout=60)
        with Store.open(path) as store:
            assert len(values(store)) == 1000

    @pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
    def test_a_forked_child_fails_the_futures_of_its_parent(self, tmp_path: os.PathLike[str]) -> None:
        """The parent stores the messages. In real time: a clock that only the test moves would end the wait at once."""
        path = os.path.join(tmp_path, "store")
        Store.create(path)
        with Store.open(path) as waiting:
            waiting.create_topic("t")
            producer = waiting.create_producer("t")
            with gate_held(waiting):
                future = producer.send_async(b"x")
                pid = os.fork()
                if not pid:
                    code = 1
                    try:
                        is_failed = isinstance(future.exception(1), StoreClosed)
                        is_refused = isinstance(producer.send_async(b"y").exception(WAIT_S), StoreClosed)
                        code = 0 if is_failed and is_refused else 1
                    finally:
                        os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert future.result(WAIT_S)
            assert values(waiting) == [b"x"]

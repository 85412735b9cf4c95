"""The writer gate between processes: a timed, interruptible wait that names the holder (semantics section 1)."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from storage import Store
from storage.errors import TopicNotFound, WriterBusy
from tests.processes.child import Child, Children
from tests.row_json import row_json

AT_ONCE_S = 30.0
"""What "at once" may take on a machine that is busy with other things; a wait that nobody ended takes 60 s."""

HOLDER = """
    with Store.open(path) as store:
        from storage.topic import catalogue as topics

        def hold(batch):
            topics.create(batch, "held", topics.LedgerLimits())
            say("holding")
            hear()

        store.connection.write(hold)
        say("left")
        hear()
"""

SENDER = """
    def waiting(holder, waited):
        say("waiting", *holder.split())

    def open_and_send():
        with Store.open(path, lock_timeout=60, on_wait=waiting) as store:
            store.create_producer("t").send(b"after the wait")

    try:
        open_and_send()
    except KeyboardInterrupt:
        say("interrupted")
        hear()
        open_and_send()
    say("sent")
    hear()
"""


@pytest.fixture
def holder(children: Children) -> Child:
    """A process inside the writer gate, which leaves it when it is told something."""
    child = children.run(HOLDER)
    child.expect("holding")
    return child


def leave(holder: Child) -> None:
    holder.say("leave")
    holder.expect("left")


def change(path: str, **options: Any) -> None:
    """Open the store for writing, which takes the gate of a directory, and change it, which takes any gate."""
    with Store.open(path, **options) as store:
        store.create_topic("changed")


def test_a_stopped_holder_makes_writers_give_up_in_time_and_is_named(path: str, holder: Child):
    """A writer fails with WriterBusy after the timeout; the pid and that it is stopped are said, once."""
    notes: list[tuple[str, float]] = []
    holder.stop()
    began = time.monotonic()
    with pytest.raises(WriterBusy) as caught:
        change(path, lock_timeout=1.6, on_wait=lambda who, waited: notes.append((who, waited)))
    took = time.monotonic() - began
    assert 1.6 <= took < 1.6 + AT_ONCE_S
    assert f"process {holder.pid} " in caught.value.message and "stopped" in caught.value.message
    assert f"Continue the stopped process with `resume_process({holder.pid})`" in str(caught.value.hint)
    assert caught.value.details["holder"] in caught.value.message
    assert caught.value.message.isprintable(), "another process's command line is not to be trusted"
    assert (caught.value.exit_code, caught.value.retryable) == (5, True)
    assert len(notes) == 1
    who, waited = notes[0]
    assert f"process {holder.pid} " in who and "stopped" in who
    assert waited >= 1.0
    holder.resume()
    leave(holder)


def test_an_open_store_gives_up_in_time_too_and_goes_on_when_the_gate_is_free(path: str, children: Children):
    """A send behind the gate fails with WriterBusy and stores nothing; the same producer's next one is stored."""
    with Store.open(path, lock_timeout=0.3) as store:
        producer = store.create_producer("t")
        holder = children.run(HOLDER)
        holder.expect("holding")
        with pytest.raises(WriterBusy) as caught:
            producer.send(b"too early")
        assert str(holder.pid) in caught.value.message and "stopped" not in caught.value.message
        assert "stopped" not in str(caught.value.hint)
        leave(holder)
        producer.send(b"in time")
        assert [message.value for message in store.reader("t")] == [b"in time"]


def test_opening_may_be_repeated_in_the_process_in_which_it_was_refused(path: str, holder: Child):
    """WriterBusy at opening, or at the first change, leaves nothing open: the next attempt of the process succeeds."""
    with pytest.raises(WriterBusy) as caught:
        change(path, lock_timeout=0.05)
    leave(holder)
    with Store.open(path) as store:
        assert store.topics() == ["held", "t"]
    assert caught.value.__traceback__ is not None, "the frames of the refusal were alive meanwhile"


def test_reading_needs_no_gate(path: str, holder: Child):
    """A read-only opening neither waits for the gate nor sees what its holder has not committed."""
    with Store.open(path, read_only=True, lock_timeout=0.0) as store:
        assert store.topics() == ["t"]
        gate = [row for row in row_json(store.reports.list_locks()) if row["lock"] == "writer gate"]
        assert [(row["pid"], row["state"]) for row in gate] == [(holder.pid, "held")]
        holder.stop()
        gate = [row for row in row_json(store.reports.list_locks()) if row["lock"] == "writer gate"]
        assert [(row["pid"], row["state"]) for row in gate] == [(holder.pid, "stopped")]
        holder.resume()


def test_ctrl_c_ends_the_wait_at_once_and_leaves_nothing_behind(path: str, children: Children, holder: Child):
    """SIGINT during the wait raises KeyboardInterrupt; the process may write later, and others too."""
    waiter = children.run(SENDER)
    assert f"process {holder.pid} " in waiter.expect("waiting")
    began = time.monotonic()
    waiter.interrupt()
    waiter.expect("interrupted")
    assert time.monotonic() - began < AT_ONCE_S
    leave(holder)
    waiter.say("again")
    waiter.expect("sent")
    with Store.open(path) as store:
        assert [message.value for message in store.reader("t")] == [b"after the wait"]


def test_a_killed_holder_frees_the_gate_at_once_and_its_batch_is_gone(
    path: str, children: Children, holder: Child
):
    """kill -9 inside the gate: the waiting process gets in, and what the dead one had written is nowhere."""
    waiter = children.run(SENDER)
    waiter.expect("waiting")
    began = time.monotonic()
    holder.kill()
    waiter.expect("sent")
    assert time.monotonic() - began < AT_ONCE_S
    with Store.open(path, read_only=True) as store:
        assert store.topics() == ["t"]
        with pytest.raises(TopicNotFound):
            store.reports.topic_stats("held")


def test_a_killed_stopped_holder_frees_the_gate_at_once(path: str, children: Children, holder: Child):
    """A stopped process that is killed holds nothing any more."""
    waiter = children.run(SENDER)
    holder.stop()
    waiter.expect("waiting")
    holder.kill()
    waiter.expect("sent")


def test_threads_of_one_process_pass_the_gate_one_by_one(store: Store):
    """A thread waits for another one's batch, or gives up in time saying that it is a thread of this process."""
    inside, leave_it, order = threading.Event(), threading.Event(), []

    def hold(batch: object) -> None:
        inside.set()
        assert leave_it.wait(30)
        order.append("first")

    def send() -> None:
        store.create_producer("t").send(b"second")
        order.append("second")

    first = threading.Thread(target=lambda: store.connection.write(hold))
    first.start()
    assert inside.wait(30)
    with pytest.raises(WriterBusy, match="another thread of this process"):
        store.connection.write(lambda _: None, timeout_s=0.05)
    second = threading.Thread(target=send)
    second.start()
    leave_it.set()
    first.join(30)
    second.join(30)
    assert order == ["first", "second"]


def test_a_place_in_a_queue_is_given_back_when_the_gate_is_free_again(path: str, children: Children):
    """Who gives up waiting for a topic while the gate is held does not stay before the others: its next write leaves."""
    with Store.open(path) as store, Store.open(path) as patient:
        owner = store.create_producer("t", access_mode="Exclusive")
        holders: list[Child] = []

        def give_up(_: list[str]) -> None:
            holders.append(children.run(HOLDER))
            holders[0].expect("holding")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            patient.create_producer("t", access_mode="WaitForExclusive", on_wait=give_up)
        assert [row["isWaiting"] for row in row_json(store.reports.list_producers("t"))] == [False, True]
        leave(holders[0])
        patient.create_topic("elsewhere")
        assert [row["isWaiting"] for row in row_json(store.reports.list_producers("t"))] == [False]
        owner.close()

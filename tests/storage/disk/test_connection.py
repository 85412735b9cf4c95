"""Connections: handles of one process share an environment, have leases, and wait for commits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from storage import Store, TransactionState
from storage.disk.codec import key1, unpack
from storage.disk.schema import LEASES
from storage.disk.view import WriteBatch
from storage.errors import ProducerBusy, StoreClosed, StoreInvalid
from storage.process.clock import ManualClock
from storage.process.identity import ProcessIdentity


def test_handles_share_an_environment(path: str, clock: ManualClock) -> None:
    """Until the last is closed; LMDB opens a file once in a process."""
    first, second = Store.open(path, clock=clock), Store.open(path, clock=clock)
    shared = first.connection.environment
    assert second.connection.environment is shared
    first.close()
    first.close()
    assert second.topics() == []
    second.close()
    with Store.open(path, clock=clock) as third:
        assert third.connection.environment is not shared


def test_a_reader_becomes_a_writer_when_a_writer_comes(path: str, clock: ManualClock) -> None:
    """The environment is opened anew; the reader's handle still only reads."""
    with Store.open(path, read_only=True, clock=clock) as reader, Store.open(path, clock=clock) as writer:
        writer.create_topic("t")
        assert reader.topics() == ["t"]
        with pytest.raises(StoreInvalid, match="for reading only"):
            reader.create_topic("u")


def test_a_closed_handle_is_closed(path: str, clock: ManualClock) -> None:
    """Though another keeps the environment open."""
    with Store.open(path, clock=clock):
        handle = Store.open(path, clock=clock)
        handle.close()
        with pytest.raises(StoreClosed, match="is closed"):
            handle.create_topic("t")


class TestLeases:
    """The lease of a connection."""

    def lease(self, store: Store) -> int:
        return store.connection.write(store.connection.lease)

    def test_it_has_one_and_another_has_another(self, store: Store, path: str, clock: ManualClock) -> None:
        """The record names the process."""
        number = self.lease(store)
        assert self.lease(store) == number
        with Store.open(path, clock=clock) as second:
            assert self.lease(second) == number + 1
        with store.connection.view() as view:
            payload = view.get(LEASES, key1(number))
        assert payload is not None
        assert ProcessIdentity.of(unpack(payload)) == store.connection.identity

    def test_it_ends_with_the_connection(self, store: Store, path: str, clock: ManualClock) -> None:
        """Also in a process that lives on."""
        with Store.open(path, clock=clock) as second:
            number = self.lease(second)
            assert store.connection.environment.locks.leases.is_held(number)
        assert not store.connection.environment.locks.leases.is_held(number)

    def fail(self, store: Store) -> None:
        """Take the lease in a batch that comes to nothing."""

        def change(batch: WriteBatch) -> None:
            store.connection.lease(batch)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.connection.write(change)

    def recorded(self, store: Store) -> set[int]:
        """The leases that the store has records of."""
        with store.connection.view() as view:
            return {int.from_bytes(key, "big") for key in view.keys(LEASES)}

    def test_a_number_whose_commit_failed_stays_its_own(
        self, store: Store, path: str, clock: ManualClock
    ) -> None:
        """The next one who is given it finds it held, and goes on."""
        self.fail(store)
        with Store.open(path, clock=clock) as second:
            theirs = self.lease(second)
            assert self.lease(store) != theirs

    def test_the_next_batch_records_a_lease_whose_commit_failed(
        self, store: Store, path: str, clock: ManualClock
    ) -> None:
        """What hangs on the lease outlives the look of others for dead owners, and ends when the handle does."""
        with Store.open(path, clock=clock) as owner:
            self.fail(owner)
            assert self.recorded(store) == set()
            theirs = self.lease(store)
            producer = owner.create_producer("t", access_mode="Exclusive", producer_name="owner")
            assert self.recorded(store) == {theirs, self.lease(owner)}
            txn = owner.transaction()
            producer.send(b"1", txn=txn)
            txn.flush()
            clock.advance(2)
            with pytest.raises(ProducerBusy, match="owner"):
                store.create_producer("t")
            store.create_topic("u")
            producer.send(b"2", txn=txn)
            txn.commit()
            left = owner.transaction()
            producer.send(b"never shown", txn=left)
            left.flush()
        clock.advance(2)
        store.create_producer("t", access_mode="Exclusive").send(b"3")
        assert store.reports.show_transaction(left.id).row.state is TransactionState.ABORTED
        assert [message.value for message in store.reader("t")] == [b"1", b"2", b"3"]

    def test_a_lease_that_no_batch_recorded_leaves_nothing(
        self, store: Store, path: str, clock: ManualClock
    ) -> None:
        """A handle that closes after a refusal has no record, and the next process is given the number."""
        store.create_producer("t", access_mode="Exclusive")
        mine = self.lease(store)
        with Store.open(path, clock=clock) as refused:
            for _ in range(2):
                with pytest.raises(ProducerBusy):
                    refused.create_producer("t")
            assert store.connection.environment.locks.leases.is_held(mine + 1)
        assert self.recorded(store) == {mine}
        with Store.open(path, clock=clock) as next_one:
            assert self.lease(next_one) == mine + 1


class TestWaiting:
    """`wait_for_commit`."""

    def test_nothing_new_is_waited_for_to_the_end(self, store: Store, clock: ManualClock) -> None:
        """By the boot clock."""
        seen, until_ns = store.connection.environment.last_commit(), clock.boot_ns() + 10**9
        assert not store.connection.wait_for_commit(seen, until_ns)
        assert until_ns <= clock.boot_ns() < until_ns + 10**8

    def test_a_commit_ends_it(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """At the next look; one that is there already, at once."""
        seen = store.connection.environment.last_commit()
        sleeps: list[float] = []

        def sleep(address: int, seen: int, seconds: float) -> bool:
            sleeps.append(seconds)
            if len(sleeps) == 3:
                store.create_topic("later")
            return len(sleeps) == 3

        monkeypatch.setattr(ManualClock, "sleep_on_word", lambda self, *word: sleep(*word))
        monkeypatch.setattr(ManualClock, "sleep_on_input", lambda self, *wait: sleep(0, 0, wait[1]))
        assert store.connection.wait_for_commit(seen, 1 << 62)
        assert len(sleeps) == 3
        assert store.connection.wait_for_commit(seen, 0)


def test_a_change_that_may_wait_is_made_before_the_next(store: Store) -> None:
    """Where the gate is not free; by the same connection."""
    done: list[str] = []
    held, free = threading.Event(), threading.Event()

    def hold(batch: WriteBatch) -> None:
        held.set()
        free.wait(30)

    def note(name: str) -> Callable[[WriteBatch], None]:
        return lambda batch: done.append(name)

    thread = threading.Thread(target=store.connection.write, args=(hold,))
    thread.start()
    held.wait(30)
    store.connection.write_sometime(note("late"), 0.01)
    assert done == []
    free.set()
    thread.join()
    store.connection.write(note("next"))
    assert done == ["late", "next"]
    store.connection.write_sometime(note("at once"), 1)
    assert done[-1] == "at once"

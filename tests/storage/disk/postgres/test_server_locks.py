"""Leases and open timestamps live as long as the session of their process."""

from __future__ import annotations

import os

import pytest

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.gate import GateWait
from storage.disk.postgres.server_locks import ServerLeases, SharedLeases
from storage.disk.postgres.session import Session
from storage.disk.schema import STORE
from storage.disk.view import WriteBatch
from storage.errors import StoreInvalid
from storage.process.clock import SYSTEM_CLOCK
from storage.process.identity import this_process
from tests.storage.disk.postgres.conftest import connected

CLASS = 77


def leases(session: Session) -> ServerLeases:
    """Leases that one session takes and drops."""

    def send() -> None:
        steps = own.steps(CLASS)
        session.run_steps(steps)
        own.note_sent(steps)

    own = SharedLeases(send)
    return ServerLeases(session, CLASS, own)


def test_a_lease_is_held_by_one_process(url: str, session: Session) -> None:
    """And is free when its session ends, for those that ask again."""
    second = connected(url)
    own, others = leases(session), leases(second)
    assert others.hold(5)
    assert not own.hold(5)
    assert own.is_held(5)
    second.close()
    until_ns = SYSTEM_CLOCK.boot_ns() + 10 * 10**9
    while own.is_held(5) and SYSTEM_CLOCK.boot_ns() < until_ns:
        own.forget()  # The server ends a session behind its close.
    assert own.hold(5)


def test_a_handle_that_is_closed_frees_its_lease_in_a_process_that_goes_on(url: str, store: Store) -> None:
    """The session of batches took the lease, and drops it, though the handle asks the session of views."""
    with Store.open(url) as second:
        lease = second.connection.write(second.connection.lease)
        assert store.connection.environment.locks.leases.is_held(lease)
    with store.connection.view():
        assert not store.connection.environment.locks.leases.is_held(lease)


def test_an_answer_is_kept_until_the_next_view_or_batch(url: str, session: Session) -> None:
    """A lease that a record names was taken before the record was committed."""
    own = leases(session)
    assert not own.is_held(6)
    second = connected(url)
    assert leases(second).hold(6)
    assert not own.is_held(6)
    own.forget()
    assert own.is_held(6)
    second.close()


def test_the_state_of_a_holder_is_proven(session: Session) -> None:
    """By the lock alone; only a process of this host can be seen to be stopped."""
    own, process = leases(session), this_process(SYSTEM_CLOCK)
    assert own.state_of(7, process, process.boot_id) == "dead"
    assert own.hold(7)
    assert own.state_of(7, process, process.boot_id) == "alive"
    own.drop(7)
    assert own.state_of(7, process, process.boot_id) == "dead"
    assert os.getpid() == process.pid


class TestTimestamps:
    """Timestamps of transactions that have no record."""

    @pytest.fixture
    def held(self, store: Store, environment: PostgresEnvironment) -> int:
        """A timestamp that this process holds."""
        store.create_table("t")
        with store.transaction() as first:
            store.table("t").put(b"k", b"v", txn=first)
        with environment.gate(GateWait(5, None)) as passed:
            environment.timestamps.hold(1000, environment.clock.boot_ns() + 10**12)
            environment._end_unflushed(passed)
        return 1000

    def test_a_release_that_waits_to_be_sent_hides_no_other_process(
        self, url: str, environment: PostgresEnvironment, held: int
    ) -> None:
        """A version above the timestamp of the other process is not final, as it may write there."""
        other = PostgresEnvironment(url, SYSTEM_CLOCK, read_only=False)
        try:
            with other.gate(GateWait(5, None)) as passed:
                other.timestamps.hold(held + 500, other.clock.boot_ns() + 10**12)
                other._end_unflushed(passed)
            with environment._using_batches(GateWait(5, None)):
                environment.timestamps.release(held)
                assert environment.timestamps.has_released
                assert environment.timestamps.lowest(held + 1000) == held + 500
        finally:
            other.close()

    def test_a_release_under_way_holds_nothing_in_this_process(
        self, environment: PostgresEnvironment, held: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A process that has put a row finds the version of the row final at once, before the server has the release."""
        monkeypatch.setattr(Session, "post", lambda self, steps: None)
        environment.timestamps.release(held)
        assert environment.timestamps.lowest(held) is None

    def test_a_release_in_a_batch_that_another_commit_overtakes(
        self, url: str, environment: PostgresEnvironment, held: int
    ) -> None:
        """The refused batch takes its steps back; the batch that is made again sends them once more."""

        def change(batch: WriteBatch) -> None:
            environment.timestamps.release(held)
            batch.superblock.changes += 1

        def alone(batch: WriteBatch) -> None:
            batch.superblock.changes += 1

        other = PostgresEnvironment(url, SYSTEM_CLOCK, read_only=False)
        try:
            for writer in (environment.writer, environment.writer, other.writer):
                writer.write(alone)
            environment.writer.write(change)
            assert not environment.timestamps.has_released
            assert other.timestamps.lowest(held) is None
        finally:
            other.close()

    def test_a_release_in_a_batch_that_fails(
        self, environment: PostgresEnvironment, held: int, session: Session
    ) -> None:
        """It is sent behind the batch."""

        def change(batch: WriteBatch) -> None:
            environment.timestamps.release(held)
            batch.put(STORE, os.urandom(10_000), b"")  # longer than an index takes

        with pytest.raises(StoreInvalid):
            environment.writer.write(change)
        environment._batches.run_steps(())
        count = (b"count_open", b"SELECT count(*)::int8 FROM open_timestamps WHERE ts = 1000")
        assert session.run_steps(((count, ()),)) == [[(bytes(8),)]]

    def test_the_lowest_of_all_processes_is_found(self, environment: PostgresEnvironment, held: int) -> None:
        """Up to a bound."""
        assert environment.timestamps.lowest(held) == held
        assert environment.timestamps.lowest(held - 1) is None

    def test_a_release_is_seen_by_others_at_once(
        self, environment: PostgresEnvironment, held: int, session: Session
    ) -> None:
        """The row is gone without a further commit."""
        count = (b"count_open", b"SELECT count(*)::int8 FROM open_timestamps WHERE ts = 1000")
        assert session.run_steps(((count, ()),)) == [[((1).to_bytes(8, "big"),)]]
        environment.timestamps.release(held)
        environment._batches.run_steps(())
        assert session.run_steps(((count, ()),)) == [[(bytes(8),)]]
        assert environment.timestamps.lowest(held) is None

    def test_rows_of_a_dead_process_do_not_count(
        self, environment: PostgresEnvironment, session: Session
    ) -> None:
        """Their presence is locked by no session."""
        session.run_steps((((b"dead", b"INSERT INTO open_timestamps VALUES (500, 123456)"), ()),))
        assert environment.timestamps.lowest(10**18) is None

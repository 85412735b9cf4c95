"""One session is in the writer gate at a time; who waits is told the holder."""

from __future__ import annotations

import time

import pytest

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.gate import GATE_IDLE_S, GateWait
from storage.disk.postgres.layout import LOCK_GATE
from storage.disk.postgres.session import BEGIN, ROLLBACK, Session
from storage.errors import WriterBusy
from storage.limits import LOCK_TIMEOUT_S


def test_a_held_gate_is_refused_with_its_holder(
    store: Store, environment: PostgresEnvironment, session: Session
) -> None:
    """After the lock timeout; the same handle goes on when the gate is free."""
    session.run_steps(((BEGIN, ()), (LOCK_GATE, (environment.lock_class,))))
    told: list[str] = []
    with pytest.raises(WriterBusy, match="process 1 on test") as busy:
        environment.writer.write(
            lambda batch: None, timeout_s=1.5, on_wait=lambda holder, waited_s: told.append(holder)
        )
    assert busy.value.details["holder"] == told[0] == "process 1 on test"
    held = environment.gate_holder()
    assert held is not None
    assert (held.pid, held.state) == (1, "held")
    session.run_steps(((ROLLBACK, ()),))
    assert environment.gate_holder() is None
    store.create_topic("t")


def test_a_stopped_holder_is_ended_before_others_give_up(environment: PostgresEnvironment) -> None:
    """The server ends a silent client inside the gate a second before the default lock timeout."""
    show = (b"show", b"SHOW idle_in_transaction_session_timeout")
    assert environment._batches.run_steps(((show, ()),)) == [[(b"4s",)]]
    assert GATE_IDLE_S == LOCK_TIMEOUT_S - 1 == 4


def test_a_pass_without_a_commit_changes_nothing(environment: PostgresEnvironment) -> None:
    """And leaves the gate."""
    before = environment.last_commit()
    with environment.gate(GateWait(5, None)) as passed:
        assert passed.number == before
        assert passed.superblock().commits >= 0
    # The end of the pass is sent without a wait for the answer.
    until = time.monotonic() + 10
    while environment.gate_holder() is not None:
        assert time.monotonic() < until
    assert environment.last_commit() == before

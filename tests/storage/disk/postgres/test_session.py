"""Steps go in one round trip, errors leave the session usable, and interrupts end a wait."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from urllib.parse import quote

import pytest

from storage.disk.environment import HolderProcess
from storage.disk.postgres.binary import as_int, int8
from storage.disk.postgres.session import BEGIN, ROLLBACK, Overtaken, Session, Statement
from storage.errors import ServerLost, StoreInvalid, WriterBusy
from tests.postgres_cluster import Cluster
from tests.storage.disk.postgres.conftest import connected

ONE: Statement = (b"one", b"SELECT $1::int8 + 1")
FAILS: Statement = (b"fails", b"SELECT 1 / (1 - $1::int8)")
LOCKS: Statement = (b"locks", b"SELECT pg_advisory_lock(77)")
NAPS: Statement = (b"naps", b"SELECT pg_sleep(2.5)")
BLINKS: Statement = (b"blinks", b"SELECT pg_sleep(0.002)")
SLEEPS: Statement = (b"sleeps", b"SELECT pg_sleep(30)")
PID: Statement = (b"pid", b"SELECT pg_backend_pid()")
RAISES: Statement = (
    b"raises",
    b"DO $do$ BEGIN RAISE EXCEPTION 'another' USING ERRCODE = 'TX001'; END $do$",
)


def numbers(session: Session, *values: int) -> list[int]:
    """Each number plus one, by the server."""
    results = session.run_steps([(ONE, (int8(value),)) for value in values])
    return [as_int(rows[0][0]) for rows in results]


def test_results_come_in_the_order_of_steps(session: Session) -> None:
    """Each step has its rows, also where its statement was prepared by the way."""
    assert numbers(session, 1, 5, -3) == [2, 6, -2]


def test_a_failed_step_skips_the_rest_and_leaves_the_session_usable(session: Session) -> None:
    """Statements that the error has skipped are prepared at their next use."""
    with pytest.raises(StoreInvalid, match="division by zero"):
        session.run_steps(((FAILS, (int8(1),)), (ONE, (int8(1),))))
    assert numbers(session, 1) == [2]


def test_a_failed_transaction_is_rolled_back_by_its_caller(session: Session) -> None:
    """Also where statements fail within it that were new."""
    with pytest.raises(StoreInvalid):
        session.run_steps(((BEGIN, ()), (FAILS, (int8(1),))))
    session.post(((ROLLBACK, ()),))
    assert numbers(session, 1) == [2]
    assert session.run_steps(((BEGIN, ()), (FAILS, (int8(0),)), (ROLLBACK, ())))[1] == [(int8(1),)]


def test_posted_steps_are_run_and_their_errors_dropped(session: Session) -> None:
    """The next call reads their results first."""
    session.post(((FAILS, (int8(1),)),))
    session.post(((ONE, (int8(1),)),))
    assert numbers(session, 7) == [8]


def test_a_time_limit_cancels_steps_that_wait_for_a_lock(url: str, session: Session) -> None:
    """The caller hears of the wait and the holder once, and the session goes on."""
    holding = connected(url)
    holding.run_steps(((LOCKS, ()),))
    told: list[HolderProcess | None] = []
    with pytest.raises(WriterBusy, match="process 1 on test") as busy:
        session.run_steps(
            ((LOCKS, ()),),
            timeout_s=0.4,
            on_slow=lambda _waited_s, holder: told.append(holder),
            slow_s=0.1,
        )
    assert [holder and holder.holder for holder in told] == [busy.value.details["holder"]]
    assert numbers(session, 1) == [2]
    holding.close()


def test_steps_that_the_server_works_on_go_on(session: Session) -> None:
    """The limit is over many times before the step ends."""
    assert len(session.run_steps(((NAPS, ()),), timeout_s=0.1, may_cancel=True)[0]) == 1


def test_an_answer_that_comes_during_the_question_ends_the_wait(session: Session) -> None:
    """A limit of nothing asks at once, and the step is over before the server says that it works."""
    assert len(session.run_steps(((BLINKS, ()),), timeout_s=0, may_cancel=True)[0]) == 1


@contextmanager
def acting_in_a_wait(cluster: Cluster, session: Session, act: Callable[[], object]) -> Iterator[None]:
    """Act from another thread once the server is at the step that sleeps."""
    asleep = f"SELECT wait_event FROM pg_stat_activity WHERE pid = {session.server_pid}"
    thread = threading.Thread(target=lambda: (cluster.wait_until(asleep, "PgSleep"), act()))
    thread.start()
    yield
    thread.join()


def test_an_interrupt_ends_a_wait(session: Session, postgres_cluster: Cluster) -> None:
    """Ctrl-C is raised at once, and the session goes on."""
    interrupting = acting_in_a_wait(postgres_cluster, session, lambda: os.kill(os.getpid(), signal.SIGINT))
    with interrupting, pytest.raises(KeyboardInterrupt):
        session.run_steps(((SLEEPS, ()),))
    assert numbers(session, 1) == [2]


def test_a_step_that_the_operator_cancels(session: Session, postgres_cluster: Cluster) -> None:
    """Nobody here has set a time limit: the error is one of ours, and the session goes on."""
    cancel = f"SELECT pg_cancel_backend({session.server_pid})"
    canceling = acting_in_a_wait(postgres_cluster, session, lambda: postgres_cluster.psql(cancel))
    with canceling, pytest.raises(StoreInvalid, match="canceled"):
        session.run_steps(((SLEEPS, ()),))
    assert numbers(session, 1) == [2]


def test_another_commit_first_is_told_apart(session: Session) -> None:
    """By the state that the function `apply` raises."""
    with pytest.raises(Overtaken):
        session.run_steps(((RAISES, ()),))


def test_a_lost_connection_fails_every_later_call(url: str, postgres_cluster: Cluster) -> None:
    """Its locks are gone with it."""
    session = connected(url)
    ((row,),) = session.run_steps(((PID, ()),))
    assert postgres_cluster.psql(f"SELECT pg_terminate_backend({as_int(row[0])})") == "t"
    for _ in range(2):
        with pytest.raises(ServerLost, match="was lost"):
            numbers(session, 1)
    session.close()


def test_notifications_are_counted(url: str, session: Session) -> None:
    """Those that come with other results too."""
    second = connected(url)
    session.run_steps((((b"listen", b"LISTEN here"), ()),))
    before = session.count_notifications()
    second.run_steps((((b"notify", b"NOTIFY here"), ()),))
    numbers(session, 1)
    assert session.count_notifications() == before + 1
    second.close()


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_steps_see_what_is_committed_whatever_the_level_of_the_role(url: str, level: str) -> None:
    """`apply` takes the gate and then compares commits: at these levels it would compare those before the gate."""
    chosen = quote(f"-c default_transaction_isolation={level}".replace("e r", "e\\ r"))
    with closing(connected(f"{url}&options={chosen}")) as session:
        ((row,),) = session.run_steps((((b"level", b"SELECT current_setting('transaction_isolation')"), ()),))
        assert row == (b"read committed",)

"""An interrupt (Ctrl-C) at any point of a step leaves the session usable, and no later step takes over what is left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from storage.disk.postgres import session as module
from storage.disk.postgres.binary import as_int, int8
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.session import BEGIN, COMMIT, Session, Statement
from storage.disk.schema import STORE
from storage.disk.view import WriteBatch
from storage.process.clock import SYSTEM_CLOCK

ONE: Statement = (b"one", b"SELECT $1::int8 + 1")
OTHER: Statement = (b"other", b"SELECT $1::int8 + 2")
KEY = b"of the test"
LINES_MAX = 2000


@contextmanager
def _interrupted(nth: int) -> Iterator[list[int]]:
    """Within the block, the n-th line of the session's module raises KeyboardInterrupt; the list has the line then."""
    left, hit = nth, list[int]()

    def trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        nonlocal left
        if frame.f_code.co_filename != module.__file__:
            return None
        if event == "line" and not hit:
            left -= 1
            if left == 0:
                hit.append(frame.f_lineno)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield hit
    finally:
        sys.settrace(before)


def _use(session: Session) -> None:
    """A transaction of the server, with a step that is posted and statements that are prepared on the way."""
    session.run_steps(((BEGIN, ()), (ONE, (int8(1),))))
    session.run_steps(((OTHER, (int8(1),)),))
    session.post(((COMMIT, ()),))


def test_at_every_line(session: Session) -> None:
    """The next steps have their own results, and are in no transaction that the interrupt has left open."""
    for nth in range(1, LINES_MAX):
        try:
            with _interrupted(nth) as hit:
                _use(session)
        except KeyboardInterrupt:
            pass
        if not hit:
            break
        session.end_left_open()
        assert session.failed is None, hit
        rows = session.run_steps([(statement, (int8(10 * nth),)) for statement in (ONE, OTHER)])
        assert [as_int(found[0][0]) for found in rows] == [10 * nth + 1, 10 * nth + 2], hit
        assert session._conn.transaction_status == module.pq.TransactionStatus.IDLE, hit
    assert 100 < nth < LINES_MAX


def _number(batch: WriteBatch) -> int:
    return len(bytes(batch.get(STORE, KEY) or b""))


def test_views_and_batches_behind_an_interrupt(url: str, environment: PostgresEnvironment) -> None:
    """Wherever it came, each further view and batch shows what another process has committed since."""
    other = PostgresEnvironment(url, SYSTEM_CLOCK, read_only=False)

    def grow(batch: WriteBatch) -> int:
        batch.put(STORE, KEY, bytes(_number(batch) + 1))
        return _number(batch)

    def use() -> None:
        with environment.view() as view:
            view.get(STORE, KEY + b"?")
        environment.writer.write(grow)

    try:
        for nth in range(1, LINES_MAX, 7):
            try:
                with _interrupted(nth) as hit:
                    use()
            except KeyboardInterrupt:
                pass
            stored = other.writer.write(grow)
            with environment.view() as view:
                assert len(bytes(view.get(STORE, KEY) or b"")) == stored, hit
            assert environment.writer.write(grow) == stored + 1, hit
            if not hit:
                break
        assert 100 < nth < LINES_MAX
        other.writer.write(lambda batch: batch.delete(STORE, KEY))
    finally:
        other.close()

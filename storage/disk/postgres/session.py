"""One connection to a server: steps are sent in a pipeline, one round trip for all of them.

Holds: no call blocks inside libpq. Each wait is a poll of the socket, so that an interrupt (Ctrl-C) ends it. After a
lost connection every later call fails. libpq is called without cursors (`psycopg.pq`), so a step costs some ten
microseconds.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Sequence
from typing import Any, Final

from psycopg import pq

from storage.disk.postgres.server_errors import lost, refused, unreachable
from storage.disk.postgres.url import StoreUrl
from storage.process.clock import Clock

Statement = tuple[bytes, bytes]
"""The name under which a session prepares a statement, and its text; all parameters and results are binary."""

Step = tuple[Statement, Sequence[bytes | None]]
Row = tuple[bytes | None, ...]

BEGIN: Final[Statement] = (b"begin", b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
BEGIN_VIEW: Final[Statement] = (b"begin_view", b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
COMMIT: Final[Statement] = (b"commit", b"COMMIT")
ROLLBACK: Final[Statement] = (b"rollback", b"ROLLBACK")

CONNECT_S: Final = 10.0
_CANCELED: Final = b"57014"
_OVERTAKEN: Final = b"TX001"
"""Raised by the function `apply` of a store; see `layout.py`."""
_DRAIN_S: Final = 1.0
_SYNC_REP: Final = b"SyncRepWaitForLSN"
_KEEPALIVE: Final = {
    "keepalives": "1", "keepalives_idle": "3", "keepalives_interval": "1", "keepalives_count": "3",
    "tcp_user_timeout": "5000",
}  # fmt: skip
_SETTINGS: Final = (
    "tcp_keepalives_idle=3", "tcp_keepalives_interval=1", "tcp_keepalives_count=3", "tcp_user_timeout=5000",
    "idle_in_transaction_session_timeout=10000", "statement_timeout=0", "lock_timeout=0",
    "client_min_messages=warning", "jit=off", "plan_cache_mode=force_generic_plan", "synchronous_commit=on",
)  # fmt: skip
_FORMATS: Final = tuple([1] * count for count in range(32))


class StepCanceled(Exception):
    """The server ended a step on our request, after a time limit; the session stays usable."""


class Overtaken(Exception):
    """Another commit came before the one that a step would have stored."""


class Session:
    """See the module. Used by one thread at a time.

    Attributes:
        failed: why the session is no longer usable; None while it is usable.
        is_local_only: whether the last pipeline committed without the synchronous standby.
        notifications: how many notifications have come in all.
    """

    __slots__ = (
        "_clock",
        "_conn",
        "_poll",
        "_posted",
        "_prepared",
        "failed",
        "is_local_only",
        "notifications",
        "shown",
    )

    def __init__(self, conn: Any, clock: Clock, shown: str) -> None:
        self._conn = conn
        self._clock = clock
        self.shown = shown
        self.failed: str | None = None
        self.is_local_only = False
        self.notifications = 0
        self._posted = 0
        self._prepared: set[bytes] = set()
        self._poll = select.poll()
        self._poll.register(conn.socket, select.POLLIN)
        conn.notice_handler = self._take_notice
        conn.notify_handler = None

    @classmethod
    def connect(
        cls, url: StoreUrl, clock: Clock, *, application: str, timeout_s: float = CONNECT_S
    ) -> Session:
        """Connect to the server, and prepare the session.

        Raises:
            ServerUnreachable, NotPermitted, StoreNotFound
        """
        conn = _connected(url, clock, application, timeout_s)
        try:
            conn.nonblocking = 1
            session = cls(conn, clock, url.shown)
            session.execute(
                "; ".join(f"SET {setting}" for setting in (*_SETTINGS, f'search_path="{url.store}"'))
            )
            conn.enter_pipeline_mode()
        except BaseException:
            conn.finish()
            raise
        return session

    @property
    def descriptor(self) -> int:
        """The socket, for a wait on several sessions."""
        return int(self._conn.socket)

    @property
    def server_pid(self) -> int:
        return int(self._conn.backend_pid)

    # Running

    def run(
        self,
        steps: Sequence[Step],
        *,
        timeout_s: float | None = None,
        on_slow: Callable[[float], None] | None = None,
        slow_s: float = 1.0,
    ) -> list[list[Row]]:
        """Run steps in one round trip, and return the rows of each.

        After an error the rest of the steps is skipped; a transaction that is open then has failed.

        Args:
            timeout_s: cancel the steps after this long.
            on_slow: called once after `slow_s`, with the seconds waited.

        Raises:
            StepCanceled: by `timeout_s`.
            ServerLost: the connection was lost; whether the steps were done is not known.
            StoreFull, NotPermitted, CorruptStore, StoreInvalid
        """
        self._check()
        if self._posted:
            self._drain_posted()
        self.is_local_only = False
        kinds = self._send(steps)
        try:
            if timeout_s is not None or on_slow is not None:
                self._wait_long(timeout_s, on_slow, slow_s)
            return self._results(kinds)
        except pq_error() as error:
            raise self._lose(error) from error
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            self._cancel_and_drain()
            raise

    def post(self, steps: Sequence[Step]) -> None:
        """Send steps without a wait; results and errors are dropped before the next steps."""
        self._check()
        if self._posted:
            self._drain_posted()
        self._send(steps)
        self._posted += 1

    def execute(self, text: str) -> list[Row]:
        """Run text of one or more statements outside of pipelines, for making a store; return the rows of the last.

        Raises:
            as `run`
        """
        self._check()
        if self._posted:
            self._drain_posted()
        conn, rows, error = self._conn, list[Row](), None
        was_pipeline = conn.pipeline_status == pq.PipelineStatus.ON
        try:
            if was_pipeline:
                conn.exit_pipeline_mode()
            conn.send_query(text.encode())
            self._flush()
            while (result := self._next()) is not None:
                if result.status == pq.ExecStatus.FATAL_ERROR:
                    error = error or result
                else:
                    rows = _rows(result)
            if was_pipeline:
                conn.enter_pipeline_mode()
        except pq_error() as problem:
            raise self._lose(problem) from problem
        if error is not None:
            raise self._error(error)
        return rows

    def count_notifications(self) -> int:
        """Read what has come in without a wait, and return how many notifications have come in all."""
        self._check()
        try:
            if self._posted:
                self._drain_posted()
            self._conn.consume_input()
            self._take_notifications()
        except pq_error() as error:
            raise self._lose(error) from error
        return self.notifications

    def close(self) -> None:
        """End the session, which drops its locks."""
        if self.failed is None:
            self.failed = "the session is closed"
        self._conn.finish()

    def close_in_child(self) -> None:
        """In the child of a fork, close the socket alone: the session is the parent's."""
        self.failed = "the session belongs to the parent of this process"
        try:
            os.close(self._conn.socket)
        except (OSError, pq_error()):
            return

    # Sending and receiving

    def _check(self) -> None:
        if self.failed is not None:
            raise lost(self.shown, self.failed)

    def _send(self, steps: Sequence[Step]) -> list[bool]:
        """Send steps and a sync; return for each result that will come whether it is of a step."""
        conn, kinds, known = self._conn, [], self._prepared
        try:
            for (name, text), parameters in steps:
                if name not in known:
                    conn.send_prepare(name, text)
                    kinds.append(False)
                    known.add(name)
                conn.send_query_prepared(name, parameters, _FORMATS[len(parameters)], 1)
                kinds.append(True)
            conn.pipeline_sync()
            self._flush()
        except pq_error() as error:
            raise self._lose(error) from error
        return kinds

    def _flush(self) -> None:
        conn = self._conn
        while conn.flush():
            self._poll.modify(conn.socket, select.POLLIN | select.POLLOUT)
            self._poll.poll()
            self._poll.modify(conn.socket, select.POLLIN)
            conn.consume_input()

    def _results(self, kinds: Sequence[bool]) -> list[list[Row]]:
        """The rows of each step up to the sync; the first error is raised behind the sync."""
        rows: list[list[Row]] = []
        failed: Any = None
        for is_step in kinds:
            while (result := self._next()) is not None:
                if result.status == pq.ExecStatus.FATAL_ERROR:
                    failed = failed or result
                elif result.status != pq.ExecStatus.PIPELINE_ABORTED and is_step:
                    rows.append(_rows(result))
        while (result := self._next()) is None or result.status != pq.ExecStatus.PIPELINE_SYNC:
            if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
                failed = failed or result  # of the commit, which the sync makes where no step does
            if self._conn.status == pq.ConnStatus.BAD:
                break
        if self._conn.status == pq.ConnStatus.BAD:
            raise self._lose(failed)
        self._take_notifications()
        if failed is not None:
            # Statements whose preparation the error skipped are prepared again; a name that exists is no harm to find.
            self._forget_prepared()
            raise self._error(failed)
        return rows

    def _next(self) -> Any:
        conn = self._conn
        while conn.is_busy():
            self._poll.poll()
            conn.consume_input()
        return conn.get_result()

    def _wait_long(
        self, timeout_s: float | None, on_slow: Callable[[float], None] | None, slow_s: float
    ) -> None:
        """Wait until the first result is there, and cancel the steps at the end of the time."""
        conn, clock = self._conn, self._clock
        began_ns = clock.boot_ns()
        while conn.is_busy():
            waited_s = (clock.boot_ns() - began_ns) / 1e9
            if on_slow is not None and waited_s >= slow_s:
                on_slow(waited_s)
                on_slow = None
            if timeout_s is not None and waited_s >= timeout_s:
                self._cancel()
                timeout_s = None
            ends = [end - waited_s for end in (timeout_s, slow_s if on_slow else None) if end is not None]
            self._poll.poll(max(0.0, min(ends)) * 1000 + 1 if ends else None)
            conn.consume_input()

    def _drain_posted(self) -> None:
        """Read the results of posted steps, up to their syncs."""
        try:
            while self._posted:
                result = self._next()
                if result is not None and result.status == pq.ExecStatus.PIPELINE_SYNC:
                    self._posted -= 1
                elif result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
                    self._forget_prepared()
                    if self._conn.status == pq.ConnStatus.BAD:
                        raise self._lose(result)
            self._take_notifications()
        except pq_error() as error:
            raise self._lose(error) from error

    def _forget_prepared(self) -> None:
        """After an error no statement is known to be prepared: deallocate all."""
        self._prepared.clear()
        conn = self._conn
        conn.send_query_params(b"DEALLOCATE ALL", None)
        conn.pipeline_sync()
        self._flush()
        for _ in range(3):
            self._next()

    def _take_notifications(self) -> None:
        while self._conn.notifies() is not None:
            self.notifications += 1

    def _take_notice(self, notice: Any) -> None:
        if notice.error_field(pq.DiagnosticField.SOURCE_FUNCTION) == _SYNC_REP:
            self.is_local_only = True

    # Ending

    def _cancel(self) -> None:
        try:
            self._conn.get_cancel().cancel()
        except pq_error():
            return

    def _cancel_and_drain(self) -> None:
        """After an interrupt, end the steps and bring the session back to a sync, or give the session up."""
        self._cancel()
        until_ns = self._clock.boot_ns() + int(_DRAIN_S * 1e9)
        conn = self._conn
        try:
            while self._clock.boot_ns() < until_ns:
                if conn.is_busy():
                    self._poll.poll(50)
                    conn.consume_input()
                    continue
                result = conn.get_result()
                if result is not None and result.status == pq.ExecStatus.PIPELINE_SYNC:
                    self._forget_prepared()
                    return
        except pq_error():
            pass
        self.failed = "a step was interrupted, and did not end"

    def _lose(self, error: Any) -> Exception:
        text = getattr(error, "error_message", None) or str(
            error or self._conn.error_message.decode(errors="replace")
        )
        self.failed = text.strip().splitlines()[0] if text.strip() else "the server closed the connection"
        return lost(self.shown, self.failed)

    def _error(self, result: Any) -> Exception:
        state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
        message = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode(errors="replace")
        if state == _CANCELED:
            return StepCanceled(message)
        if state == _OVERTAKEN:
            return Overtaken(message)
        if state[:2] in (b"57", b"08") or self._conn.status == pq.ConnStatus.BAD:
            self.failed = message
            return lost(self.shown, message)
        return refused(self.shown, state.decode("ascii", "replace"), message)


def pq_error() -> type[Exception]:
    """The error of libpq's own calls."""
    from psycopg import OperationalError

    return OperationalError


def _rows(result: Any) -> list[Row]:
    count, columns = result.ntuples, range(result.nfields)
    get = result.get_value
    return [tuple([get(row, column) for column in columns]) for row in range(count)]


def _connected(url: StoreUrl, clock: Clock, application: str, timeout_s: float) -> Any:
    """A connection of libpq, made without blocking.

    Raises:
        ServerUnreachable, NotPermitted, StoreNotFound
    """
    from urllib.parse import quote

    conninfo = url.conninfo
    for name, value in {**_KEEPALIVE, "application_name": application}.items():
        if f"{name}=" not in conninfo:
            conninfo += f"&{name}={quote(value)}"
    until_ns = clock.boot_ns() + int(timeout_s * 1e9)
    conn = pq.PGconn.connect_start(conninfo.encode())
    try:
        while True:
            status = conn.connect_poll()
            if status == pq.PollingStatus.OK:
                return conn
            if status == pq.PollingStatus.FAILED:
                raise unreachable(url.shown, conn.error_message.decode(errors="replace"))
            waiting = select.poll()
            waiting.register(
                conn.socket, select.POLLIN if status == pq.PollingStatus.READING else select.POLLOUT
            )
            left_s = (until_ns - clock.boot_ns()) / 1e9
            if left_s <= 0:
                raise unreachable(url.shown, f"no answer within {timeout_s:g} s")
            waiting.poll(min(left_s, 1.0) * 1000)
    except BaseException:
        conn.finish()
        raise

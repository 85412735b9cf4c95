"""One connection to a server: steps are sent in a pipeline, one round trip for all of them.

Holds: no call blocks inside libpq. Each wait is a poll of the socket, so that an interrupt (Ctrl-C) ends it, with the
session's limit. Input begins the limit anew; at its end the server is asked why nothing comes (`stall`). Steps that
wait for a lock are canceled, steps that the server works on go on; without an answer the connection is lost. After an
interrupt the session is *torn*: libpq alone knows which results are still to come. Then the next call drops all of them
first, so that no step takes over the results of another one. After a lost connection every later call fails. libpq is
called without cursors (`psycopg.pq`), so a step costs some ten microseconds.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from psycopg import NotSupportedError, pq

from storage.disk.environment import HolderProcess
from storage.disk.postgres import stall as stalls
from storage.disk.postgres.connecting import CONNECT_S, connected
from storage.disk.postgres.server_errors import (
    behind_pooler,
    busy,
    canceled,
    lost,
    reads_only,
    refused,
    unreachable,
)
from storage.disk.postgres.url import StoreUrl
from storage.errors import ServerLost
from storage.limits import LOCK_TIMEOUT_S
from storage.process.clock import SYSTEM_CLOCK, Clock

Statement = tuple[bytes, bytes]
"""The name under which a session prepares a statement, and its text; all parameters and results are binary."""

Kinds = list[bytes | None]
"""Of each result that a pipeline will bring: the name of the statement that it prepares; None for a step."""

Step = tuple[Statement, Sequence[bytes | None]]
Row = tuple[bytes | None, ...]

OnSlow = Callable[[float, HolderProcess | None], None]

BEGIN: Final[Statement] = (b"begin", b"BEGIN ISOLATION LEVEL READ COMMITTED")
BEGIN_VIEW: Final[Statement] = (b"begin_view", b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
COMMIT: Final[Statement] = (b"commit", b"COMMIT")
ROLLBACK: Final[Statement] = (b"rollback", b"ROLLBACK")

_CANCELED: Final = b"57014"
_READ_ONLY: Final = b"25006"
_OVERTAKEN: Final = b"TX001"
"""Raised by the function `apply` of a store; see `layout.py`."""
_LEAVE_S: Final = 1.0
"""How long an interrupt waits for the end of the steps that run: once to ask, once for the results."""
_LIMIT_MIN_S: Final = 1.0
_CONNECT_MIN_S: Final = 2.0
_ANSWER_S: Final = 2.0
"""How long a server may take to say why a session brings nothing, and to end steps."""
_ON_WAY_MS: Final = 1000
_ENDS: Final = (b"FATAL", b"PANIC")
_PROMPT_S: Final = 1.0
_ENDS_OF_ALL: Final = 3
"""How often in a row libpq has no result, without waiting for one, when none is to come: once between two steps."""
_LIFT_TRIES: Final = 20
_FATAL_ERROR: Final = pq.ExecStatus.FATAL_ERROR
_PIPELINE_ABORTED: Final = pq.ExecStatus.PIPELINE_ABORTED
_PIPELINE_SYNC: Final = pq.ExecStatus.PIPELINE_SYNC
_SYNC_REP: Final = b"SyncRepWaitForLSN"
# Every statement finds its rows by a primary key. The server's figures of tables in which most rows are dead lead it to
# fetch and sort all of them, for the sake of the newest one.
_SETTINGS: Final = {
    "enable_bitmapscan": "off", "enable_seqscan": "off", "enable_sort": "off", "enable_indexscan": "on",
    "enable_indexonlyscan": "on", "jit": "off", "plan_cache_mode": "force_generic_plan",
    "tcp_keepalives_idle": "3", "tcp_keepalives_interval": "1", "tcp_keepalives_count": "3", "tcp_user_timeout": "5000",
    "client_connection_check_interval": "500",
    "statement_timeout": "0", "lock_timeout": "0", "idle_session_timeout": "0", "transaction_timeout": "0",
    "idle_in_transaction_session_timeout": "10000",
    "default_transaction_isolation": "read committed", "default_transaction_deferrable": "off",
    "synchronous_commit": "on", "client_min_messages": "warning", "client_encoding": "UTF8",
    "standard_conforming_strings": "on", "bytea_output": "hex", "array_nulls": "on", "transform_null_equals": "off",
    "check_function_bodies": "on", "quote_all_identifiers": "off", "row_security": "on",
}  # fmt: skip
"""All that a session sets for itself, against any default of a server, a database or a role. A server that is too
old for a setting is left without it.

With client_connection_check_interval the server looks, while a step runs or waits, whether the client lives; PostgreSQL
13 does so at the end of a step, and some systems refuse the setting.
"""
_SET: Final = (
    "DO $$DECLARE s record; BEGIN FOR s IN SELECT v.* FROM (VALUES {}) AS v (name, value) JOIN pg_settings USING (name)"
    " LOOP BEGIN PERFORM set_config(s.name, s.value, false);"
    " EXCEPTION WHEN invalid_parameter_value OR feature_not_supported THEN NULL; END; END LOOP; END$$"
)
_FORMATS: Final = tuple([1] * count for count in range(32))


class Overtaken(Exception):
    """Another commit came before the one that a step would have stored."""


@dataclass(slots=True)
class _Limit:
    """The limit of a wait.

    Attributes:
        clock: by which it goes; the silence of a server goes by the machine's.
        limit_s: without anything coming in.
        on_slow: called once after `slow_s`, with the seconds waited and the holder of the lock.
        may_cancel: whether the steps may be canceled without knowing that they wait for a lock.
        is_last: whether the session is lost at the end, without a further question.
        canceled: for a lock; None as long as the steps have not been canceled.
    """

    clock: Clock
    limit_s: float
    on_slow: OnSlow | None = None
    slow_s: float = 0.0
    may_cancel: bool = False
    is_last: bool = False
    canceled: stalls.Stall | None = None


class Session:
    """See the module. Used by one thread at a time.

    Attributes:
        limit_s: how long steps may bring nothing before the server is asked why.
        failed: why the session is no longer usable; None while it is usable.
        is_local_only: whether the last pipeline committed without the synchronous standby.
        is_unsent: whether the session was lost before anything of the last steps was sent, so that nothing was done.
        notifications: how many notifications have come in all.
    """

    __slots__ = (
        "_application",
        "_clock",
        "_conn",
        "_farewell",
        "_is_torn",
        "_limit",
        "_poll",
        "_posted",
        "_prepared",
        "_suffix",
        "_tears",
        "_url",
        "failed",
        "is_local_only",
        "is_unsent",
        "limit_s",
        "notifications",
        "shown",
    )

    def __init__(self, conn: Any, clock: Clock, url: StoreUrl, application: str, limit_s: float) -> None:
        self._conn = conn
        self._clock = clock
        self._url, self._application = url, application
        self.shown = url.shown
        self.limit_s = limit_s
        self._limit: _Limit | None = None
        self.failed: str | None = None
        self.is_local_only = self.is_unsent = False
        self._farewell = ""
        self.notifications = 0
        self._posted: deque[Kinds] = deque()
        self._is_torn = False
        self._tears = 0
        self._prepared: set[bytes] = set()
        # Behind the names of statements: a torn session does not know which ones it has prepared.
        self._suffix = b""
        self._poll = select.poll()
        self._poll.register(conn.socket, select.POLLIN)
        conn.notice_handler = self._take_notice
        conn.notify_handler = None

    @classmethod
    def connect(
        cls,
        url: StoreUrl,
        clock: Clock,
        *,
        application: str,
        limit_s: float = LOCK_TIMEOUT_S,
        beside: Session | None = None,
    ) -> Session:
        """Connect to the server, and prepare the session.

        Args:
            limit_s: see the class; a connection has two seconds at least, and ten at most.
            beside: a session whose host is tried first.

        Raises:
            ServerUnreachable, NotPermitted, StoreNotFound
            StoreUnsafe: a pooler is in between.
        """
        timeout_s = min(CONNECT_S, max(_CONNECT_MIN_S, limit_s))
        conn = connected(url, clock, application, timeout_s, None if beside is None else beside._conn.host)
        try:
            conn.nonblocking = 1
            session = cls(conn, clock, url, application, limit_s)
            ((pid,),) = session._execute_unlimited("SELECT pg_backend_pid()")
            if int(pid or b"0") != conn.backend_pid:
                # Nothing is set before: the connection of a pool goes to the next program.
                raise behind_pooler(url.shown)
            values = ", ".join(f"('{name}', '{value}')" for name, value in _SETTINGS.items())
            session._execute_unlimited(f'{_SET.format(values)}; SET search_path = "{url.store}"')
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

    def run_steps(
        self,
        steps: Sequence[Step],
        *,
        timeout_s: float | None = None,
        on_slow: OnSlow | None = None,
        slow_s: float = 1.0,
        may_cancel: bool = False,
    ) -> list[list[Row]]:
        """Run steps in one round trip, and return the rows of each.

        After an error the rest of the steps is skipped; a transaction that is open then has failed.

        Args:
            timeout_s: the limit for these steps, instead of that of the session.
            on_slow, slow_s, may_cancel: see `_Limit`.

        Raises:
            WriterBusy: the steps waited for a lock up to the limit, and were canceled; the session stays usable.
            ServerLost: the connection was lost; whether the steps were done is not known.
            StoreFull, NotPermitted, CorruptStore, StoreInvalid
        """
        self._begin()
        self.is_local_only = False
        try:
            self._is_torn = True
            self._look_for_end()
            if timeout_s is not None:
                self._limit = _Limit(self._clock, timeout_s, on_slow, slow_s, may_cancel)
            rows, failed = self._received(self._send(steps))
            self._is_torn = False
        except pq_error() as error:
            raise self._lose(error) from error
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            self._cancel_torn()
            raise
        if failed is not None:
            raise self._error(failed)
        return rows

    def post(self, steps: Sequence[Step]) -> None:
        """Send steps without a wait; results and errors are dropped before the next steps."""
        self._begin()
        self._is_torn = True
        self._posted.append(self._send(steps))
        self._is_torn = False

    def end_left_open(self) -> None:
        """End a transaction of the server that an interrupt has left open; called before a first step.

        Raises:
            ServerLost
        """
        self._begin()
        if self._conn.transaction_status != pq.TransactionStatus.IDLE:
            self.run_steps(((ROLLBACK, ()),))

    def execute(self, text: str) -> list[Row]:
        """Run text of one or more statements outside of pipelines, for making a store; return the rows of the last.

        Raises:
            as `run_steps`
        """
        rows, error = self._execute(text)
        if error is not None:
            raise self._error(error)
        return rows

    def _execute(self, text: str) -> tuple[list[Row], Any]:
        """The rows of the last statement of a text, and the result of the first error."""
        self._begin()
        conn, rows, error = self._conn, list[Row](), None
        was_pipeline = conn.pipeline_status == pq.PipelineStatus.ON
        try:
            if was_pipeline:
                conn.exit_pipeline_mode()
            conn.send_query(text.encode())
            self._flush()
            while (result := self._next()) is not None:
                if result.status == _FATAL_ERROR:
                    error = error or result
                else:
                    rows = _rows(result)
            if was_pipeline:
                conn.enter_pipeline_mode()
        except pq_error() as problem:
            raise self._lose(problem) from problem
        return rows, error

    def _execute_unlimited(self, text: str) -> list[Row]:
        """As `execute`, without the time limit of steps that the server sets for the role, for this text alone.

        Raises:
            ServerUnreachable: the limit ended each try, before the text was begun.
        """
        for _ in range(_LIFT_TRIES):
            rows, error = self._execute(f"SET LOCAL statement_timeout = 0; {text}")
            if error is None:
                return rows
            if error.error_field(pq.DiagnosticField.SQLSTATE) != _CANCELED:
                raise self._error(error)
        raise unreachable(self.shown, "its statement_timeout ends every step of this user; set a longer one")

    def count_notifications(self) -> int:
        """Read what has come in without a wait, and return how many notifications have come in all."""
        self._begin()
        try:
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

    def _begin(self) -> None:
        """Drop the results of steps that were posted, or that an interrupt has left.

        Raises:
            ServerLost
        """
        self._check()
        if self._is_torn:
            self._mend()
        self._limit = None
        if self._posted:
            self._drain_posted()
            self._limit = None

    def _look_for_end(self) -> None:
        """Find out before a step is sent that the server has ended the session.

        Raises:
            ServerLost: nothing was sent.
        """
        conn = self._conn
        try:
            while self._poll.poll(0):
                conn.consume_input()
                self._take_notifications()
                if self._farewell:
                    break
        except pq_error() as error:
            self._lose(self._farewell or error)
        if self._farewell and self.failed is None:
            self._lose(self._farewell)
        if self.failed is not None:
            self.is_unsent = True
            self._check()

    def _send(self, steps: Sequence[Step]) -> Kinds:
        """Send steps and a sync; return the kinds of the results that will come."""
        conn, known, suffix = self._conn, self._prepared, self._suffix
        kinds: Kinds = []
        try:
            for (statement, text), parameters in steps:
                name = statement + suffix
                if name not in known:
                    conn.send_prepare(name, text)
                    kinds.append(name)
                    known.add(name)
                conn.send_query_prepared(name, parameters, _FORMATS[len(parameters)], 1)
                kinds.append(None)
            conn.pipeline_sync()
            self._flush()
        except pq_error() as error:
            raise self._lose(error) from error
        return kinds

    def _flush(self) -> None:
        conn = self._conn
        while conn.flush():
            self._poll.modify(conn.socket, select.POLLIN | select.POLLOUT)
            try:
                self._await()
            finally:
                self._poll.modify(conn.socket, select.POLLIN)
            conn.consume_input()

    def _received(self, kinds: Kinds) -> tuple[list[list[Row]], Any]:
        """The rows of each step up to the sync, and the result of the first error.

        A statement whose preparation failed, or was skipped after an error, is prepared again at its next use.

        Raises:
            ServerLost
        """
        rows: list[list[Row]] = []
        failed: Any = None
        for prepared in kinds:
            while (result := self._next()) is not None:
                status = result.status
                if status == _FATAL_ERROR:
                    failed = failed or result
                elif status != _PIPELINE_ABORTED:
                    if prepared is None:
                        rows.append(_rows(result))
                    continue
                if prepared is not None:
                    self._prepared.discard(prepared)
        while (result := self._next()) is None or result.status != _PIPELINE_SYNC:
            if result is not None and result.status == _FATAL_ERROR:
                failed = failed or result  # of the commit, which the sync makes where no step does
            if self._conn.status == pq.ConnStatus.BAD:
                break
        if self._conn.status == pq.ConnStatus.BAD:
            raise self._lose(failed)
        self._take_notifications()
        return rows, failed

    def _next(self) -> Any:
        conn = self._conn
        while conn.is_busy():
            self._await()
            conn.consume_input()
        return conn.get_result()

    def _await(self) -> None:
        """Wait until the server sends, or takes, something; see the module.

        Raises:
            ServerLost
        """
        limit = self._limit
        if limit is None:
            limit = self._limit = _Limit(SYSTEM_CLOCK, max(_LIMIT_MIN_S, self.limit_s))
        limit_s, began_ns = limit.limit_s, limit.clock.boot_ns()
        while True:
            waited_s = (limit.clock.boot_ns() - began_ns) / 1e9
            if limit.on_slow is not None and waited_s >= limit.slow_s:
                on_slow, limit.on_slow = limit.on_slow, None
                on_slow(waited_s, self._stall().holder)
            elif waited_s >= limit_s and not self._poll.poll(0):
                limit_s, began_ns = self._ask(limit), limit.clock.boot_ns()
            else:
                ends = [limit_s] if limit.on_slow is None else [limit_s, limit.slow_s]
                if self._await_input(limit.clock, min(ends) - waited_s):
                    return

    def _ask(self, limit: _Limit) -> float:
        """At the end of a limit, cancel steps that wait for a lock; return how long to wait further, in seconds.

        Raises:
            ServerLost: there is no answer, or the answer was lost on the way.
        """
        if limit.is_last or limit.canceled is not None:
            raise self._lose(f"the server has not answered for {limit.limit_s:g} s")
        stall = self._stall()
        if self._poll.poll(_ON_WAY_MS if stall.kind == stalls.CUT_OFF else 0):
            return 0.0
        if stall.kind in (stalls.SILENT, stalls.CUT_OFF):
            raise self._lose(f"the server has not answered for {limit.limit_s:g} s")
        if stall.kind == stalls.LOCKED or (limit.may_cancel and stall.kind == stalls.REFUSED):
            limit.canceled, limit.clock = stall, SYSTEM_CLOCK
            self._cancel(_ANSWER_S)
            return _ANSWER_S
        return max(_LIMIT_MIN_S, limit.limit_s)

    def _stall(self) -> stalls.Stall:
        return stalls.stall_of(self._conn, self._url, self._application, _ANSWER_S)

    def _await_input(self, clock: Clock, left_s: float) -> bool:
        """Wait for the socket, `left_s` at most; a clock that is moved by hand moves behind a second."""
        began_ns = clock.boot_ns()
        if self._poll.poll(min(max(0.0, left_s), _PROMPT_S) * 1000 + 1):
            return True
        left_s -= (clock.boot_ns() - began_ns) / 1e9
        if left_s > 0:
            clock.sleep_on_input(self._poll, left_s)
        return bool(self._poll.poll(0))

    def _drain_posted(self) -> None:
        """Read the results of posted steps, up to their syncs."""
        try:
            self._is_torn = True
            while self._posted:
                self._received(self._posted[0])
                self._posted.popleft()
            self._is_torn = False
        except pq_error() as error:
            raise self._lose(error) from error

    def _take_notifications(self) -> None:
        while self._conn.notifies() is not None:
            self.notifications += 1

    def _take_notice(self, notice: Any) -> None:
        if notice.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED) in _ENDS:
            message = (
                notice.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"the server ended the session"
            )
            self._farewell = message.decode(errors="replace")
        if notice.error_field(pq.DiagnosticField.SOURCE_FUNCTION) == _SYNC_REP:
            self.is_local_only = True

    # Ending

    def _cancel(self, limit_s: float) -> bool:
        """Have the server end the steps that run; whether it took the request in time."""
        try:
            return stalls.cancel(self._conn, limit_s)
        except NotSupportedError:  # a libpq before 17, which blocks
            with suppress(pq_error()):
                self._conn.get_cancel().cancel()
            return True

    def _cancel_torn(self) -> None:
        """After an interrupt, end the steps that run, and drop their results; or give the session up."""
        if not self._cancel(_LEAVE_S):
            self._lose("an interrupted step did not end")
            return
        with suppress(ServerLost):
            self._mend()

    def _mend(self) -> None:
        """Drop everything that is still to come, by what libpq knows of it, or give the session up after a second.

        Raises:
            ServerLost
        """
        conn = self._conn
        self._tears += 1
        self._suffix, self._prepared = b"_%d" % self._tears, set()
        self._limit = _Limit(SYSTEM_CLOCK, _LEAVE_S, is_last=True)
        try:
            # Steps before it may have been queued without a sync.
            conn.pipeline_sync()
            self._flush()
            ends = 0
            while ends < _ENDS_OF_ALL:
                ends = ends + 1 if self._next() is None else 0
            self._take_notifications()
        except pq_error() as error:
            raise self._lose(error) from error
        self._posted.clear()
        self._is_torn = False

    def _lose(self, error: Any) -> Exception:
        message = getattr(error, "error_message", None) or error or self._conn.error_message
        text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
        self.failed = text.strip().splitlines()[0] if text.strip() else "the server closed the connection"
        return lost(self.shown, self.failed)

    def _error(self, result: Any) -> Exception:
        """The error of a step."""
        state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
        message = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode(errors="replace")
        if state == _CANCELED:
            limit = self._limit
            if limit is None or (stall := limit.canceled) is None:
                return canceled(self.shown, message)
            return busy(
                "the writer gate" if stall.is_gate else "a table of the store", limit.limit_s, stall.holder
            )
        if state == _OVERTAKEN:
            return Overtaken(message)
        if state[:2] in (b"57", b"08") or self._conn.status == pq.ConnStatus.BAD:
            self.failed = message
            return lost(self.shown, message)
        if state == _READ_ONLY and self._conn.parameter_status(b"in_hot_standby") == b"off":
            return reads_only(self.shown, message)
        return refused(self.shown, state.decode("ascii", "replace"), message)


def pq_error() -> type[Exception]:
    """The error of libpq's own calls."""
    from psycopg import OperationalError

    return OperationalError


def _rows(result: Any) -> list[Row]:
    count, columns = result.ntuples, range(result.nfields)
    get = result.get_value
    return [tuple([get(row, column) for column in columns]) for row in range(count)]

"""Why a session brings nothing: the server is asked over a further connection, which has a time limit of its own."""

from __future__ import annotations

import select
from typing import Any, Final

from psycopg import OperationalError, pq

from storage.disk.environment import HolderProcess
from storage.disk.postgres.binary import as_text
from storage.disk.postgres.client_name import ClientName
from storage.disk.postgres.connecting import connected_beside
from storage.disk.postgres.refusal import Refusal
from storage.disk.postgres.url import StoreUrl
from storage.process.clock import SYSTEM_CLOCK
from storage.values.named_tuple import NamedTuple

_TIMED_OUT: Final = b"57014"
_STATE: Final = """SET LOCAL statement_timeout = 0; SET LOCAL jit = off;
 SELECT a.state LIKE 'idle%' OR a.wait_event_type = 'Client', a.wait_event_type = 'Lock',
 a.wait_event = 'advisory', h.pid, h.application_name, pg_catalog.host(h.client_addr), h.usename, h.state,
 CASE WHEN h.state LIKE 'idle%' THEN (extract(epoch FROM pg_catalog.now() - h.state_change) * 1000)::int8 END
 FROM pg_catalog.pg_stat_activity a LEFT JOIN LATERAL (
  SELECT b.* FROM pg_catalog.pg_stat_activity b
  WHERE b.pid = ANY (pg_catalog.pg_blocking_pids(a.pid))
  ORDER BY EXISTS (SELECT FROM pg_catalog.pg_locks w WHERE w.pid = b.pid AND NOT w.granted), b.pid LIMIT 1
 ) h ON true WHERE a.pid = {}"""
"""Whether a session waits for its client, or for a lock; and who holds that, before others that wait for it. A time
limit of the role may end the text before the first statement; then the text is sent again.
"""

SILENT: Final = "silent"
CUT_OFF: Final = "cut off"
LOCKED: Final = "locked"
WORKING: Final = "working"
REFUSED: Final = "refused"


class Stall(NamedTuple):
    """Why a session brings nothing.

    Attributes:
        kind: SILENT (the server does not answer), CUT_OFF (the server waits for this process, or has ended the
            session), LOCKED (the session waits for a lock), WORKING, or REFUSED (the server answers, and takes no
            further connection).
        is_gate: whether the lock is a store's writer gate.
        holder: the session that holds the lock, if known.
    """

    kind: str
    is_gate: bool = False
    holder: HolderProcess | None = None


def stall_of(conn: Any, url: StoreUrl, application: str, limit_s: float) -> Stall:
    """Ask the server of a connection why nothing comes, for `limit_s` at most."""
    until_ns = SYSTEM_CLOCK.boot_ns() + int(limit_s * 1e9)
    beside = connected_beside(conn.host, url, application, limit_s)
    if isinstance(beside, Refusal):
        return Stall(SILENT if beside.kind == "silent" else REFUSED)
    try:
        beside.nonblocking = 1
        while (result := _answer(beside, _STATE.format(int(conn.backend_pid)), until_ns)) is not None:
            if result.error_field(pq.DiagnosticField.SQLSTATE) != _TIMED_OUT:
                break
    except OperationalError:
        result = None
    finally:
        beside.finish()
    if result is None:
        return Stall(SILENT)
    if result.status != pq.ExecStatus.TUPLES_OK:
        return Stall(REFUSED)
    if not result.ntuples:
        return Stall(CUT_OFF)
    is_idle, is_locked, is_gate, *holder = (result.get_value(0, column) for column in range(result.nfields))
    if is_locked == b"t":
        return Stall(LOCKED, is_gate == b"t", _holder(*holder))
    return Stall(CUT_OFF if is_idle == b"t" else WORKING)


def _holder(*row: bytes | None) -> HolderProcess | None:
    pid, name, address, user, state, idle_ms = row
    if pid is None:
        return None
    return (
        ClientName.parse(name, address)
        .holder(int(pid), "held", as_text(user))
        ._replace(
            address=as_text(address),
            activity=as_text(state),
            held_ms=None if idle_ms is None else int(idle_ms),
        )
    )


def _answer(conn: Any, text: str, until_ns: int) -> Any:
    """The last result of a query; None if the server does not answer in time."""
    conn.send_query(text.encode())
    last: Any = None
    while True:
        while conn.flush() or conn.is_busy():
            if not is_ready(conn.socket, until_ns, select.POLLIN):
                return None
            conn.consume_input()
        result = conn.get_result()
        if result is None:
            return last
        last = result


def cancel(conn: Any, limit_s: float) -> bool:
    """Ask the server to end the steps of a connection; whether it took the request in time."""
    until_ns = SYSTEM_CLOCK.boot_ns() + int(limit_s * 1e9)
    request = conn.cancel_conn()
    try:
        request.start()
        while (status := request.poll()) != pq.PollingStatus.OK:
            if status == pq.PollingStatus.FAILED:
                return False
            event = select.POLLIN if status == pq.PollingStatus.READING else select.POLLOUT
            if not is_ready(request.socket, until_ns, event):
                return False
    except OperationalError:
        return False
    finally:
        request.finish()
    return True


def is_ready(descriptor: int, until_ns: int, event: int) -> bool:
    """Wait for an event of a socket; False at the end of the time."""
    waiting = select.poll()
    waiting.register(descriptor, event)
    left_s = (until_ns - SYSTEM_CLOCK.boot_ns()) / 1e9
    return left_s > 0 and bool(waiting.poll(left_s * 1000 + 1))

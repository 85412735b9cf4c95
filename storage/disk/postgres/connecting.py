"""Connecting to a server of a URL, host by host.

libpq leaves time limits to callers that do not block. So each of several hosts is tried apart, with a separate limit:
a dead machine, which does not even refuse, would otherwise keep a client from the host that took over.
"""

from __future__ import annotations

import select
from typing import Any, Final

from psycopg import OperationalError, pq

from storage.disk.postgres.refusal import Refusal, RefusedAttempt, Trace
from storage.disk.postgres.server_errors import not_admitted, plain
from storage.disk.postgres.url import StoreUrl, unreadable
from storage.process.clock import SYSTEM_CLOCK, Clock

CONNECT_S: Final = 10.0
_HOST_S: Final = 2.0
_POLL_S: Final = 1.0
_KEEPALIVE: Final = {
    b"keepalives": b"1", b"keepalives_idle": b"3", b"keepalives_interval": b"1", b"keepalives_count": b"3",
    b"tcp_user_timeout": b"5000",
}  # fmt: skip
_LISTS: Final = (b"host", b"hostaddr", b"port")


class _TimedOut(Exception):
    pass


def connected(
    url: StoreUrl, clock: Clock, application: str, timeout_s: float = CONNECT_S, host: bytes | None = None
) -> Any:
    """A connection of libpq to the first host that suits, made without blocking.

    Args:
        host: the host to try first: an earlier connection was made there.

    Raises:
        InvalidValue: libpq cannot read a parameter, or its value.
        StoreInvalid, and its kinds: see `server_errors.not_admitted`.
    """
    attempts = _attempts(url, application, host)
    options = attempts[0]
    limit_s = float(options.get(b"connect_timeout", b"0")) or (_HOST_S if len(attempts) > 1 else timeout_s)
    until_ns = clock.boot_ns() + int(timeout_s * 1e9)
    refusals: list[Refusal] = []
    for attempt in attempts:
        left_s = min(limit_s, (until_ns - clock.boot_ns()) / 1e9)
        made = _attempt(_conninfo(attempt), clock, left_s)
        if not isinstance(made, Refusal):
            return made
        if made.kind == "unknown-value":
            raise unreadable(None if url.has_password else plain(made.text))
        refusals.append(made)
    raise not_admitted(url.shown, refusals)


def connected_beside(host: bytes, url: StoreUrl, application: str, timeout_s: float) -> Any:
    """A further connection to the host of an earlier one, or the `Refusal`; made without blocking."""
    return _attempt(_conninfo(_attempts(url, application, host)[0]), SYSTEM_CLOCK, timeout_s)


def _attempts(url: StoreUrl, application: str, host: bytes | None) -> list[dict[bytes, bytes]]:
    """The options for each host, `host` first."""
    options = {**_KEEPALIVE, b"application_name": application.encode(), **_options(url)}
    return sorted(
        _by_host(options), key=lambda attempt: host not in (attempt.get(b"host"), attempt.get(b"hostaddr"))
    )


def _attempt(conninfo: bytes, clock: Clock, timeout_s: float) -> Any:
    """A connection to one host, or the `Refusal`."""
    trace: Trace | None = None
    while True:
        conn = pq.PGconn.connect_start(conninfo)
        try:
            if trace is not None:
                trace.begin(conn)
            if _is_made(conn, clock, timeout_s):
                if trace is not None:
                    conn.untrace()
                return conn
            refusal = RefusedAttempt(conn, conninfo).refusal if trace is None else trace.refusal(conn)
        except _TimedOut:
            refusal = Refusal(f"{conn.host.decode()}: no answer within {timeout_s:.3g} s", "", "silent")
        except BaseException:
            conn.finish()
            raise
        finally:
            if trace is not None:
                trace.close()
        conn.finish()
        if refusal is not None:
            return refusal
        trace = Trace()


def _options(url: StoreUrl) -> dict[bytes, bytes]:
    """The parameters of a URL, parsed by libpq.

    Raises:
        InvalidValue
    """
    try:
        parsed = pq.Conninfo.parse(url.conninfo.encode())
    except OperationalError as error:
        raise unreadable(None if url.has_password else plain(str(error))) from None
    return {option.keyword: option.val for option in parsed if option.val is not None}


def _by_host(options: dict[bytes, bytes]) -> list[dict[bytes, bytes]]:
    """The options for each host; a single set of options where libpq has to choose among hosts itself."""
    lists = {name: options[name].split(b",") for name in _LISTS if name in options}
    count = max((len(values) for name, values in lists.items() if name != b"port"), default=1)
    if count == 1 or options.get(b"target_session_attrs") == b"prefer-standby":
        return [options]
    return [
        options | {name: values[index if len(values) > 1 else 0] for name, values in lists.items()}
        for index in range(count)
    ]


def _conninfo(options: dict[bytes, bytes]) -> bytes:
    return b" ".join([
        name + b"='" + value.replace(b"\\", b"\\\\").replace(b"'", b"\\'") + b"'" for name, value in options.items()
    ])  # fmt: skip


def _is_made(conn: Any, clock: Clock, timeout_s: float) -> bool:
    """Whether the connection comes about; False after a refusal.

    Raises:
        _TimedOut
    """
    until_ns = clock.boot_ns() + int(timeout_s * 1e9)
    while True:
        status = conn.connect_poll()
        if status in (pq.PollingStatus.OK, pq.PollingStatus.FAILED):
            return bool(status == pq.PollingStatus.OK)
        waiting = select.poll()
        waiting.register(conn.socket, select.POLLIN if status == pq.PollingStatus.READING else select.POLLOUT)
        is_ready = False
        while not is_ready:
            left_s = (until_ns - clock.boot_ns()) / 1e9
            if left_s <= 0:
                raise _TimedOut
            is_ready = bool(waiting.poll(min(left_s, _POLL_S) * 1000 + 1))

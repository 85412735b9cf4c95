"""Why a connection was not made: by SQLSTATE and the fields of libpq, whatever language the server speaks.

libpq has only words for an attempt that failed, in the language of the server. A ping tells whom the attempt has
reached; where a server has answered, a second attempt is traced, and the trace shows the fields of the answer.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from psycopg import pq

from storage.values.named_tuple import NamedTuple

_ERROR: Final = re.compile(rb'\tErrorResponse\t.*? C "([0-9A-Z]{5})"')
_ENCRYPTED: Final = (b"require", b"verify-ca", b"verify-full")
_PING_S: Final = 2


class Refusal(NamedTuple):
    """A failed attempt.

    Attributes:
        text: the words of libpq or of the server.
        state: SQLSTATE of the server's answer; empty without one.
        kind: `unknown-value` (libpq knows no such value of a parameter), `silent` (no server answered), `answered`,
            `no-password` (the server asked for one), `unencrypted` (no encrypted connection came about), or
            `unsuitable` (the server admits the user, and is not as target_session_attrs demands).
    """

    text: str
    state: str
    kind: str


class RefusedAttempt:
    """An attempt that failed without a trace, and what a second one would show."""

    def __init__(self, conn: Any, conninfo: bytes) -> None:
        self.text = _text(conn)
        self._ping = pq.PGconn.ping(conninfo + b" connect_timeout=%d" % _PING_S)
        parameters = {option.keyword: option.val for option in conn.info}
        self._is_encrypted = parameters.get(b"sslmode") in _ENCRYPTED

    @property
    def refusal(self) -> Refusal | None:
        """The refusal, if the ping tells it; None: only a traced attempt shows it."""
        if self._ping == pq.Ping.NO_ATTEMPT:
            return Refusal(self.text, "", "unknown-value")
        if self._ping == pq.Ping.NO_RESPONSE and not self._is_encrypted:
            return Refusal(self.text, "", "silent")
        return None


class Trace:
    """The messages of an attempt, kept in memory: a password among them is nobody else's."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("txnctl", os.MFD_CLOEXEC)

    def begin(self, conn: Any) -> None:
        """Trace an attempt. The buffer of the trace stays in libpq for good, so only what was answered is traced."""
        conn.trace(self._descriptor)

    def refusal(self, conn: Any) -> Refusal:
        """The refusal of the attempt, which has failed."""
        conn.untrace()
        messages = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        text = _text(conn)
        if error := _ERROR.search(messages):
            return Refusal(text, error[1].decode(), "answered")
        if conn.needs_password:
            return Refusal(text, "", "no-password")
        if b"\tReadyForQuery\t" in messages:
            return Refusal(text, "", "unsuitable")
        if b"\tSSLResponse\t" in messages and b"\tStartupMessage\t" not in messages:
            return Refusal(text, "", "unencrypted")
        return Refusal(text, "", "answered" if b"\tB\t" in messages else "silent")

    def close(self) -> None:
        """Give the memory back."""
        os.close(self._descriptor)


def _text(conn: Any) -> str:
    return conn.error_message.decode(errors="replace").strip() or _silent_reason()


def _silent_reason() -> str:
    """Why libpq fails without a message: no socket could be made, as too many files are open."""
    try:
        os.close(os.open("/", os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return str(error.strerror)
    return ""

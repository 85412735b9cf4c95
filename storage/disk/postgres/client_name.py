"""The name under which a process appears in the server's list of sessions: `txnctl:HOST:PID:PROGRAM`.

The server cuts a name after 63 bytes, so that the program comes last.
"""

from __future__ import annotations

import os

from storage.disk.environment import HolderProcess
from storage.process.identity import is_stopped, printable, program_of, started
from storage.values.named_tuple import NamedTuple

_KIND = "txnctl"


def application() -> str:
    """The name of this process."""
    program = program_of(os.getpid())
    return f"{_KIND}:{os.uname().nodename}:{os.getpid()}" + (f":{program}" if program else "")


class ClientName(NamedTuple):
    """A client as named in the server's list of sessions.

    Attributes:
        pid: None for a client that is no process of ours.
        host: of the process, or the address of a foreign client; None for a client on the host of the server.
        program: None where the client gives no name.
    """

    pid: int | None
    host: str | None
    program: str | None

    @classmethod
    def parse(cls, name: bytes | None, address: bytes | None) -> ClientName:
        """The client of a session, from application name and address of the session."""
        text = printable((name or b"").decode(errors="replace"))
        kind, _, rest = text.partition(":")
        host, _, after = rest.partition(":")
        pid, _, program = after.partition(":")
        if kind == _KIND and pid.isdigit():
            return cls(int(pid), host, program or None)
        return cls(None, (address or b"").decode() or None, text or None)

    @property
    def is_here(self) -> bool:
        """Whether the client is a process of this host."""
        return self.pid is not None and self.host == os.uname().nodename

    @property
    def is_this(self) -> bool:
        """Whether the client is this process."""
        return self.is_here and self.pid == os.getpid()

    @property
    def is_stopped(self) -> bool:
        """Whether the client is stopped, as far as this host can see."""
        return self.is_here and self.pid is not None and is_stopped(self.pid, started(self.pid))

    def words(self, session: int, user: str | None = None) -> str:
        """The client in words.

        Args:
            session: the number of its process on the server.
            user: the role of a session that no process of ours has.
        """
        program = f" ({self.program})" if self.program else ""
        if self.pid is None:
            where = f" from {self.host}" if self.host else ""
            known = ", ".join(filter(None, (self.program, user and f"user {user}")))
            return f"session {session} of the server{where}" + (f" ({known})" if known else "")
        return f"process {self.pid} on {self.host}{program}" + (
            ", which is stopped" if self.is_stopped else ""
        )

    def holder(self, session: int, state: str, user: str | None = None) -> HolderProcess:
        """The client as the holder of a lock."""
        state = "stopped" if self.is_stopped else state
        return HolderProcess(
            self.pid, self.words(session, user), state, self.host, self.program, session, user
        )

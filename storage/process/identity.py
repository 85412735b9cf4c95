"""The identity of a process, as records name it: host, boot, pid, start time, user, program.

Facts from the process table are for people to read: a pid counts only together with its start time. `liveness.py`
decides by a kernel lock whether a process is alive or dead.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from storage.process.clock import Clock
from storage.values.named_tuple import NamedTuple


class ProcessIdentity(NamedTuple):
    """A process, as recorded when it opened a transaction, a session or a consumer.

    Attributes:
        started: the start time in clock ticks since boot; 0 where the system has no /proc.
    """

    host: str
    boot_id: bytes
    pid: int
    started: int
    user: str
    program: str

    def __str__(self) -> str:
        return f"{self.address} ({self.program})"

    @property
    def address(self) -> str:
        """User, host and pid: `anna@db-2:48211`."""
        return f"{self.user}@{self.host}:{self.pid}"

    def fields(self) -> list[Any]:
        return list(self)

    @classmethod
    def of(cls, fields: list[Any]) -> ProcessIdentity:
        return cls(*fields[:6])

    def row(self) -> dict[str, str | int]:
        """The row of reports."""
        return {
            "host": self.host,
            "bootId": self.boot_id.hex(),
            "pid": self.pid,
            "user": self.user,
            "program": self.program,
        }


def this_process(clock: Clock, program: str | None = None) -> ProcessIdentity:
    """The identity of the calling process."""
    pid = os.getpid()
    if program is None:
        program = " ".join([os.path.basename(sys.argv[0] or "python"), *sys.argv[1:3]])
    return ProcessIdentity(
        os.uname().nodename, clock.boot_id(), pid, started(pid), _user(), printable(program[:200])
    )


def printable(text: str) -> str:
    """Text of a foreign process on one line, with control characters escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


class ProcessFacts(NamedTuple):
    """A process as the kernel's table of processes shows it.

    Attributes:
        parent: the pid of the parent.
        started: the start time in clock ticks since boot.
        state: one letter, as in `ps`.
    """

    parent: int
    started: int
    state: str

    @property
    def is_stopped(self) -> bool:
        """Whether the process is stopped (SIGSTOP, Ctrl-Z, a debugger)."""
        return self.state in ("T", "t")

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, and only its parent has not asked for the exit code yet."""
        return self.state in ("Z", "X")


def process_facts(pid: int) -> ProcessFacts | None:
    """The facts of a process; None without such a process, or where the system has no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return ProcessFacts(int(fields[1]), int(fields[19]), fields[0].decode())
    except (OSError, IndexError):
        # A process that ends between the opening and the reading is an error of the reading, or an empty file.
        return None


def started(pid: int) -> int:
    """The start time of a process in clock ticks since boot; 0 where the system has no /proc."""
    facts = process_facts(pid)
    return facts.started if facts else 0


def is_running(pid: int) -> bool:
    """Whether a process has this pid."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_stopped(pid: int, start: int) -> bool:
    """Whether the process of this pid and start time is stopped (SIGSTOP, a debugger)."""
    facts = process_facts(pid)
    return facts is not None and facts.started == start and facts.is_stopped


def describe(pid: int, start: int) -> str:
    """Describe a process in a message: pid, command, and whether the process is stopped."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = printable(file.read(200).replace(b"\0", b" ").decode("utf-8", "replace").strip())
    except OSError:
        command = ""
    words = f"process {pid}" + (f" ({command})" if command else "")
    return words + (", which is stopped" if is_stopped(pid, start) else "")

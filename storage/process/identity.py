"""The identity of a process, as records name it: host, boot, pid, start time, user, program.

Facts from the process table are for people to read: a pid counts only together with its start time. `liveness.py`
decides by a kernel lock whether a process is alive or dead.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from storage.actions import is_elsewhere
from storage.process.clock import Clock
from storage.process.machine import proc_file, user_name
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

    @property
    def place(self) -> str:
        """The pid, with the host where that is not this one: `48211 on db-2`."""
        return f"{self.pid} on {self.host}" if is_elsewhere(self.host) else str(self.pid)

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
    """The identity of the calling process.

    Args:
        program: the name that the program gives itself; else the name of the script or module. Arguments of the command
            line may be secrets, and are never stored.
    """
    pid = os.getpid()
    if program is None:
        program = _script_name(sys.argv[0])
    return ProcessIdentity(
        os.uname().nodename,
        clock.boot_id(),
        pid,
        started(pid),
        user_name(os.getuid()) or str(os.getuid()),
        printable(program[:200]),
    )


def printable(text: str) -> str:
    """Text of a foreign process on one line, with control characters escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


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
    # A process that ends between the opening and the reading is an error of the reading, or an empty file.
    fields = (proc_file(f"{pid}/stat") or b"").rpartition(b")")[2].split()
    return ProcessFacts(int(fields[1]), int(fields[19]), fields[0].decode()) if len(fields) > 19 else None


def started(pid: int) -> int:
    """The start time of a process in clock ticks since boot; 0 where the system has no /proc."""
    facts = process_facts(pid)
    return facts.started if facts else 0


def descends_from(pid: int, start: int) -> bool:
    """Whether the calling process is a child, grandchild and so on of the process of this pid and start time."""
    seen, facts = set[int](), process_facts(os.getpid())
    while facts is not None and facts.parent not in seen:
        seen.add(facts.parent)
        ancestor = process_facts(facts.parent)
        if facts.parent == pid and ancestor is not None and ancestor.started == start:
            return True
        facts = ancestor
    return False


def is_running(pid: int) -> bool:
    """Whether a process has this pid."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_calling(process: ProcessIdentity) -> bool:
    """Whether a process is the calling one."""
    here = process.pid, process.host, process.started
    return here == (os.getpid(), os.uname().nodename, started(process.pid))


def table_state(process: ProcessIdentity, boot_id: bytes) -> str:
    """The state of a process by the table of processes: alive, stopped, dead, rebooted or unknown-host."""
    if process.host != os.uname().nodename:
        return "unknown-host"
    if process.boot_id != boot_id:
        return "rebooted"
    facts = process_facts(process.pid)
    # A start time of 0 comes from a system without /proc.
    if not process.started or facts is None:
        return "alive" if not process.started and is_running(process.pid) else "dead"
    if facts.started != process.started or facts.has_ended:
        return "dead"
    return "stopped" if facts.is_stopped else "alive"


def is_stopped(pid: int, start: int) -> bool:
    """Whether the process of this pid and start time is stopped (SIGSTOP, a debugger)."""
    facts = process_facts(pid)
    return facts is not None and facts.started == start and facts.is_stopped


def describe(pid: int, start: int) -> str:
    """Describe a process in a message: pid, program without arguments, and whether the process is stopped."""
    program = program_of(pid)
    words = f"process {pid}" + (f" ({program})" if program else "")
    return words + (", which is stopped" if is_stopped(pid, start) else "")


def program_of(pid: int) -> str:
    """The name of the program that a process runs, without directory and arguments; "" where the system hides it.

    Of a Python process the script or module, as processes that use a store are Python processes. Arguments may be
    secrets: they are never read.
    """
    words = (proc_file(f"{pid}/cmdline", 4096) or b"").decode("utf-8", "replace").split("\0")
    name = os.path.basename(words[0])
    return printable(((_script(words[1:]) if name.startswith("python") else "") or name)[:200])


def _script(words: list[str]) -> str:
    """The script or module among the arguments of a Python interpreter; "" where there is none, as with `-c`."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return _script_name(word)
        if word == "-" or word.startswith("--"):
            return ""
        # Short options may be joined, as in `-Pm`. The first with a value takes the rest of the word, or the next one.
        for at, letter in enumerate(word[1:], 2):
            if letter in "cmWX":
                value = word[at:] or next(rest, "")
                if letter in "cm":
                    return value if letter == "m" else ""
                break
    return ""


def _script_name(path: str) -> str:
    """The name of a script, or of the package that `python -m` runs; `python` without a script."""
    directory, name = os.path.split(path)
    if name == "__main__.py":
        name = os.path.basename(directory)
    return name if name not in ("", "-", "-c", "-m") else "python"

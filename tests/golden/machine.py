"""A machine whose clock, pids, host, user, disk and randomness are fixed, on which txnctl runs in this process.

The fixing is done below txnctl, in the standard library: neither the scenario nor this module names a class or a
clock of the Python API, so that a rename there leaves the golden file alone. `install` must run before any module of
txnctl is imported, and is never undone: only a process of its own may call it (`python -m tests.golden.make`,
`python -m tests.golden.child`).
"""

from __future__ import annotations

import builtins
import hashlib
import io
import json
import os
import pwd
import queue  # noqa: F401  bound to the real clock by an import before `install`, like the next two
import re
import selectors  # noqa: F401
import subprocess  # noqa: F401
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

VARIABLE = "TXNCTL_GOLDEN_MACHINE"
"""Holds the identity of a child process as JSON."""
FIRST_PID = 5_000_001
"""Above the largest pid of Linux, so that no real process is meant."""
NOON_NS = 1_704_110_400_000_000_000
BOOT_NS = 1_000_000_000_000

_PROC_FILE = re.compile(r"/proc/(\d+)/(stat|cmdline)")
_STARTED_AT = 19
"""Where, after the name of the command, /proc/PID/stat has the start time."""
_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"


class Machine:
    """Clock, pid, host and boot that one process is shown.

    Attributes:
        pid: the pid that the process is shown.
        wall_ns: nanoseconds since 1970.
        boot_ns: nanoseconds since boot.
        host: the name of the host.
        boot: the number of the boot: 1, unless the machine was started anew.
        passes: whether sleeping moves the clock instead of waiting.
        fake_of: real pid -> the pid that is shown in its place.
    """

    def __init__(self, pid: int, *, wall_ns: int, boot_ns: int, host: str, boot: int, passes: bool) -> None:
        self.pid = pid
        self.wall_ns = wall_ns
        self.boot_ns = boot_ns
        self.host = host
        self.boot = boot
        self.passes = passes
        self.sysname = os.uname().sysname
        self.fake_of = {os.getpid(): pid}
        self._next_pid = FIRST_PID

    @classmethod
    def first(cls) -> Machine:
        """The process that runs the scenario."""
        return cls(FIRST_PID, wall_ns=NOON_NS, boot_ns=BOOT_NS, host="golden", boot=1, passes=True)

    @classmethod
    def of_child(cls) -> Machine:
        """The process that `identity_of_child` described: the clock stands still, sleep is real."""
        return cls(**json.loads(os.environ.pop(VARIABLE)), passes=False)

    def identity_of_child(self, host: str | None, boot: int | None) -> dict[str, str]:
        """The environment that makes the next child."""
        self._next_pid += 1
        identity = {
            "pid": self._next_pid,
            "wall_ns": self.wall_ns,
            "boot_ns": self.boot_ns,
            "host": host or self.host,
            "boot": boot or self.boot,
        }
        return {VARIABLE: json.dumps(identity)}

    def register_child(self, real_pid: int) -> None:
        """From now on the child is shown under the pid that was handed out last."""
        self.fake_of[real_pid] = self._next_pid

    def advance(self, seconds: float) -> None:
        """Sleep."""
        self.wall_ns += int(seconds * 1e9)
        self.boot_ns += int(seconds * 1e9)

    def move_to(self, seconds: float) -> None:
        """Set the clock to so many seconds after the start of the scenario."""
        self.wall_ns = NOON_NS + int(seconds * 1e9)
        self.boot_ns = BOOT_NS + int(seconds * 1e9)

    def random(self, size: int) -> bytes:
        """Random bytes, the same within one instant, so that the number of draws changes nothing."""
        found = hashlib.sha256(f"{self.pid} {self.boot_ns} {size}".encode()).digest()
        assert size <= len(found), size
        return found[:size]

    @property
    def boot_id(self) -> str:
        """The name of this boot of the machine."""
        return f"00000000-0000-4000-8000-{self.boot:012}"

    def _real(self, pid: int) -> int:
        return next((real for real, fake in self.fake_of.items() if fake == pid), pid)

    def install(self) -> None:
        """Replace the functions of the standard library that tell of the machine."""
        self._install_clock()
        self._install_identity()
        self._install_files()

    def _install_clock(self) -> None:
        really_sleep, main = time.sleep, threading.main_thread()

        def sleep(seconds: float) -> None:
            # The end of a process takes real time.
            waits = sys._getframe(1).f_globals.get("__name__") == "subprocess"
            if self.passes and threading.current_thread() is main and not waits:
                self.advance(seconds)
            else:
                really_sleep(seconds)

        time.sleep = sleep  # type: ignore[assignment]
        time.time_ns = lambda: self.wall_ns
        time.time = lambda: self.wall_ns / 1e9
        time.clock_gettime_ns = lambda _: self.boot_ns
        if self.passes:
            time.monotonic = lambda: self.boot_ns / 1e9

    def _install_identity(self) -> None:
        really_getpid, really_getppid, really_kill = os.getpid, os.getppid, os.kill
        entry = pwd.getpwuid(os.getuid())
        fields = list(os.uname())
        user = pwd.struct_passwd(("teller", *entry[1:]))

        def kill(pid: int, number: int) -> None:
            really_kill(self._real(pid), number)

        os.getpid = lambda: self.fake_of.get(really_getpid(), really_getpid())
        os.getppid = lambda: self.fake_of.get(really_getppid(), really_getppid())
        os.kill = kill  # type: ignore[assignment]
        os.urandom = self.random
        # On a processor that nobody knows, waits sleep by the clock above, and no process wakes another.
        os.uname = lambda: os.uname_result((self.sysname, self.host, *fields[2:4], "golden"))
        pwd.getpwuid = lambda _: user  # type: ignore[assignment]

    def _install_files(self) -> None:
        really_open, really_list = builtins.open, os.listdir

        def open_file(file: Any, *arguments: Any, **options: Any) -> Any:
            if file == _BOOT_ID_FILE:
                return io.BytesIO(f"{self.boot_id}\n".encode())
            asked = _PROC_FILE.fullmatch(file) if isinstance(file, str) else None
            if asked is not None and asked[2] == "cmdline":
                raise FileNotFoundError(file)
            if asked is not None:
                pid = int(asked[1])
                with really_open(f"/proc/{self._real(pid)}/stat", "rb") as found:
                    return io.BytesIO(_with_start(found.read(), pid))
            return really_open(file, *arguments, **options)

        def list_directory(path: Any = ".") -> Any:
            """Processes come in the order of the pids that are shown; this process stands under the shown pid."""
            found = really_list(path)
            if path != "/proc":
                return found
            own = next(real for real, fake in self.fake_of.items() if fake == self.pid)
            pids = sorted(
                (int(name) for name in found if name.isdigit()), key=lambda pid: self.fake_of.get(pid, pid)
            )
            return [str(self.pid if pid == own else pid) for pid in pids]

        blocks = (4096, 4096, 25_000_000, 20_000_000, 20_000_000, 1000, 900, 900, 0, 255)
        builtins.open = open_file
        os.listdir = list_directory
        os.statvfs = lambda _: os.statvfs_result(blocks)  # type: ignore[assignment]


def _with_start(stat: bytes, pid: int) -> bytes:
    """The contents of /proc/PID/stat with a start time that depends on the pid alone."""
    name, _, rest = stat.rpartition(b")")
    fields = rest.split()
    fields[_STARTED_AT] = b"%d" % (1000 + pid)
    return name + b") " + b" ".join(fields)


class Ended:
    """How one command line ended."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status = status
        # `-o name` prints the bytes of keys, which need not be text.
        self.out = out.decode(errors="backslashreplace")
        self.err = err.decode()


def entry() -> Callable[[list[str]], int]:
    """The function behind the command `txnctl`; imported after the machine is installed."""
    from txnctl.cli.main import main

    return main


def run(words: list[str], stdin: bytes) -> Ended:
    """Run a command line in this process."""
    out, err = io.BytesIO(), io.BytesIO()
    streams = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    sys.stdout = io.TextIOWrapper(out, "utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, "utf-8", write_through=True)
    try:
        status = entry()(words)
        sys.stdout.flush()
        return Ended(status, out.getvalue(), err.getvalue())
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams


def commands_with_formats() -> dict[str, tuple[str, ...]]:
    """Every command of the tree by name, `topics stats`, with the formats that `-o` accepts, or `--format` without `-o`."""
    import click

    from txnctl.cli.main import root

    found: dict[str, tuple[str, ...]] = {}

    def walk(command: click.Command, words: tuple[str, ...], parent: click.Context | None) -> None:
        context = click.Context(command, info_name="txnctl", parent=parent)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                member = command.get_command(context, name)
                assert member is not None, name
                walk(member, (*words, name), context)
            return
        choices = {
            name: tuple(getattr(parameter.type, "names", ()))
            for parameter in command.get_params(context)
            for name in parameter.opts
        }
        found[" ".join(words)] = choices.get("-o", choices.get("--format", ()))

    walk(root(), (), None)
    return found

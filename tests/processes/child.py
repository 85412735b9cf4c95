"""A child process of a test: it runs Python of its own, says and hears lines, and is killed at the latest at the end.

Nothing is forked from the test: each child is a fresh interpreter in the root of the project.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

from tests.processes import places

ROOT = Path(__file__).parents[2]
PATIENCE_S = 30.0
"""How long a child may take to say what is expected of it, on a busy machine."""

PRELUDE = """
import contextlib, os, signal, sys, time
from storage import EARLIEST, LATEST, IsolationLevel, Store, SubscriptionType, errors
from tests.processes.parent import hear, say
from tests.waiting import let_pass, wait_for
path = sys.argv[1]
"""


class Child:
    """A running child. `stop` and `resume` are SIGSTOP and SIGCONT."""

    def __init__(self, command: list[str], prefix: Sequence[str] = ()) -> None:
        """Args:
        prefix: a command that runs another one, which runs the child instead of this machine.
        """
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [*prefix, sys.executable, *command],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._heard = b""
        self.pid = self._process.pid

    def expect(self, word: str, timeout: float = PATIENCE_S) -> str:
        """The rest of the next line, which begins with `word`."""
        line = self.line(timeout)
        assert line is not None, f"the child ended instead of saying {word!r}:\n{self.complaint()}"
        first, _, rest = line.partition(" ")
        assert first == word, f"the child said {line!r}, not {word!r}:\n{self.complaint()}"
        return rest

    def line(self, timeout: float = PATIENCE_S) -> str | None:
        """The next line that the child says; None if it has ended."""
        assert self._process.stdout is not None
        descriptor, until = self._process.stdout.fileno(), time.monotonic() + timeout
        while b"\n" not in self._heard:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"the child said nothing for {timeout:g} s:\n{self.complaint()}"
            data = os.read(descriptor, 1 << 16)
            if not data:
                return None
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    def has_spoken(self, within: float) -> bool:
        """Whether it says something within so many seconds; for what must not happen."""
        assert self._process.stdout is not None
        return bool(self._heard or select.select([self._process.stdout], [], [], within)[0])

    def say(self, words: str = "") -> None:
        """Say a line to the child."""
        assert self._process.stdin is not None
        self._process.stdin.write(words.encode() + b"\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """Stop it, and return when it has stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def interrupt(self) -> None:
        """Ctrl-C."""
        os.kill(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL, and return when the kernel has taken it down, and a server of the tests has ended its sessions.

        How soon a server does so is the subject of `postgres/test_killed_clients.py`.
        """
        self._process.kill()
        self._process.wait(PATIENCE_S)
        places.await_end(self.pid)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self, timeout: float = PATIENCE_S) -> int:
        """Let go of the line and wait for its end; its exit code, negative for a signal."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
        return self._process.wait(timeout)

    def succeed(self, timeout: float = PATIENCE_S) -> None:
        """Wait for its end, which is a success."""
        code = self.wait(timeout)
        assert code == 0, f"exit code {code}:\n{self.complaint()}"

    def complaint(self) -> str:
        """What it wrote to its standard error."""
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def close(self) -> None:
        """End it, however."""
        if self.is_running:
            self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue
        self._errors.close()


class Children:
    """The children of one test."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._all: list[Child] = []

    def run(
        self, code: str, *arguments: object, path: str | None = None, prefix: Sequence[str] = ()
    ) -> Child:
        """Start a child that runs `code` after PRELUDE, with the store's path and `arguments` in sys.argv.

        Args:
            path: of another store than that of the test.
            prefix: a command that runs the child elsewhere.
        """
        program = PRELUDE + textwrap.dedent(code)
        return self._start(["-c", program, path or self._path, *map(str, arguments)], prefix)

    def module(self, name: str, *arguments: object, prefix: Sequence[str] = ()) -> Child:
        """Start a child that runs a module of tests.processes; with a prefix elsewhere."""
        return self._start(["-m", f"tests.processes.{name}", *map(str, arguments)], prefix)

    def start(self, module: str, *arguments: object) -> Child:
        """Start a child that runs a module."""
        return self._start(["-m", module, *map(str, arguments)])

    def _start(self, command: list[str], prefix: Sequence[str] = ()) -> Child:
        child = Child(command, prefix)
        self._all.append(child)
        return child

    def close(self) -> None:
        for child in self._all:
            child.close()

"""Runs command lines on the fixed machine and writes down how each ended."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.golden.machine import Machine, run
from tests.golden.masks import FREE, READERS, Mask
from tests.waiting import let_pass

HOME_LENGTH = 120
"""The length of the directory's path is the same everywhere, because stores hold paths."""
_PATIENCE = 5000
_OFTEN = 3
_READ = """
import lmdb, sys
environment = lmdb.open(sys.argv[1], readonly=True)
with environment.begin():
    print("reading", flush=True)
    sys.stdin.read()
"""
_STEP_S = 5
"""Longer than any command of the scenario sleeps, so that no sleep moves the start of the next command."""
_JAVA = """#!/bin/sh
echo 'openjdk version "21.0.1"' >&2
"""

Record = dict[str, Any]


class Child:
    """A txnctl that runs in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], line: str) -> None:
        self.process = process
        self.line = line
        self.is_stopped = False

    @property
    def may_read(self) -> bool:
        """Whether the process lives, and may read the store at any moment."""
        return not self.is_stopped and self.process.poll() is None

    def kill(self) -> None:
        """End the process as kill -9 does."""
        self.process.kill()
        self.process.communicate()


class Teller:
    """Runs command lines and collects the records of the golden file.

    Attributes:
        records: one for each command line: case, line, exit, out, err.
        clock: the machine's time and identity.
    """

    def __init__(self, home: Path) -> None:
        self.clock = Machine.first()
        self.records: list[Record] = []
        self._home = home / ("g" * (HOME_LENGTH - len(str(home)) - 1))
        self._home.mkdir()
        self._mask = Mask(str(self._home), self.clock.fake_of)
        self._times: dict[str, int] = {}
        self._now = 0.0
        self._shown: dict[str, int] = {}
        self._children: list[Child] = []
        self._prepare()

    def _prepare(self) -> None:
        for name in [name for name in os.environ if name.startswith(("TXNCTL_", "_TXNCTL_", "XDG_", "LC_"))]:
            del os.environ[name]
        for name in ("NO_COLOR", "PYTHONUNBUFFERED", "COLUMNS", "TERM"):
            os.environ.pop(name, None)
        checkout = str(Path(__file__).parents[2])
        (self._home / "bin").mkdir()
        for program in ("sh", "cat"):
            (self._home / "bin" / program).symlink_to(f"/bin/{program}")
        java = self._home / "java" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(_JAVA)
        java.chmod(0o755)
        os.environ.update(HOME=str(self._home / "home"), TZ="UTC", LANG="C.UTF-8", PYTHONPATH=checkout)
        os.environ.update(PATH=str(self._home / "bin"), JAVA_HOME=str(self._home / "java"))
        self.use("bank")
        time.tzset()
        self.clock.install()

    def use(self, store: str) -> None:
        """Commands from now on mean this store."""
        os.environ["TXNCTL_STORE"] = self.place(store)

    def place(self, name: str) -> str:
        """The path of a file or directory of the scenario."""
        return str(self._home / name)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds
        self.clock.move_to(self._now)

    # -- command lines that are written down

    def look(self, *lines: str) -> None:
        """Run commands that only read, in JSON and, until a command has often shown something, in NDJSON and as names.

        All formats show one instant.
        """
        for line in lines:
            verb = " ".join(line.split()[:2])
            shown = self._told(f"{line} -o json", b"")
            self._shown[verb] = self._shown.get(verb, 0) + bool(shown)
            if shown and self._shown[verb] <= _OFTEN:
                self._told(f"{line} -o ndjson", b"")
                self._told(f"{line} -o name", b"")
            self.wait(1)

    def do(self, line: str, stdin: bytes = b"", *, output: str = "json") -> Any:
        """Run a command; its result as it was printed, before anything is masked."""
        self.wait(_STEP_S)
        return self._told(f"{line} -o {output}", stdin)

    def plan(self, line: str) -> Any:
        """Run a command as --dry-run and then in earnest."""
        self.do(f"{line} --dry-run")
        return self.do(line)

    def text(self, line: str) -> None:
        """Run a command whose output is text, each line of which is kept."""
        self._told(line, b"")

    def fields(self, line: str) -> None:
        """Keep names and types of the fields that `-o help` lists, without the descriptions."""
        rows = run(shlex.split(f"{line} -o help"), b"").out.splitlines()[1:]
        self._record(f"{line} -o help", 0, "\n".join(" ".join(row.split()[:2]) for row in rows), "")

    def demo(self, words: list[str]) -> None:
        """Run the demo, whose processes live on the real machine."""
        ended = subprocess.run(words, capture_output=True, check=False)
        self._record("demo", ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def _told(self, line: str, stdin: bytes) -> Any:
        # However long the previous command slept.
        self.clock.move_to(self._now)
        ended = run(shlex.split(line), stdin)
        return self._record(line, ended.status, ended.out, ended.err)

    def _record(self, line: str, status: int, out: str, err: str) -> Any:
        line = self._mask.text(line)
        self._times[line] = self._times.get(line, 0) + 1
        free = {*FREE.get(line.split()[0], ())}
        if any(child.may_read for child in self._children):
            free |= READERS
        names = [self._mask.name(each) for each in out.splitlines()] if line.endswith("-o name") else None
        parsed, problem = (
            names or _parsed(out, ndjson="-o ndjson" in line),
            [*map(_parsed, filter(_is_json, err.splitlines()))],
        )
        self.records.append(
            {
                "case": f"{line} #{self._times[line]}",
                "exit": status,
                "out": self._mask.value(parsed, free),
                "err": self._mask.value(problem, set()),
            }
        )
        assert "unexpected failure" not in err, f"{line}: exit {status}\n{err}"
        return parsed

    # -- processes

    def start(self, line: str, *, host: str | None = None, boot: int | None = None) -> Child:
        """Start a command in a process of its own."""
        identity = self.clock.identity_of_child(host, boot)
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        words = [sys.executable, "-m", "tests.golden.child", *shlex.split(line)]
        process = subprocess.Popen(words, env={**os.environ, **identity}, **pipes)  # type: ignore[call-overload]
        self.clock.register_child(process.pid)
        self._children.append(Child(process, line))
        return self._children[-1]

    def start_ready(self, line: str, **machine: Any) -> Child:
        """Start `transactions run` or `producers lead` with a command that waits, and wait for the command."""
        child = self.start(f"{line} sh -c 'echo $TXNCTL_TXN.; cat >/dev/null'", **machine)
        assert child.process.stdout is not None
        child.line = child.process.stdout.readline().decode().strip().rstrip(".")
        return child

    def stop(self, child: Child) -> None:
        """Stop a process as Ctrl-Z does, between two reads of the store."""
        while not child.is_stopped:
            child.process.send_signal(signal.SIGSTOP)
            os.waitpid(child.process.pid, os.WUNTRACED)
            child.is_stopped = run(["store", "readers", "-o", "json"], b"").out.strip() == "[]"
            if not child.is_stopped:
                child.process.send_signal(signal.SIGCONT)

    @contextmanager
    def reader(self, store: str) -> Iterator[None]:
        """Let a second process hold a view of the store."""
        self.clock.identity_of_child(None, None)
        words = [sys.executable, "-c", _READ, self.place(store)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            self.clock.register_child(process.pid)
            assert process.stdout is not None
            process.stdout.readline()
            yield
            process.kill()

    def until(self, line: str, holds: Callable[[Any], bool]) -> None:
        """Wait until the effect of a second process is visible; no record is made."""
        self.clock.passes = False
        for _ in range(_PATIENCE):
            ended = run(shlex.split(f"{line} -o json"), b"")
            if ended.status == 0 and holds(json.loads(ended.out)):
                break
            let_pass(0.01, "the machine of the golden file has no clock to wait by")
        else:
            raise AssertionError(f"{line}: {ended.out}{ended.err}")
        self.clock.passes = True

    def ended(self, child: Child, number: signal.Signals | None = None) -> None:
        """Write down how a process ended, after the signal if one is given."""
        if number is not None:
            child.process.send_signal(number)
        out, err = child.process.communicate()
        self._record(child.line, child.process.returncode, out.decode(), err.decode())

    @contextmanager
    def environment(self, **variables: str) -> Iterator[None]:
        """Run commands with these variables."""
        os.environ.update(variables)
        try:
            yield
        finally:
            for name in variables:
                del os.environ[name]

    def end(self) -> None:
        """Leave no process behind."""
        for child in self._children:
            child.kill()


def _is_json(line: str) -> bool:
    return line.startswith("{")


def _parsed(text: str, *, ndjson: bool = False) -> Any:
    """JSON, the rows of NDJSON, or the lines of other text."""
    if not text:
        return None
    if ndjson:
        return [json.loads(line) for line in text.splitlines()]
    try:
        return json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if not line.startswith("# HELP")]
        return [json.loads(line) for line in lines] if all(map(_is_json, lines)) else lines

"""The command line as tests use it: `run` inside this process, `start` as a process of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from txnctl.cli import main


class Outcome:
    """How one command line ended."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status = status
        self.out_bytes = out
        self.out = out.decode("utf-8", "surrogateescape")
        self.err = err.decode()

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        """Standard output as NDJSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> Any:
        """The last line of standard error as a JSON object."""
        return json.loads(self.err.splitlines()[-1])

    def __repr__(self) -> str:
        return f"exit {self.status}\n--- out\n{self.out}\n--- err\n{self.err}"


class _Stream(io.TextIOWrapper):
    """A stream that may say that it is a terminal."""

    terminal = False

    def isatty(self) -> bool:
        """What the test wants it to be."""
        return self.terminal


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """No variable of whoever runs the tests reaches a command, and no command reaches their home."""
    for name in [each for each in os.environ if each.startswith(("TXNCTL_", "_TXNCTL_"))]:
        monkeypatch.delenv(name)
    for name in ("NO_COLOR", "XDG_DATA_HOME", "PYTHONUNBUFFERED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Run a command line in this process: `run("topics", "list", "-o", "json").json`.

    With `terminal=True` standard output says that it is one.
    """

    def run_line(*words: str, stdin: bytes = b"", terminal: bool = False) -> Outcome:
        out, err = io.BytesIO(), io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
            stdout = _Stream(out, "utf-8", write_through=True)
            stdout.terminal = terminal
            patch.setattr(sys, "stdout", stdout)
            patch.setattr(sys, "stderr", io.TextIOWrapper(err, "utf-8", write_through=True))
            status = main(words)
            sys.stdout.flush()
            return Outcome(status, out.getvalue(), err.getvalue())

    return run_line


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[bytes]]:
    """Start a command line as a process of its own, its three streams pipes unless said otherwise."""

    def start_line(*words: str, **options: Any) -> subprocess.Popen[bytes]:
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
        return subprocess.Popen([sys.executable, "-m", "txnctl", *words], **streams)

    return start_line

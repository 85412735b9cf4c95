"""Commands of the user's as our children, and what a stop of txnctl does to them.

Signals that are passed on: see test_run.py and test_lead.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from storage.process.identity import is_stopped, started as start_of
from tests.examples.terminal import Terminal
from tests.txnctl.processes import started
from tests.waiting import let_pass, wait_for

CHECKOUT = Path(__file__).parents[3]

_BESIDE_A_THREAD = """
import os, threading
from txnctl.cli import supervise

threading.Thread(target=threading.Event().wait, daemon=True).start()
for _ in range(10):
    assert supervise.run(["true"], dict(os.environ)).status == 0
"""

_WORK = """
import os, pathlib, time

pathlib.Path("pid").write_text(str(os.getpid()))
print("> ", end="", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
print("all done")
"""
"""Waits until it is told to end, without a further process."""

LONGER_THAN_A_LOOK_S = 1.2
"""A stop of this length leaves the wait of the supervisor no time, whenever the stop begins."""

RUNNERS = {
    "run": ("transactions", "run", "--", "sh", "-c"),
    "lead": ("producers", "lead", "orders", "--", "sh", "-c"),
    "exec": ("consume", "orders", "-s", "s", "--from", "earliest", "--exec"),
}
"""The commands that run a command, up to its script."""


@pytest.fixture
def path(path: Path) -> Path:
    """The store, with one message for the consumer."""
    with Store.open(path) as store:
        store.create_topic("orders")
        store.create_producer("orders").send(b"a")
    return path


@pytest.fixture
def terminal(path: Path, tmp_path: Path) -> Iterator[Terminal]:
    """A shell at a terminal, in `tmp_path`."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TXNCTL_STORE": str(path)}
    opened = Terminal(tmp_path, environment)
    yield opened
    opened.close()


def test_the_end_of_a_short_command_is_seen_beside_another_thread() -> None:
    """Where SIGCHLD ends up on a thread that does not block it, nobody is told; the command has ended all the same."""
    done = subprocess.run([sys.executable, "-c", _BESIDE_A_THREAD], cwd=CHECKOUT, timeout=60, check=False)
    assert done.returncode == 0


@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("runner", RUNNERS)
class TestStopped:
    """SIGSTOP and SIGCONT, and Ctrl-Z and `fg` at a terminal."""

    def test_a_stop_longer_than_a_look_changes_nothing(self, runner: str, tmp_path: Path) -> None:
        """The exit code is the command's, and nothing is said."""
        script = f"echo ready; until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo done"
        with started(*RUNNERS[runner], script) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            let_pass(LONGER_THAN_A_LOOK_S, "the supervisor would have looked")
            process.send_signal(signal.SIGCONT)
            let_pass(0.3, "the supervisor looks while the command runs")
            (tmp_path / "go").touch()
            out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (0, b"done\n")
        assert b"cannot be run" not in err

    def test_the_end_of_the_command_during_a_stop_is_seen(self, runner: str, tmp_path: Path) -> None:
        """As soon as the supervisor goes on."""
        with started(
            *RUNNERS[runner], f"echo ready; until [ -e {tmp_path}/go ]; do sleep 0.01; done"
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            (tmp_path / "go").touch()
            let_pass(LONGER_THAN_A_LOOK_S, "the supervisor would have looked")
            process.send_signal(signal.SIGCONT)
            assert process.wait(30) == 0

    def test_ctrl_z_stops_the_command_too_and_fg_continues_both(
        self, runner: str, terminal: Terminal, tmp_path: Path
    ) -> None:
        """The shell sees the stop; the command goes on where it was, and its exit code is that of the line."""
        words = " ".join(RUNNERS[runner])
        # No shell that forks: one that waits for the exec of its child is stopped, and not shown as stopped.
        (tmp_path / "work.py").write_text(_WORK)
        line = f"{sys.executable} -m txnctl {words} 'exec {sys.executable} work.py'"
        terminal.play(f"$ {line}\n> ^Z\n[1]+ Stopped ...\n")
        child = int((tmp_path / "pid").read_text())
        wait_for(lambda: is_stopped(child, start_of(child)), "the command is stopped")
        let_pass(LONGER_THAN_A_LOOK_S, "the supervisor would have looked")
        assert is_stopped(child, start_of(child))
        terminal.play("$ touch go\n$ fg; echo status $?\nall done\nstatus 0\n$ exit\n")
        assert terminal.wait() == 0

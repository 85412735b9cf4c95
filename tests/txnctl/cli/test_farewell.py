"""A command that was told to end, with everything that it has started: real processes, and a shorter grace."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from storage.process.identity import is_stopped, process_facts, started as start_of
from tests.waiting import let_pass, wait_for
from txnctl.cli import farewell
from txnctl.cli.farewell import Farewell

pytestmark = pytest.mark.kills

IGNORES = "trap '' TERM; echo ready; while :; do sleep 0.01; done"
"""A script that no SIGTERM ends, nor its children."""


class Command:
    """A shell with a script, which has said `ready`."""

    def __init__(self, script: str) -> None:
        self.child = subprocess.Popen(
            ["sh", "-c", script], stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        assert self.child.stdout is not None
        with self.child.stdout as said:
            assert said.readline() == b"ready\n"

    def seconds_to_the_end(self, after_look: Callable[[], object] = bool) -> float:
        """Tell it to end, and follow it as the supervisor does; the time."""
        began = time.monotonic()
        leaving = Farewell(self.child, signal.SIGTERM)
        while self.child.poll() is None or not leaving.is_over():
            assert time.monotonic() < began + 20
            let_pass(0.01, "between two looks of a supervisor")
            leaving.look()
            after_look()
        return time.monotonic() - began


def is_there(pid: int) -> bool:
    facts = process_facts(pid)
    return facts is not None and not facts.has_ended


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Command]]:
    """Starts commands; the grace is a second. Nothing of them is left at the end."""
    monkeypatch.setattr(farewell, "GRACE_S", 1.0)
    running: list[Command] = []

    def start(script: str) -> Command:
        running.append(Command(script))
        return running[-1]

    yield start
    for command in running:
        with suppress(ProcessLookupError):
            os.killpg(command.child.pid, signal.SIGKILL)
        command.child.wait()


def test_who_ends_at_the_signal_is_not_waited_for(commands: Callable[[str], Command]) -> None:
    """The exit code is its own."""
    command = commands("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done")
    assert command.seconds_to_the_end() < 1
    assert command.child.returncode == 5


def test_who_ignores_the_signal_is_killed_after_the_grace(commands: Callable[[str], Command]) -> None:
    """And not before."""
    command = commands(IGNORES)
    assert command.seconds_to_the_end() >= 1
    assert command.child.returncode == -signal.SIGKILL


def test_what_the_command_leaves_behind_is_killed_too(
    commands: Callable[[str], Command], tmp_path: Path
) -> None:
    """The shell ends at once; its child ignores the signal, and is waited for, and killed."""
    command = commands(f'sh -c "{IGNORES}" & echo $! > {tmp_path}/pid; wait')
    left = int((tmp_path / "pid").read_text())
    assert command.seconds_to_the_end() >= 1
    assert command.child.returncode == -signal.SIGTERM
    wait_for(lambda: not is_there(left), "it is killed")


def test_what_cleaning_up_starts_is_followed(commands: Callable[[str], Command], tmp_path: Path) -> None:
    """A trap that starts a further process and ends leaves nothing behind."""
    pid, seen, looks = tmp_path / "pid", tmp_path / "seen", list[bool]()
    trap = f"sleep 60 & echo $! > {pid}.part; mv {pid}.part {pid}; until [ -e {seen} ]; do sleep 0.01; done; exit 0"
    command = commands(f"trap '{trap}' TERM; echo ready; while :; do sleep 0.01; done")

    def note_look() -> None:
        """Let the trap end once a look has begun behind the start of the further process."""
        if any(looks):
            seen.touch()
        looks.append(pid.exists())

    assert command.seconds_to_the_end(note_look) >= 1
    assert command.child.returncode == 0
    wait_for(lambda: not is_there(int(pid.read_text())), "it is killed")


def test_a_stopped_command_is_continued_to_take_the_signal(commands: Callable[[str], Command]) -> None:
    """It ends as it wishes, and not by SIGKILL."""
    command = commands("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done")
    pid = command.child.pid
    command.child.send_signal(signal.SIGSTOP)
    wait_for(lambda: is_stopped(pid, start_of(pid)), "it is stopped")
    assert command.seconds_to_the_end() < 1
    assert command.child.returncode == 5


def test_a_stop_of_the_supervisor_takes_no_more_than_a_second_of_the_grace(
    commands: Callable[[str], Command], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-Z stops both: what was stopped cannot have used the time."""
    monkeypatch.setattr(farewell, "GRACE_S", 2.5)
    now = 0.0
    monkeypatch.setattr(farewell, "monotonic", lambda: now)
    command = commands(IGNORES)
    leaving = Farewell(command.child, signal.SIGTERM)
    for _ in range(2):
        now += 60
        leaving.look()
        assert not leaving.is_over()
        assert command.child.poll() is None
    now += 60
    leaving.look()
    assert leaving.is_over()
    assert command.child.wait(10) == -signal.SIGKILL

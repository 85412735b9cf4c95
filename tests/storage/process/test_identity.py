"""The identity of a process: what is recorded, and what the process table says of it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from storage.process.clock import ManualClock
from storage.process.identity import (
    ProcessIdentity,
    descends_from,
    describe,
    is_running,
    is_stopped,
    printable,
    program_of,
    started,
    this_process,
)
from tests.waiting import wait_for

ANNA = ProcessIdentity("desk", b"b" * 16, 42, 7, "anna", "loader")


def test_fields_come_back() -> None:
    """Also from a record with more fields than are known."""
    assert ProcessIdentity.of(ANNA.fields()) == ANNA
    assert ProcessIdentity.of([*ANNA.fields(), "later"]) == ANNA


def test_people_and_programs_read_it() -> None:
    """One line, or a row; the boot as hex."""
    assert str(ANNA) == "anna@desk:42 (loader)"
    assert ANNA.row() == {"host": "desk", "bootId": "62" * 16, "pid": 42, "user": "anna", "program": "loader"}


def test_this_process_is_named() -> None:
    """By host, boot, pid and start; its program by what was given, harmless."""
    found = this_process(ManualClock(boot=b"x" * 16), "evil\x1b[2J" + "x" * 300)
    assert (found.host, found.boot_id, found.pid) == (os.uname().nodename, b"x" * 16, os.getpid())
    assert found.started == started(os.getpid()) > 0
    assert found.program.startswith("evil\\x1b[2Jxxx")
    assert found.program.isprintable()
    assert len(found.program) < 210


@pytest.mark.parametrize(
    ("script", "program"),
    [
        ("/opt/bin/app.py", "app.py"),
        ("/srv/settlement/__main__.py", "settlement"),
        ("-c", "python"),
        ("", "python"),
    ],
)
def test_without_a_program_the_script_names_it(
    monkeypatch: pytest.MonkeyPatch, script: str, program: str
) -> None:
    """Without the directory, and never with an argument: those may be secrets."""
    monkeypatch.setattr(sys, "argv", [script, "--db-password=hunter2", "x"])
    assert this_process(ManualClock()).program == program


@pytest.mark.parametrize(("text", "shown"), [("zoë", "zoë"), ("a\nb", "a\\nb"), ("\x9b", "\\x9b")])
def test_text_cannot_drive_a_terminal(text: str, shown: str) -> None:
    """Letters of every language stay."""
    assert printable(text) == shown


def test_a_stopped_process_is_told_from_a_running_one() -> None:
    """And from another one that has its pid: the start time decides."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        start = started(child.pid)
        try:
            assert is_running(child.pid)
            assert not is_stopped(child.pid, start)
            child.send_signal(signal.SIGSTOP)
            wait_for(lambda: is_stopped(child.pid, start), "the child is stopped")
            assert not is_stopped(child.pid, start + 1)
            name = os.path.basename(sys.executable)
            assert describe(child.pid, start) == f"process {child.pid} ({name}), which is stopped"
        finally:
            child.kill()
    assert not is_running(child.pid)
    assert describe(child.pid, start) == f"process {child.pid}"
    assert started(child.pid) == 0


@pytest.mark.parametrize(
    ("words", "program"),
    [
        ((sys.executable, "{script}", "--db-password=hunter2"), "app.py"),
        ((sys.executable, "-u", "-X", "dev", "-Wdefault", "{script}", "hunter2"), "app.py"),
        ((sys.executable, "-Pm", "app", "hunter2"), "app"),
        ((sys.executable, "-mapp", "hunter2"), "app"),
        ((sys.executable, "-uc", "input() # hunter2", "hunter2"), os.path.basename(sys.executable)),
        (("sh", "-c", "read line # hunter2"), "sh"),
    ],
)
def test_arguments_of_a_process_are_not_described(
    tmp_path: Path, words: tuple[str, ...], program: str
) -> None:
    """The program's name only, of Python the script's or the module's."""
    (tmp_path / "app.py").write_text("input()\n")
    given = [word.format(script=tmp_path / "app.py") for word in words]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(given, stdin=subprocess.PIPE, env=environment) as child:
        try:
            wait_for(lambda: program_of(child.pid) == program, f"the child runs {program}")
            assert describe(child.pid, started(child.pid)) == f"process {child.pid} ({program})"
        finally:
            child.kill()


def test_ancestors_are_told_by_pid_and_start_time() -> None:
    """A grandparent is one; a process with the pid and another start time is none, nor is this process itself."""
    parent = os.getppid()
    assert descends_from(parent, started(parent))
    assert not descends_from(parent, started(parent) + 1)
    assert not descends_from(os.getpid(), started(os.getpid()))
    program = "import sys; from storage.process.identity import descends_from; print(descends_from(*map(int, sys.argv[1:])))"
    words = [sys.executable, "-c", program, str(os.getpid()), str(started(os.getpid()))]
    line = " ".join(shlex.quote(word) for word in words)
    done = subprocess.run(["sh", "-c", f"{line}; true"], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"

"""The identity of a process: what is recorded, and what the process table says of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from storage.process.clock import ManualClock
from storage.process.identity import (
    ProcessIdentity,
    describe,
    is_running,
    is_stopped,
    printable,
    started,
    this_process,
)

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


def test_without_a_program_the_command_line_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first three words, without the directory."""
    monkeypatch.setattr(sys, "argv", ["/opt/bin/job", "run", "nightly", "--secret", "x"])
    assert this_process(ManualClock()).program == "job run nightly"


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
            deadline = time.monotonic() + 10
            while not is_stopped(child.pid, start) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert is_stopped(child.pid, start)
            assert not is_stopped(child.pid, start + 1)
            assert describe(child.pid, start).endswith(
                "(" + f"{sys.executable} -c input()" + "), which is stopped"
            )
        finally:
            child.kill()
    assert not is_running(child.pid)
    assert describe(child.pid, start) == f"process {child.pid}"
    assert started(child.pid) == 0

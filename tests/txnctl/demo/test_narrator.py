"""Narrator: `txnctl/demo/narrator.py`."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.txnctl.demo_steps import SMALL


def test_people_are_told_the_same(run: Callable[..., Any], temporary: Path) -> None:
    """As text: the acts by number, the positions and the counts, no escape codes, nothing on standard error."""
    outcome = run("demo", *SMALL)
    assert (outcome.status, outcome.err) == (0, "")
    assert [line.partition(".")[0] for line in outcome.out.splitlines() if line[:1].isdigit()] == list(
        "1234567"
    )
    for words in (
        "READ_UNCOMMITTED",
        "maxReadPosition",
        "SIGKILL",
        "6 of 6 accounts agree",
        "temporary and is gone",
    ):
        assert words in outcome.out
    assert "FAILED" not in outcome.out
    assert "\x1b" not in outcome.out
    assert max(len(line) for line in outcome.out.splitlines()) <= 120
    assert list(temporary.iterdir()) == []


def test_colour_is_there_when_it_is_asked_for(run: Callable[..., Any], temporary: Path) -> None:
    """`--color always` colours; the words stay the same."""
    assert "\x1b[32mok\x1b[0m" in run("demo", *SMALL, "--color", "always").out
    assert list(temporary.iterdir()) == []


def test_a_pause_waits_on_a_terminal(start: Callable[..., subprocess.Popen[bytes]], temporary: Path) -> None:
    """--pause: while the transfer is open the demo names commands to try, and goes on at Enter."""
    ours, theirs = pty.openpty()
    wide = {**os.environ, "COLUMNS": "500"}
    with start(
        "demo", *SMALL, "--pause", "--color", "never", stdin=theirs, stdout=theirs, env=wide
    ) as process:
        os.close(theirs)
        told = ""
        while "transactions show" not in told:
            told += os.read(ours, 4096).decode()
        (proposed,) = [
            line.split("$ txnctl ", 1)[1] for line in told.splitlines() if "subscriptions lag" in line
        ]
        with start(*proposed.split(), "-o", "json") as looking:
            rows = json.loads(looking.communicate()[0])
        assert {row["subscription"]: row["blocked"] > 0 for row in rows} == {
            "business-E": True,
            "monitor-D": False,
        }
        os.write(ours, b"\n")
        # A terminal that nobody reads would stop the writer; when it has ended, reading fails.
        with contextlib.suppress(OSError):
            while os.read(ours, 4096):
                pass
        assert process.wait() == 0
    os.close(ours)
    assert list(temporary.iterdir()) == []

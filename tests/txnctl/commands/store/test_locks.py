"""`txnctl store locks`."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import pytest

from txnctl.commands.store import locks
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestHolders:
    """`store locks`, `readers`."""

    def test_nobody_there_is_success(self, run: Any) -> None:
        """An empty list, and a note for people."""
        assert run("store", "locks", "-o", "json").json == []
        outcome = run("store", "locks")
        assert outcome.out == ""
        assert "no other process has the store open" in outcome.err

    def test_who_has_it_open_is_named(self, run: Any, other: subprocess.Popen[bytes]) -> None:
        """With pid and state, which follows SIGSTOP."""
        rows = run("store", "locks", "-o", "json").json
        assert {row["pid"] for row in rows} == {other.pid}
        assert not undeclared(rows[0], locks.LOCKS)
        assert sorted((row["lock"].split()[0], row["state"]) for row in rows) == [
            ("lease", "alive"),
            ("store", "open"),
        ]
        os.kill(other.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, other.pid, os.WSTOPPED)
        rows = run("store", "locks", "-o", "json").json
        assert {row["state"] for row in rows} == {"stopped"}
        assert str(other.pid) in run("store", "locks").out

    def test_the_dead_are_shown_as_dead(self, run: Any, other: subprocess.Popen[bytes]) -> None:
        """Until the next writer frees what they held."""
        other.kill()
        other.wait()
        assert [
            (row["lock"].split()[0], row["state"]) for row in run("store", "locks", "-o", "json").json
        ] == [("lease", "dead")]

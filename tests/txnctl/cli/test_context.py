"""Context: `txnctl/cli/context.py`."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.errors import StoreClosed
from tests.txnctl.cli.options_steps import FIELDS
from txnctl.cli import exit_codes
from txnctl.cli.context import Context
from txnctl.cli.declaration import command
from txnctl.cli.decorators import (
    administrative,
    changes_store,
    output,
    reads_store,
)


@pytest.fixture
def asking(add: Any) -> None:
    """A command that asks before it does."""

    @command
    @changes_store(effect="destroys")
    @administrative
    @output(FIELDS, name_field="name")
    def end(context: Context) -> None:
        """End."""
        context.confirm("Delete topic orders?", plan=["5,688 messages", "2 subscriptions \x1b"])
        context.show({"name": "done"})

    add(end)


ASKED = """
import sys, types
from txnctl.cli.command_table import COMMANDS
from txnctl.cli.declaration import command
from txnctl.cli.decorators import effect
from txnctl.cli.main import main
@command
@effect("destroys")
def probe(context):
    context.confirm("Delete topic orders?", plan=["5,688 messages"])
    context.out.write("done\\n")
module = types.ModuleType("probe_of_a_test"); module.probe = probe
sys.modules["probe_of_a_test"] = module
COMMANDS["probe"] = ("probe_of_a_test:probe", "")
sys.exit(main(["probe"]))
"""


class TestOpening:
    """The store is open while the body runs, and closed whatever happens."""

    def test_the_store_is_closed_after_an_error(self, run: Any, add: Any, store_path: str) -> None:
        """A second opening in this process would be refused otherwise."""
        seen: list[Store] = []

        @command
        @changes_store()
        def fail(context: Context) -> None:
            """Fail."""
            seen.append(context.store)
            raise RuntimeError

        add(fail)
        assert run("probe", "--store", store_path).status == exit_codes.UNEXPECTED
        with pytest.raises(StoreClosed):
            seen[0].topics()

    @pytest.mark.parametrize("decorator", [reads_store, changes_store()])
    def test_a_missing_store_is_not_created(self, run: Any, add: Any, tmp_path: Path, decorator: Any) -> None:
        """Exit 6, in JSON too, and nothing at the path."""

        @command
        @decorator
        @output(FIELDS, name_field="name")
        def look(context: Context) -> None:
            """Look."""

        add(look)
        outcome = run("probe", "--store", str(tmp_path / "none" / "such"), "-o", "json")
        assert outcome.status == exit_codes.STORE_INVALID
        assert outcome.error["code"] == "store-not-found"
        assert list(tmp_path.iterdir()) == []

    def test_the_program_is_recorded_as_typed_in_full(self, run: Any, add: Any, store_path: str) -> None:
        """Whoever looks at an owner sees the command."""

        @command
        @changes_store()
        @output(FIELDS, name_field="name")
        def own(context: Context) -> None:
            """Own."""
            context.show({"name": context.program})

        add(own)
        assert run("--store", store_path, "probe", "-o", "name").out == "txnctl probe\n"


class TestWaiting:
    """A wait for the writer gate names the holder, ends at its time, and can be interrupted."""

    def test_the_holder_is_named_after_a_second(
        self, run: Any, add: Any, store_path: str, holder: Any
    ) -> None:
        """Then it is over at --lock-timeout, with code 5, retryable."""

        @command
        @changes_store()
        @output(FIELDS, name_field="name")
        def make(context: Context) -> None:
            """Make."""
            context.store.create_topic("other")

        add(make)
        outcome = run("probe", "--store", store_path, "--lock-timeout", "1500ms", "-o", "json")
        assert outcome.status == exit_codes.STORE_BUSY
        note, error = outcome.err.splitlines()
        assert note.startswith("txnctl: waiting for the writer gate, held by ")
        assert str(holder.pid) in note
        assert json.loads(error)["code"] == "writer-busy"
        assert json.loads(error)["retryable"] is True
        assert "kill -CONT" not in json.loads(error)["hint"]

    def test_a_stopped_holder_is_to_be_continued(
        self, run: Any, add: Any, store_path: str, holder: Any
    ) -> None:
        """The hint is the command to type."""

        @command
        @changes_store()
        def make(context: Context) -> None:
            """Make."""

        add(make)
        holder.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
        outcome = run("probe", "--store", store_path, "--lock-timeout", "50ms")
        assert outcome.status == exit_codes.STORE_BUSY
        error, hint = outcome.err.splitlines()
        assert error.startswith("txnctl: error: the writer gate was not free within 0.05 s: held by process ")
        assert error.endswith(", which is stopped")
        assert hint.startswith(f"txnctl: hint: Continue the stopped process with `kill -CONT {holder.pid}`, ")


@pytest.mark.usefixtures("asking")
class TestConfirmation:
    """Destructive commands ask on a terminal and refuse without one."""

    def test_no_terminal_and_no_yes_is_refused_with_the_plan(self, run: Any, store_path: str) -> None:
        """Code 9, the plan on standard error, nothing done."""
        outcome = run("probe", "--store", store_path, stdin=b"y\n")
        assert (outcome.status, outcome.out) == (exit_codes.REFUSED, "")
        assert outcome.err.splitlines() == [
            "5,688 messages",
            "2 subscriptions \\x1b",
            "txnctl: error: Delete topic orders? There is no terminal to ask on.",
            "txnctl: hint: Give --yes to go on without asking.",
        ]

    def test_the_plan_is_in_the_json_error(self, run: Any, store_path: str) -> None:
        """And standard error is that one object."""
        outcome = run("probe", "--store", store_path, "-o", "json")
        error = json.loads(outcome.err)
        assert (error["code"], error["exitCode"]) == ("needs-confirmation", 9)
        assert error["details"]["plan"] == ["5,688 messages", "2 subscriptions \x1b"]

    def test_yes_does_not_ask(self, run: Any, store_path: str) -> None:
        """Nothing on standard error."""
        outcome = run("probe", "--store", store_path, "--yes", "-o", "name")
        assert (outcome.status, outcome.out, outcome.err) == (0, "done\n", "")

    def test_a_dry_run_is_not_asked(self, run: Any, store_path: str) -> None:
        """It changes nothing."""
        assert run("probe", "--store", store_path, "--dry-run", "-o", "name").out == "done\n"

    @pytest.mark.parametrize(
        ("typed", "status", "out"),
        [
            (b"y\n", 0, b"done\n"),
            (b"YES\n", 0, b"done\n"),
            (b"n\n", 9, b""),
            (b"\n", 9, b""),
            (b"\x04", 9, b""),
        ],
    )
    def test_on_a_terminal_the_answer_decides(self, typed: bytes, status: int, out: bytes) -> None:
        """The question and the plan are on the terminal; standard output stays clean."""
        terminal, inside = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", ASKED], stdin=inside, stderr=inside, stdout=subprocess.PIPE
        )
        os.close(inside)
        asked = b""
        while b"[y/N] " not in asked and select.select([terminal], [], [], 20)[0]:
            asked += os.read(terminal, 1000)
        os.write(terminal, typed)
        assert process.stdout is not None
        assert process.stdout.read() == out
        process.stdout.close()
        assert process.wait(timeout=20) == status
        os.close(terminal)
        assert asked.replace(b"\r", b"") == b"5,688 messages\nDelete topic orders? [y/N] "

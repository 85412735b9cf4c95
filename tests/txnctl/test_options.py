"""What the decorators give a command: the store, the shared options, confirmation, notes, colours."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.errors import StoreClosed
from txnctl.cli import exit_codes
from txnctl.cli.context import Context
from txnctl.cli.declaration import Declaration, command, declaration_of
from txnctl.cli.decorators import (
    administrative,
    argument,
    changes_store,
    effect,
    example,
    forcible,
    names_store,
    option,
    output,
    reads_store,
)
from txnctl.output.field import Field

FIELDS = (Field("name", "text", "A name."), Field("text", "text", "Another."))


@pytest.fixture
def store_path(tmp_path: Path) -> str:
    """A store with one topic, found to be whole at the end."""
    path = str(tmp_path / "s")
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("orders")
    return path


class TestOpening:
    """The store is open while the body runs, and closed whatever happens."""

    def test_a_reading_command_gets_a_store_that_cannot_be_written(
        self, run: Any, add: Any, store_path: str
    ) -> None:
        """And data.mdb is byte for byte what it was."""
        seen: list[Store] = []

        @command
        @reads_store
        @output(FIELDS, name_field="name")
        def look(context: Context) -> None:
            """Look."""
            seen.append(context.store)
            context.show_list([{"name": name} for name in context.store.topics()])

        add(look)
        before = Path(store_path, "data.mdb").read_bytes()
        outcome = run("probe", "--store", store_path, "-o", "name")
        assert (outcome.status, outcome.out) == (0, "orders\n")
        assert Path(store_path, "data.mdb").read_bytes() == before
        with pytest.raises(StoreClosed):
            seen[0].topics()

    def test_a_changing_command_gets_one_that_can(self, run: Any, add: Any, store_path: str) -> None:
        """What it changed is there afterwards."""

        @command
        @argument("name", help="A name.")
        @changes_store()
        @output(FIELDS, name_field="name")
        def make(context: Context, name: str) -> None:
            """Make."""
            context.store.create_topic(name)
            context.show({"name": name})

        add(make)
        assert run("probe", "added", "--store", store_path, "-o", "name").out == "added\n"
        with Store.open(store_path, read_only=True) as store:
            assert "added" in store.topics()

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

    def test_a_path_alone_opens_nothing(self, run: Any, add: Any, tmp_path: Path) -> None:
        """For commands that make the store."""

        @command
        @names_store(effect="writes")
        @output(FIELDS, name_field="name")
        def make(context: Context) -> None:
            """Make."""
            Store.create(context.store_path)
            with context.open_store(context.store_path, read_only=True) as store:
                context.show({"name": f"{len(store.topics())} topics"})

        add(make)
        assert run("probe", "--store", str(tmp_path / "new"), "-o", "name").out == "0 topics\n"

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


HOLDER = """
import sys, time
from storage import Store
store = Store.open(sys.argv[1])
def hold(batch):
    print("held", flush=True)
    sys.stdin.read()
store.connection.write(hold)
"""


class TestWaiting:
    """A wait for the writer lock names the holder, ends at its time, and can be interrupted."""

    @pytest.fixture
    def holder(self, store_path: str) -> Any:
        """A process that stays inside the writer gate."""
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, store_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield process
            process.kill()

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
        assert note.startswith("txnctl: waiting for the writer lock, held by ")
        assert str(holder.pid) in note
        assert json.loads(error)["code"] == "writer-busy"
        assert json.loads(error)["retryable"] is True

    @pytest.mark.usefixtures("holder")
    def test_the_timeout_comes_from_the_environment_too(
        self, run: Any, add: Any, store_path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """TXNCTL_LOCK_TIMEOUT=0s does not wait at all, and says nothing of waiting."""

        @command
        @changes_store()
        def make(context: Context) -> None:
            """Make."""
            context.store.create_topic("other")

        add(make)
        monkeypatch.setenv("TXNCTL_LOCK_TIMEOUT", "0s")
        outcome = run("probe", "--store", store_path)
        assert outcome.status == exit_codes.STORE_BUSY
        assert "waiting" not in outcome.err
        monkeypatch.setenv("TXNCTL_LOCK_TIMEOUT", "soon")
        assert "TXNCTL_LOCK_TIMEOUT: 'soon' is not a duration" in run("probe", "--store", store_path).err


class TestSharedOptions:
    """Dry run, reason, yes, force."""

    def test_an_administrative_command_takes_them(self, run: Any, add: Any, store_path: str) -> None:
        """They reach the context, not the arguments."""

        @command
        @option("--other", help="Its own.")
        @changes_store(effect="destroys")
        @administrative
        @forcible("Although it hurts.")
        @output(FIELDS, name_field="name")
        def end(context: Context, other: str | None) -> None:
            """End."""
            context.show({"name": repr((context.dry_run, context.reason, context.yes, context.force, other))})

        add(end)
        base = ("probe", "--store", store_path, "-o", "name")
        assert run(*base).out == "(False, None, False, False, None)\n"
        typed = ("--dry-run", "--reason", "why", "--yes", "--force", "--other", "x")
        assert run(*base, *typed).out == "(True, 'why', True, True, 'x')\n"
        text = run("probe", "-h").out
        assert "Although it hurts." in text
        assert "Destroys: what it removes does not come back." in text
        assert text.index("--other") < text.index("Shared options:") < text.index("--dry-run")

    def test_a_reading_command_takes_none_of_them(self, run: Any, add: Any, store_path: str) -> None:
        """--yes to a question that is never asked is a mistake."""

        @command
        @reads_store
        def look(context: Context) -> None:
            """Look."""

        add(look)
        for words in (("--yes",), ("--dry-run",), ("--reason", "x"), ("--force",)):
            assert run("probe", "--store", store_path, *words).status == exit_codes.USAGE

    def test_every_changing_command_takes_yes(self, run: Any, add: Any, store_path: str) -> None:
        """So that a script can give it without looking."""

        @command
        @changes_store()
        def make(context: Context) -> None:
            """Make."""

        add(make)
        assert run("probe", "--store", store_path, "--yes").status == 0
        assert run("probe", "--store", store_path, "-y").status == 0


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
            "txnctl: error: Delete topic orders? Nobody to ask: this is not a terminal.",
            "txnctl: hint: Give --yes to do it without asking.",
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


class TestStreams:
    """Notes go to standard error, colours nowhere unless wanted."""

    def test_notes_and_warnings_are_no_result(self, run: Any, add: Any) -> None:
        """Standard output holds the result alone."""

        @command
        @effect("reads")
        @output(FIELDS, name_field="name")
        def say(context: Context) -> None:
            """Say."""
            context.note("subscription \x1bbilling created")
            context.warn("careful")
            with context.progress("Verify", total=5) as bar:
                bar.advance(5)
            context.show({"name": "x"})

        add(say)
        outcome = run("probe", "-o", "name")
        assert outcome.out == "x\n"
        assert outcome.err == "txnctl: subscription \\x1bbilling created\ntxnctl: warning: careful\n"

    @pytest.mark.parametrize(
        ("words", "variables", "terminal", "colored"),
        [
            ((), {}, True, True),
            ((), {}, False, False),
            ((), {"NO_COLOR": "1"}, True, False),
            ((), {"NO_COLOR": ""}, True, True),
            ((), {"TERM": "dumb"}, True, False),
            (("--color", "never"), {}, True, False),
            (("--color", "always"), {"NO_COLOR": "1"}, False, True),
        ],
    )
    def test_colours(
        self,
        run: Any,
        add: Any,
        monkeypatch: pytest.MonkeyPatch,
        words: Any,
        variables: Any,
        terminal: bool,
        colored: bool,
    ) -> None:
        """Where a person looks, unless told otherwise; what is typed counts most."""

        @command
        @effect("reads")
        @output(FIELDS, name_field="name")
        def show(context: Context) -> None:
            """Show."""
            context.show({"name": "x"}, table=lambda row: context.style(row["name"], "bold", "red"))

        add(show)
        monkeypatch.setenv("TERM", "xterm")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert run("probe", *words, terminal=terminal).out == ("\x1b[1;31mx\x1b[0m\n" if colored else "x\n")

    def test_the_default_format_may_differ_in_a_pipe(
        self, run: Any, add: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As consume's does."""

        @command
        @effect("reads")
        @output(FIELDS, name_field="name", formats=("table", "ndjson", "value"), default_piped="ndjson")
        def read(context: Context) -> None:
            """Read."""
            context.out.write(f"{context.output}\n")

        add(read)
        assert run("probe").out == "ndjson\n"
        assert run("probe", "-o", "value").out == "value\n"
        assert run("probe", "-o", "json").status == exit_codes.USAGE
        monkeypatch.setenv("TXNCTL_OUTPUT", "table")
        assert run("probe").out == "table\n"
        monkeypatch.delenv("TXNCTL_OUTPUT")
        assert run("probe", terminal=True).out == "table\n"


class TestDeclarations:
    """Decorators note, in the order in which they are read."""

    def test_parameters_and_examples_keep_their_order(self) -> None:
        """From the top down."""

        @command
        @argument("first", help="1.")
        @option("--second", help="2.")
        @example("a")
        @example("b", "c", setup="d", exit_code=3)
        def probe(context: Context, first: str, second: str) -> None:
            """Probe."""

        declaration = declaration_of(probe)
        assert isinstance(declaration, Declaration)
        assert [names for _, names, _ in reversed(declaration.parameters)] == [("first",), ("--second",)]
        assert [(each.lines, each.setup, each.exit_code) for each in declaration.examples] == [
            (("a",), (), 0),
            (("b", "c"), ("d",), 3),
        ]
        assert probe.__name__ == "probe"

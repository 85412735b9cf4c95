"""Shared options: `txnctl/cli/shared_options.py`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.txnctl.cli.options_steps import FIELDS
from txnctl.cli import exit_codes
from txnctl.cli.context import Context
from txnctl.cli.declaration import command
from txnctl.cli.decorators import (
    administrative,
    changes_store,
    effect,
    forcible,
    option,
    output,
    reads_store,
)


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

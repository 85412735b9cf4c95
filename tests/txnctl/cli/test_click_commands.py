"""Click commands: `txnctl/cli/click_commands.py`."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.txnctl.cli.cli_steps import FIELDS
from txnctl.cli import exit_codes
from txnctl.cli.context import Context
from txnctl.cli.declaration import command
from txnctl.cli.decorators import argument, effect, option, output, passes_arguments


class TestSharedOptions:
    """--store and its like, before and after the verb."""

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (("--store", "/a", "config", "show"), "/a"),
            (("config", "--store", "/b", "show"), "/b"),
            (("config", "show", "--store", "/c"), "/c"),
            (("--store", "/a", "config", "show", "--store", "/c"), "/c"),
        ],
    )
    def test_the_last_store_on_the_line_counts(self, run: Any, words: tuple[str, ...], expected: str) -> None:
        """Wherever it stands."""
        rows = {row["name"]: row for row in run(*words, "-o", "json").json}
        assert rows["store"]["value"] == expected
        assert rows["store"]["source"] == "option --store"

    def test_an_option_before_the_verb_beats_the_environment(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """TXNCTL_STORE stands for --store, it does not override one."""
        monkeypatch.setenv("TXNCTL_STORE", "/from/environment")
        assert self.store(run, "--store", "/typed", "config", "show") == ("/typed", "option --store")
        assert self.store(run, "config", "show") == ("/from/environment", "environment TXNCTL_STORE")

    def test_the_default_store_follows_xdg(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """An empty variable is an unset one, and a relative XDG_DATA_HOME is none."""
        home = os.environ["HOME"]
        monkeypatch.setenv("TXNCTL_STORE", "")
        assert self.store(run, "config", "show") == (f"{home}/.local/share/txnctl/store", "default")
        monkeypatch.setenv("XDG_DATA_HOME", "relative")
        assert self.store(run, "config", "show") == (f"{home}/.local/share/txnctl/store", "default")
        monkeypatch.setenv("XDG_DATA_HOME", "/data")
        assert self.store(run, "config", "show") == ("/data/txnctl/store", "default")

    def store(self, run: Any, *words: str) -> tuple[str, str]:
        """Value and source of the store in `config show`."""
        row = next(row for row in run(*words, "-o", "json").json if row["name"] == "store")
        return row["value"], row["source"]

    def test_a_bad_variable_is_named(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """TXNCTL_OUTPUT that no command knows is bad input."""
        monkeypatch.setenv("TXNCTL_OUTPUT", "yaml")
        outcome = run("errors", "list")
        assert outcome.status == 2
        assert "TXNCTL_OUTPUT: 'yaml' is not a format" in outcome.err

    @pytest.mark.parametrize("text", ["JSON", "Json", "json"])
    def test_a_variable_takes_what_its_option_takes(
        self, run: Any, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        """In every spelling, also for the report of an error."""
        typed = run("errors", "explain", "nothing-such", "-o", text), run("errors", "list", "-o", text)
        monkeypatch.setenv("TXNCTL_OUTPUT", text)
        assert run("errors", "list").json == typed[1].json
        assert run("errors", "explain", "nothing-such").error == typed[0].error

    def test_a_format_of_other_commands_falls_back(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """TXNCTL_OUTPUT=value is for consume; errors list prints its table."""
        monkeypatch.setenv("TXNCTL_OUTPUT", "value")
        assert run("errors", "list").out.startswith("CODE ")

    def test_output_help_asks_for_no_argument(self, run: Any) -> None:
        """`-o help` prints the fields with their types, whatever else is missing."""
        outcome = run("errors", "explain", "-o", "help")
        assert outcome.status == 0
        lines = outcome.out.splitlines()
        assert lines[0].split() == ["FIELD", "TYPE", "WHAT", "IT", "SAYS"]
        assert lines[2].split()[:2] == ["exitCode", "integer"]

    @pytest.mark.parametrize(
        "words", [("-o", "json"), ("-ojson",), ("-o=json",), ("--output", "json"), ("--output=json",)]
    )
    def test_every_spelling_of_the_format(self, run: Any, words: tuple[str, ...]) -> None:
        """Short, glued, with an equals sign, long."""
        assert run("errors", "explain", "usage", *words).json["exitCode"] == 2


class TestPassedArguments:
    """`run CMD -x`: what belongs to another command is not looked at."""

    def test_options_after_the_command_are_its_own(self, run: Any, add: Any) -> None:
        """With and without the dashes."""

        @command
        @passes_arguments
        @option("--label", help="A label.")
        @argument("words", nargs=-1, help="A command.")
        @effect("reads")
        @output(FIELDS, name_field="name")
        def execute(context: Context, label: str | None, words: tuple[str, ...]) -> None:
            """Run."""
            context.show({"name": f"{label} {list(words)}"})

        add(execute)
        expected = "a ['cmd', '-o', 'x', '--label', 'b']\n"
        assert run("probe", "-o", "name", "--label", "a", "cmd", "-o", "x", "--label", "b").out == expected
        assert (
            run("probe", "-o", "name", "--label", "a", "--", "cmd", "-o", "x", "--label", "b").out == expected
        )

    @pytest.mark.parametrize(
        "words",
        [
            ("topic", "--label", "a", "-y", "--", "cmd", "-o", "x", "--label", "b"),
            ("topic", "--label", "a", "-y", "cmd", "-o", "x", "--label", "b"),
            ("--label=a", "-y", "topic", "cmd", "-o", "x", "--label", "b"),
            ("-y", "topic", "--label", "a", "cmd", "-o", "x", "--label", "b"),
        ],
    )
    def test_what_stands_before_the_command_is_not(self, run: Any, add: Any, words: tuple[str, ...]) -> None:
        """A name of our own, with options on either side of it, as in `producers lead TOPIC --timeout 5s CMD -x`."""

        @command
        @passes_arguments
        @argument("name", help="A name.")
        @argument("words", nargs=-1, required=True, help="A command.")
        @option("--label", help="A label.")
        @effect("writes")
        @output(FIELDS, name_field="name")
        def execute(context: Context, name: str, label: str | None, words: tuple[str, ...]) -> None:
            """Run."""
            context.show({"name": f"{name} {label} {list(words)}"})

        add(execute)
        assert run("probe", "-o", "name", *words).out == "topic a ['cmd', '-o', 'x', '--label', 'b']\n"
        assert run("probe", "topic", "--nonsense", "cmd").status == exit_codes.USAGE
        assert run("probe", "topic").status == exit_codes.USAGE


class TestUsageErrors:
    """The hint of a usage error is a command that works."""

    @pytest.mark.parametrize(
        ("words", "named"),
        [
            (("transactions", "list", "--label"), "txnctl transactions list --label job=loader"),
            (("produce", "orders", "-m"), "txnctl produce orders -m text"),
            (("transactions", "list", "--ended=x"), "txnctl transactions list --ended"),
            (("topics", "--color"), "txnctl topics --color auto --help"),
            (("--store",), "txnctl --store directory --help"),
        ],
    )
    def test_an_option_without_its_value_is_shown_with_one(
        self, run: Any, words: tuple[str, ...], named: str
    ) -> None:
        """Click raises these errors without the context of the command."""
        outcome = run(*words)
        assert outcome.status == exit_codes.USAGE
        assert outcome.err.endswith(f": {named}\n")

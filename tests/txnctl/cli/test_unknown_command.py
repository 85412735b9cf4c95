"""Unknown command: `txnctl/cli/unknown_command.py`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.txnctl.cli.cli_steps import FIELDS
from txnctl import __version__
from txnctl.cli import exit_codes
from txnctl.cli.aliases import ALIASES
from txnctl.cli.command_table import COMMANDS, SECTIONS
from txnctl.cli.context import Context
from txnctl.cli.declaration import Group
from txnctl.cli.decorators import effect, output


class TestNames:
    """Commands are found by name, alias, or told what is near."""

    @pytest.mark.parametrize("words", [(), ("-h",), ("--help",)])
    def test_help_lists_the_tree_in_the_order_of_the_contract(self, run: Any, words: tuple[str, ...]) -> None:
        """Alone, with -h or --help, txnctl prints its help on standard output and succeeds."""
        outcome = run(*words)
        assert outcome.status == exit_codes.DONE
        assert outcome.err == ""
        listed = [
            line.split()[0]
            for line in outcome.out.partition(f"{SECTIONS[0].title}:\n")[2].splitlines()
            if line[2:3].strip()
        ]
        assert [name for name in listed if name in COMMANDS] == [
            name for section in SECTIONS for name in section.names
        ]
        assert sorted(name for section in SECTIONS for name in section.names) == sorted(COMMANDS)

    def test_a_bare_group_prints_its_help_and_succeeds(self, run: Any) -> None:
        """`txnctl errors` is no usage error."""
        outcome = run("errors")
        assert outcome.status == 0
        assert "explain" in outcome.out

    def test_an_alias_is_the_command_it_stands_for(self, run: Any) -> None:
        """`errors ls` is `errors list`, and every alias points at something."""
        assert run("errors", "ls", "-o", "json").json == run("errors", "list", "-o", "json").json
        assert {ALIASES["txn"], ALIASES["subs"]} <= set(COMMANDS)

    def test_an_alias_runs_under_the_full_name(self, run: Any, add: Any) -> None:
        """Messages and records name the command as the documentation does."""
        probe = Group("probe", "A probe.")

        @probe.command("list")
        @effect("reads")
        @output(FIELDS, name_field="name")
        def list_(context: Context) -> None:
            """List."""
            context.show({"name": context.program})

        add(probe)
        assert run("probe", "ls", "-o", "name").out == "txnctl probe list\n"

    @pytest.mark.parametrize(
        ("words", "near"),
        [
            (("topcs",), "topics"),
            (("errors", "explan"), "explain"),
            (("trans",), "transactions"),
            (("sub",), "subs"),
            (("verify",), "did you mean txnctl store verify?"),
            (("explain",), "did you mean txnctl transactions explain or txnctl errors explain?"),
            (("fence",), "did you mean txnctl producers fence?"),
            (("ls",), "did you mean a command of topics, subscriptions, "),
        ],
    )
    def test_an_unknown_command_is_told_what_is_near(
        self, run: Any, words: tuple[str, ...], near: str
    ) -> None:
        """Usage errors are exit 2, on standard error alone, and suggest."""
        outcome = run(*words)
        assert outcome.status == exit_codes.USAGE
        assert outcome.out == ""
        assert outcome.err.startswith(
            f"txnctl: error: no such command: txnctl {' '.join(words)}; did you mean "
        )
        assert near in outcome.err

    @pytest.mark.parametrize(
        ("words", "hint"),
        [
            (("doctor", "--json"), "Did you mean -o json? txnctl doctor -o json"),
            (("topics", "list", "--wide"), "Did you mean -o wide? txnctl topics list -o wide"),
            (
                ("audit", "--since", "2h"),
                "Options of a command stand after it: txnctl audit list --since 2h",
            ),
            (("help", "abort"), "Try: txnctl help transactions abort"),
            (("topics", "tail", "t"), "Try: txnctl topics log t"),
            (("subs", "reset", "t", "s", "latest"), "Try: txnctl subscriptions seek t s latest --dry-run"),
            (("kill", "0:3"), "Try: txnctl transactions abort 0:3 --dry-run"),
            (("stuck",), "Try: txnctl doctor"),
            (("errors", "writer-busy"), "Try: txnctl errors explain writer-busy"),
        ],
    )
    def test_habits_of_other_tools_lead_to_a_line_that_runs(
        self, run: Any, words: tuple[str, ...], hint: str
    ) -> None:
        """An option of the output, one before its command, help without the group, words of other tools, a code."""
        outcome = run(*words)
        assert outcome.status == exit_codes.USAGE
        assert outcome.err.endswith(f"txnctl: hint: {hint}\n")

    def test_an_unknown_option_is_told_what_is_near(self, run: Any) -> None:
        """So are unknown options."""
        outcome = run("errors", "list", "--outptu", "json")
        assert outcome.status == 2
        assert "--output" in outcome.err

    def test_help_of_a_command_says_what_it_does_and_shows_examples(self, run: Any) -> None:
        """Effect and examples are part of every help."""
        text = run("errors", "explain", "-h").out
        assert "Reads only: it changes nothing" in text
        assert "Examples:\n  txnctl errors explain writer-busy\n" in text

    def test_version_option(self, run: Any) -> None:
        """--version prints the version alone."""
        assert run("--version").out == f"txnctl {__version__}\n"

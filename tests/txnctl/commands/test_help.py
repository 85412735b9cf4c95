"""`txnctl help`, and the help of groups."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from txnctl.cli.command_table import SECTIONS
from txnctl.generate.tree import pages


@pytest.mark.parametrize(
    "words", [(), ("topics",), ("transactions", "abort"), ("txn", "ls"), ("help",)], ids=" ".join
)
def test_help_is_the_help_of_the_command(run: Any, words: tuple[str, ...]) -> None:
    """The same text as with --help, aliases included."""
    outcome = run("help", *words)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == run(*words, "--help").out


def test_unknown_words(run: Any) -> None:
    """As the command line itself would say it."""
    outcome = run("help", "topics", "creat")
    assert outcome.status == 2
    assert "no such command: txnctl topics creat; did you mean create" in outcome.err
    assert outcome.err.endswith("hint: Try: txnctl help topics create\n")
    assert run("help", "transactios").err.endswith("hint: Try: txnctl help transactions\n")
    assert run("help", "topics", "zzz").err.endswith("hint: It has these: txnctl topics --help\n")
    assert run("help", "explain").err.endswith("hint: Try: txnctl help transactions explain\n")


def test_words_after_a_command(run: Any) -> None:
    """`help produce orders` is the help of produce."""
    assert run("help", "produce", "orders").out == run("produce", "--help").out


def test_examples_of_groups_are_examples_of_their_commands(run: Any) -> None:
    """So that each is run by the test of the examples; and every group has some, and says where to read on."""
    known = {
        line
        for page in pages()
        for example in getattr(page.command, "examples", ())
        for line in example.lines
    }
    groups = [page for page in pages() if not hasattr(page.command, "examples") and len(page.path) == 2]
    assert len(groups) > 5
    for page in groups:
        text = run(*page.path[1:], "--help").out
        examples, _, rest = text.partition("Examples:\n")[2].partition("\n\n")
        lines = examples.replace("\\\n", "").splitlines()
        assert lines, page.title
        for line in lines:
            assert shlex.split(line) in [shlex.split(one) for one in known], line
        assert f"txnctl help {page.path[1]} COMMAND" in rest
        assert "man 7" in rest


@pytest.mark.usefixtures("path")
def test_the_examples_of_the_top_level_work(run: Any) -> None:
    """One for each group of commands, in the order of a first use."""
    for section in reversed(SECTIONS):
        words = shlex.split(section.example)[1:]
        assert words[0] in section.names
    assert run(*shlex.split(SECTIONS[0].example)[1:]).status == 0
    assert run(*shlex.split(SECTIONS[1].example)[1:]).status == 0
    assert run(*shlex.split(SECTIONS[2].example)[1:]).status == 0

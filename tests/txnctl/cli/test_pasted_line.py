"""Hints that are pasted do no harm: `txnctl/cli/pasted_line.py`."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

TOKEN = "01234567-1-1-0123456789abcdef"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("topics delete orders --yes --simulate", "topics delete orders --yes --dry-run"),
        ("topics delete orders --yes -N", "topics delete orders --yes --dry-run"),
        ("topics update orders --yes", "topics truncate orders --yes --dry-run"),
        ("topics rm orders --yes", "topics trim orders --yes --dry-run"),
        ("topics delete orders --dry", "topics delete orders --dry-run"),
        ("subscriptions ack orders billing x", "subscriptions ack orders billing 12:4471 --dry-run"),
        ("--simulate topics delete orders", "topics delete orders --dry-run"),
        ("topics peek orders --zzzzzz", "topics peek orders"),
        ("produce orders --cerate", "produce orders --create"),
    ],
)
def test_a_command_of_an_operator_is_shown_as_a_dry_run(run: Any, words: str, line: str) -> None:
    """A correction drops `--simulate`, and guesses commands and values; other commands are shown as they are."""
    outcome = run(*words.split())
    assert outcome.status == 2
    assert outcome.err.endswith(f" txnctl {line}\n")


def test_a_command_without_a_dry_run_says_so(run: Any) -> None:
    """Its line changes the store."""
    outcome = run("tables", "rm", "accounts", "B1", "--dry-run")
    assert outcome.err.endswith("There is no dry run of it; this runs it: txnctl tables rm accounts B1\n")


@pytest.mark.parametrize(
    "words",
    [
        "producers close --sesion {}",
        "producers close --sesion={}",
        "producers close {} --bad",
        "producers clse {}",
        "producrs close --token {}",
        "produce orders --sesion {} --cerate",
        "producer orders --session {}",
        "--sesion {} produce orders",
    ],
)
def test_no_hint_repeats_the_token_of_a_session(run: Any, words: str) -> None:
    """Behind a misspelled option or command neither, nor as an argument."""
    outcome = run(*shlex.split(words.format(TOKEN)))
    assert outcome.status == 2
    assert " txnctl " in outcome.err.partition("hint: ")[2]
    assert TOKEN not in outcome.err.replace(" \\\n", "")

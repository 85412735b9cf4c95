"""Two options together: a refusal by the command itself ends in a command line that is no usage error."""

from __future__ import annotations

import re
import shlex
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.txnctl.test_usage_errors import COMMANDS, needed, options
from txnctl.cli.click_commands import Option
from txnctl.cli.sample_values import sample_value
from txnctl.generate.tree import Page

ENDLESS = {"--follow", "--help", "--json-schema", "--exec", "--watch", "--timeout", "--session-file"}
"""Options that wait, run a program, or leave the command."""
TITLES = (
    "audit list",
    "check",
    "consume",
    "produce",
    "report",
    "store space",
    "subscriptions lag",
    "tables changes",
    "tables get",
    "tables put",
    "tables scan",
    "topics compact",
    "topics config",
    "topics log",
    "topics peek",
    "transactions abort",
    "transactions history",
    "transactions list",
)


@pytest.fixture
def path(path: Path, run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A store with the names of the samples; files are written beside it."""
    monkeypatch.chdir(tmp_path)
    for line in (
        "topics create orders",
        "subscriptions create orders billing",
        "tables create accounts",
        "produce orders -m hello",
    ):
        assert run(*line.split()).status == 0, line
    return path


def pairs(page: Page) -> list[list[str]]:
    """Two options each, with samples of their values."""
    own = [each for each in options(page) if not each.hidden and not ENDLESS & set(each.opts)]
    return [typed(first, page) + typed(second, page) for first, second in combinations(own, 2)]


def typed(option: Option, page: Page) -> list[str]:
    return [option.opts[-1], *([] if option.is_flag else [sample_value(option, page.context)])]


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("title", TITLES)
def test_a_refused_pair_ends_in_a_line_that_is_taken(run: Any, title: str) -> None:
    """Of all pairs of options of the command: errors that name an option of the command."""
    page = COMMANDS[f"txnctl {title}"]
    names = {name for option in options(page) for name in option.opts}
    for pair in pairs(page):
        outcome = run(*title.split(), *needed(page), *pair)
        if outcome.status != 2 or not names & set(re.findall(r"--?[a-z][a-z-]*", outcome.err)):
            continue
        # Each of two options may be out of place, and a command reports one of them.
        for _ in pair:
            if outcome.status == 2:
                outcome = run(*shown(outcome.err, title))
        assert outcome.status != 2, (title, pair, outcome)


def shown(error: str, title: str) -> list[str]:
    """The command line at the end of the hint, which is of the same command."""
    assert "hint: " in error
    words = shlex.split(error.replace(" \\\n ", " ").rstrip().rpartition("txnctl ")[2].rstrip("`"))
    assert words[: len(title.split())] == title.split(), error
    return words

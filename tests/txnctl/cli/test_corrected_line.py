"""Corrected command lines: `txnctl/cli/corrected_line.py`. Over all options: `tests/txnctl/test_usage_errors.py`."""

from __future__ import annotations

from typing import Any

import click
import pytest

from storage.errors import BadInput
from txnctl.cli.corrected_line import below, corrected, near_options
from txnctl.cli.main import root
from txnctl.generate.tree import pages
from txnctl.output.shell import name_store, named_store

PAGES = {page.title: page for page in pages()}


@pytest.mark.parametrize(
    ("title", "words", "line"),
    [
        ("topics peek", "orders --cuont 3", "orders --count 3"),
        ("topics peek", "orders -n x --from y", "orders -n 10 --from earliest"),
        ("topics peek", "orders -nx", "orders -n10"),
        ("topics peek", "a b --limit", "a --limit 10"),
        ("subscriptions ack", "orders billing x", "orders billing 12:4471"),
        ("pipeline ingest", "input.csv", "input.csv orders"),
        ("tables put", "accounts -5 7 8", "accounts -5 7"),
        ("transactions run", "--retries x -- ls -l", "--retries 10 -- ls -l"),
    ],
)
def test_a_line_is_corrected_step_by_step(title: str, words: str, line: str) -> None:
    """Until the parser takes it; right words stay as typed."""
    page = PAGES[f"txnctl {title}"]
    with pytest.raises((click.UsageError, BadInput)) as caught:
        page.command.make_context(page.path[-1], words.split(), parent=page.context.parent)
    assert corrected(page.context, words.split(), caught.value) == line.split()


def test_a_trial_names_no_store_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Its `--store` is that of a line which nobody has typed to the end."""
    name_store(None)
    words = below(click.Context(root(), info_name="txnctl"), ["topics", "stats", "--store", "/a", "--help"])
    assert words == ["topics", "stats", "--store", "/a", "--help"]
    assert (named_store(), capsys.readouterr().out) == (None, "")


def test_a_trial_may_meet_help_among_wrong_options(run: Any) -> None:
    """Help that a trial prints goes nowhere, and the error stays that of the typed line."""
    outcome = run("check", "--from", "--help", "--reverse", "0ms", "--to")
    assert outcome.status == 2
    assert "unexpected" not in outcome.err
    assert outcome.out == ""


def test_near_options_are_those_that_begin_so_or_the_nearest() -> None:
    """Of a short name none is near, and of what is hidden nothing is told."""
    config, listed = PAGES["txnctl topics config"].context, PAGES["txnctl transactions list"].context
    assert near_options(config, "--retention") == ["--retention-time", "--retention-size", "--retention-hard"]
    assert near_options(listed, "--lable") == ["--label"]
    assert near_options(listed, "-z") == []
    assert near_options(listed, "--limti") == []

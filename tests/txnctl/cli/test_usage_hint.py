"""Hints of usage errors: `txnctl/cli/usage_hint.py`. Over all options: `tests/txnctl/test_usage_errors.py`."""

from __future__ import annotations

from typing import Any

TOKEN = "01234567-1-1-0123456789abcdef"


def test_the_token_of_a_session_is_not_repeated(run: Any) -> None:
    """It is a secret; the line is shown without."""
    outcome = run("produce", "orders", "--session", TOKEN, "--cerate")
    assert TOKEN not in outcome.err
    assert outcome.err.endswith(" txnctl produce orders --create\n")


def test_a_long_line_is_shown_with_samples_alone(run: Any) -> None:
    """A message of many lines is not repeated either."""
    for message in ("x" * 5000, "a\nb"):
        outcome = run("produce", "orders", "-m", message, "--cerate")
        assert outcome.status == 2
        assert message not in outcome.err
        assert outcome.err.endswith(" txnctl produce orders\n")


def test_a_placeholder_reason_ends_in_the_line_with_a_reason(run: Any) -> None:
    """A plan shows `--reason "..."`; pasted unchanged, it is refused with a line that can be pasted."""
    outcome = run("transactions", "abort", "0:2", "--if-version", "3", "--reason", "...")
    assert outcome.status == 2
    assert "--reason: '...' is a placeholder, not a reason" in outcome.err
    assert outcome.err.endswith(
        " txnctl transactions abort 0:2 --if-version 3 --reason 'hangs since the deploy' --dry-run\n"
    )


def test_options_that_do_not_go_together_end_in_an_example(run: Any, store_path: str) -> None:
    """The error of a command itself, which the parser has taken."""
    outcome = run("subscriptions", "update", "orders", "billing", "--store", store_path)
    assert outcome.status == 2
    assert f"txnctl --store {store_path} subscriptions update orders billing" in outcome.err

"""The options that choose transactions."""

from __future__ import annotations

from typing import Any

import pytest

from storage.errors import InvalidValue
from txnctl.commands.transactions.choice import TransactionChoice


def choice(**given: Any) -> TransactionChoice:
    return TransactionChoice({"topic": None, "label": (), "owner": None, "older_than": None} | given)


def test_nothing_given() -> None:
    """No argument, no words."""
    assert (choice().is_given(), choice().given(), choice().words()) == (False, {}, "")


@pytest.mark.parametrize(
    ("options", "arguments", "words"),
    [
        ({"topic": "orders"}, {"topic": "orders"}, " on orders"),
        (
            {"label": (("job", "a"), ("run", "7"))},
            {"labels": {"job": "a", "run": "7"}},
            " with label job=a, run=7",
        ),
        ({"owner": "anna@"}, {"owner": "anna@"}, " of an owner with 'anna@'"),
        ({"older_than": 0.0}, {"older_than": 0.0}, " older than 0ms"),
    ],
)
def test_each_option(options: dict[str, Any], arguments: dict[str, Any], words: str) -> None:
    """An option becomes an argument of the lists, and words of a note."""
    chosen = choice(**options)
    assert (chosen.is_given(), chosen.given(), chosen.words()) == (True, arguments, words)


def test_a_label_twice() -> None:
    """One name with two values matches nothing: refused, as `begin` does."""
    with pytest.raises(InvalidValue, match="--label: 'a' is given twice"):
        choice(label=(("a", "1"), ("a", "2"))).given()

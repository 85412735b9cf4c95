"""The tree of errors: codes that are names, exit codes that agree with the tree, and a docstring that shows it."""

from __future__ import annotations

import re

import pytest

from storage import errors
from storage.errors import ALL, Busy, TxnctlError


def test_every_class_has_a_code_of_its_own() -> None:
    """By which programs tell errors apart."""
    classes = [
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, TxnctlError)
    ]
    assert len({kind.code for kind in classes}) == len(classes)
    assert {kind.code: kind for kind in classes}.items() <= ALL.items()


@pytest.mark.parametrize("kind", [each for each in ALL.values() if each.__module__ == "storage.errors"])
def test_a_code_is_the_name_of_its_class(kind: type[TxnctlError]) -> None:
    """In words with hyphens; the root is `error`."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__.removesuffix("Error")).lower()
    assert kind.code in (words, "error", "invalid-transaction-id", "not-a-store")


@pytest.mark.parametrize("kind", ALL.values())
def test_a_class_exits_as_its_kind(kind: type[TxnctlError]) -> None:
    """What a script does about an error does not depend on how much of it is known."""
    parents = [each for each in kind.__mro__[1:] if issubclass(each, TxnctlError) and each is not TxnctlError]
    assert {each.exit_code for each in parents} <= {kind.exit_code}


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """Names and exit codes."""
    text = errors.__doc__ or ""
    for kind in TxnctlError.__subclasses__():
        if kind.__module__ == "storage.errors":
            assert f" {kind.__name__} ({kind.exit_code})" in text
    named = set(re.findall(r"[A-Z][A-Za-z]+", text.split("A class exists")[0])) - {"The", "Numbers"}
    assert named == {kind.__name__ for kind in ALL.values() if kind.__module__ == "storage.errors"}


def test_busy_may_be_tried_again() -> None:
    """In every form."""
    assert all(kind.retryable for kind in ALL.values() if issubclass(kind, Busy))


def test_an_error_carries_words_and_facts() -> None:
    """The words for people, the facts for programs."""
    error = TxnctlError("it failed", hint="Try again.", topic="t", count=3)
    assert (str(error), error.message, error.hint) == ("it failed", "it failed", "Try again.")
    assert error.details == {"topic": "t", "count": 3}
    assert TxnctlError("x").hint is None

"""Actions, keywords and hints as the shell has them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from storage.actions import Action, Hint, Keyword
from storage.errors import NotFound
from txnctl.output import render, shell
from txnctl.output.escape import printable_row

EXPLAIN = Action("store.reports.explain_transaction", "0:7")


class Advised(NamedTuple):
    """A row with an action and a hint."""

    why: str
    action: Action | None


ROW = Advised(Hint("Look: {}, \x1b.", EXPLAIN), EXPLAIN)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Action("store.create_topic", "a b"), "txnctl topics create 'a b'"),
        (Action("store.reports.wait_for_transaction", "0:7", timeout=60), "txnctl transactions wait 0:7 --timeout 1m"),
        (Keyword("dead_letter_topic"), "--dead-letter-topic"),
        (Keyword("path"), "--store"),
        (Keyword("reason", "it hangs"), "--reason 'it hangs'"),
        (Hint("Use {}: {}", Keyword("force", True), Hint("see {}.", EXPLAIN)), "Use --force: see txnctl transactions explain 0:7."),
        ("as it is", "as it is"),
    ],
)  # fmt: skip
def test_words(value: Any, text: str) -> None:
    """Quoted where the shell needs quotes."""
    assert shell.spell(value) == text


def test_a_line_has_the_options_that_are_given() -> None:
    """None and False are left out; an ellipsis is a text to fill in; a name like an option follows `--`."""
    line = shell.line("topics delete", "a b", force=False, yes=True, reason=..., if_version="3", n=None)
    assert line == """txnctl topics delete 'a b' --yes --reason "..." --if-version 3"""
    assert shell.line("topics peek", "-t", n="2") == "txnctl topics peek -n 2 -- -t"


def test_a_named_store_stands_before_the_verb() -> None:
    """Of commands that act on a store; a line that is cut at its end loses no store."""
    shell.name_store("a store")
    try:
        assert shell.line("topics list") == "txnctl --store 'a store' topics list"
        assert shell.command(EXPLAIN) == "txnctl --store 'a store' transactions explain 0:7"
        assert shell.command(Action("Store.create")) == "txnctl --store 'a store' store init"
        for other in (
            Action("resume_process", 7), Action("explain_error", "internal"), Action("Store.create", "b"),
            Action("store.maintenance.verify_store", path="b"),
        ):  # fmt: skip
            assert "a store" not in shell.command(other)
        assert shell.name_in("`txnctl store gc`, txnctl errors") == (
            "`txnctl --store 'a store' store gc`, txnctl --store 'a store' errors"
        )
    finally:
        shell.name_store(None)
    assert shell.name_in("`txnctl store gc`") == "`txnctl store gc`"
    assert shell.line("topics list") == "txnctl topics list"


def test_the_hint_of_an_error() -> None:
    """With commands, or none."""
    assert shell.hint_of(NotFound("gone", hint=Hint("`{}`", EXPLAIN))) == "`txnctl transactions explain 0:7`"
    assert shell.hint_of(NotFound("gone")) is None


def test_a_row_has_the_command_in_json_and_in_tables() -> None:
    """JSON under `command`; in tables harmless."""
    shown = render.one(ROW, "ndjson", render.RowForm((), "why"), None)
    command = "txnctl transactions explain 0:7"
    assert shown == f'{{"why":"Look: {command}, \\u001b.","command":"{command}"}}\n'
    assert printable_row(ROW) == (f"Look: {command}, \\x1b.", command)
    assert printable_row(Advised("", None)) == ("", None)

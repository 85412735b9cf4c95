"""The choices at the live screen."""

from __future__ import annotations

from typing import Any

import pytest

from storage.reports.facts import TopicFacts
from storage.values.position import Position
from txnctl.commands.health.top_choice import PROBLEMS, TOPICS, LiveChoice
from txnctl.commands.health.top_tables import TopicLine


def topic(name: str, *, blocked: int = 0, messages: int = 0) -> TopicLine:
    """A line of the table of topics."""
    start = Position(1, -1)
    facts = TopicFacts(
        name, name, messages, start, start, None, 0, blocked, None, 0, 0, 0, None, None, []
    )  # fmt: skip
    return TopicLine(facts, 0, None)


def names(lines: list[TopicLine]) -> list[str]:
    return [line.facts.name for line in lines]


ROWS: tuple[list[Any], ...] = (
    [],
    [topic("b", blocked=1), topic("a", messages=9), topic("c", blocked=5, messages=1)],
    [],
    [],
)


@pytest.fixture
def choice() -> LiveChoice:
    """The topics are chosen, as without problems."""
    return LiveChoice(has_problems=False)


def test_rows_that_need_attention_come_first(choice: LiveChoice) -> None:
    """Other orders follow by `s`, each backwards by `r`; the first one comes again."""
    assert names(choice.arranged(TOPICS, ROWS[1])) == ["c", "b", "a"]
    choice.press("s", ROWS)
    choice.press("s", ROWS)
    assert choice.order_name(TOPICS) == "messages"
    assert names(choice.arranged(TOPICS, ROWS[1])) == ["a", "c", "b"]
    choice.press("s", ROWS)
    assert names(choice.arranged(TOPICS, ROWS[1])) == ["a", "b", "c"]
    choice.press("r", ROWS)
    assert choice.order_name(TOPICS) == "name, backwards"
    assert names(choice.arranged(TOPICS, ROWS[1])) == ["c", "b", "a"]
    choice.press("s", ROWS)
    assert choice.order_name(TOPICS).startswith("attention")


def test_a_chosen_row_stays_chosen(choice: LiveChoice) -> None:
    """While the order changes and rows come; where the row is gone, the one in its place is chosen."""
    choice.press("down", ROWS)
    assert choice.number(TOPICS, choice.arranged(TOPICS, ROWS[1])) == 1
    choice.press("r", ROWS)
    choice.press("s", ROWS)
    arranged = choice.arranged(TOPICS, [topic("0", messages=99), *ROWS[1]])
    assert arranged[choice.number(TOPICS, arranged)].facts.name == "b"
    gone = [line for line in arranged if line.facts.name != "b"]
    assert 0 <= choice.number(TOPICS, gone) < len(gone)
    assert choice.number(TOPICS, []) == 0


def test_moves_end_at_the_ends(choice: LiveChoice) -> None:
    """By lines, by screens, to the ends, and in an empty table."""
    for keys, number in (
        (("up",), 0),
        (("end",), 2),
        (("down", "j"), 2),
        (("page-up",), 1),
        (("home", "down"), 1),
    ):
        for key in keys:
            choice.press(key, ROWS)
        assert choice.number(TOPICS, choice.arranged(TOPICS, ROWS[1])) == number, keys
    choice.press("3", ROWS)
    choice.press("down", ROWS)
    choice.press("enter", ROWS)
    assert choice.opened is None


def test_enter_opens_and_escape_goes_back(choice: LiveChoice) -> None:
    """`q` leaves from everywhere but the filter, where it is a letter."""
    choice.press("enter", ROWS)
    assert choice.opened == (TOPICS, ROWS[1][2])
    choice.press("down", ROWS)
    assert choice.offset == 1
    choice.press("escape", ROWS)
    assert choice.opened is None
    choice.press("?", ROWS)
    assert choice.shows_help
    choice.press("down", ROWS)
    assert (choice.shows_help, choice.help_offset) == (True, 1)
    choice.press("x", ROWS)
    assert not choice.shows_help
    for key in ("/", "q", "backspace", "C"):
        choice.press(key, ROWS)
    assert (choice.filter, choice.has_left) == ("C", False)
    assert names(choice.arranged(TOPICS, ROWS[1])) == ["c"], "letters match in either case"
    choice.press("enter", ROWS)
    assert not choice.is_typing
    choice.press("escape", ROWS)
    assert choice.filter == ""
    choice.press("?", ROWS)
    choice.press("q", ROWS)
    assert choice.has_left


def test_tab_and_numbers_choose_a_table(choice: LiveChoice) -> None:
    """The table below the problems stays when the problems are chosen; unknown keys change nothing."""
    for key, table, body in (
        ("tab", 2, 2), ("tab", 3, 3), ("tab", PROBLEMS, 3), ("back-tab", 3, 3), ("2", 1, 1), ("1", PROBLEMS, 1),
        ("9", PROBLEMS, 1), ("0", PROBLEMS, 1), ("", PROBLEMS, 1), ("resize", PROBLEMS, 1), ("²", PROBLEMS, 1),
    ):  # fmt: skip
        choice.press(key, ROWS)
        assert (choice.table, choice.body) == (table, body), key

"""Lines at the width of a terminal: prose wraps, commands break with a backslash, names stay whole."""

from __future__ import annotations

import shlex

import pytest

from txnctl.output.prose import Laid, continued, fitted, length, wrapped
from txnctl.output.shell import line


def test_away_from_a_terminal_a_line_stays_a_line() -> None:
    """However long."""
    assert wrapped("word " * 100, None) == ["word " * 100]
    assert list(fitted(["word " * 100], None)) == ["word " * 100]


def test_prose_wraps_between_words() -> None:
    """Further lines are two columns in; a name that is wider stays whole."""
    assert wrapped("some words, and more", 12) == ["some words,", "  and more"]
    assert wrapped(f"see {'x' * 20} there", 12) == ["see", f"  {'x' * 20}", "  there"]


def test_a_text_behind_a_label_stays_below_itself() -> None:
    """As in the lines of a report; spaces between facts are kept."""
    assert wrapped("  space    one word and another word", 30) == [
        "  space    one word and",
        "    another word",
    ]
    assert wrapped("  space    " + "word " * 10, 40)[1].startswith("           word")
    assert wrapped("  positions   first 1:0   last 12:4471", 30) == [
        "  positions   first 1:0   last",
        "    12:4471",
    ]


def test_a_command_in_prose_is_not_broken_like_prose() -> None:
    """In backquotes or worded by the shell's module: on one line, or with a backslash."""
    command = line("transactions explain", "0:1187")
    assert wrapped(f"Look at it: {command}.", 40) == ["Look at it:", f"  {command}."]
    assert wrapped("Look: `txnctl errors list` shows all of them.", 30) == [
        "Look: `txnctl errors list`", "  shows all of them."
    ]  # fmt: skip


@pytest.mark.parametrize("width", [30, 40, 60])
def test_a_broken_command_is_the_same_to_the_shell(width: int) -> None:
    """Joined as the shell joins lines, quotes included."""
    command = line(
        "transactions abort", "0:1187", if_version=18, reason="it's the wrong file, they say", fence=True
    )
    lines = wrapped(f"Run: {command}", width)
    assert all(each.endswith(" \\") for each in lines[:-1])
    joined = "\n".join(lines).removeprefix("Run: ").replace("\\\n", "")
    assert shlex.split(joined) == shlex.split(command)
    quoted = len('"it\'s the wrong file, they say"') + 14
    assert max(map(len, lines)) <= max(width, quoted)


def test_a_short_command_is_one_line() -> None:
    """Without a backslash."""
    assert continued("txnctl status", 80) == ["txnctl status"]


def test_styles_take_no_columns() -> None:
    """The line is as long as it is seen."""
    styled = "\x1b[1mbold\x1b[0m text"
    assert length(styled) == 9
    assert wrapped(styled, 9) == [styled]


def test_what_is_laid_out_stays() -> None:
    """A line of a table in full."""
    assert list(fitted([Laid("a row of a table"), "two\nlines"], 8)) == ["a row of a table", "two", "lines"]

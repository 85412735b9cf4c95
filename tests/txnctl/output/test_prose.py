"""Lines at the width of a terminal: prose wraps, commands break with a backslash, wide names are cut."""

from __future__ import annotations

import re
import shlex

import pytest

from txnctl.output.prose import Laid, continued, cut, fitted, length, wrapped
from txnctl.output.shell import line


def test_away_from_a_terminal_a_line_stays_a_line() -> None:
    """However long."""
    assert wrapped("word " * 100, None) == ["word " * 100]
    assert list(fitted(["word " * 100], None)) == ["word " * 100]


def test_prose_wraps_between_words() -> None:
    """Further lines are two columns in; a name that is wider shows begin and end."""
    assert wrapped("some words, and more", 12) == ["some words,", "  and more"]
    name = "abcdefghijklmnopqrstuvwxyz"
    assert wrapped(f"see {name}. There", 12) == ["see", "  abcde…xyz.", "  There"]
    assert wrapped(name, 9) == ["abcd…wxyz"]
    assert wrapped(f"  a name  {name}  has 12", 40) == [
        "  a name  abcdefghijklmnopqrstuvwxyz",
        "          has 12",
    ]
    assert wrapped(f"  a name  {name}  has 12", 34) == [
        "  a name  abcdefghijkl…pqrstuvwxyz",
        "          has 12",
    ]
    assert wrapped(f"see {name}", None, most=12) == ["see", f"  {name}"]
    assert wrapped(f"see {name}", 30, most=12) == ["see", f"  {name}"]
    assert wrapped(f"see {name}", 20, most=12) == ["see", "  abcdefghi…stuvwxyz"]


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


@pytest.mark.parametrize("width", range(12))
def test_what_is_cut_has_begin_and_end(width: int) -> None:
    """Styles stay, and take no columns."""
    name, styled = "abcdefghijk", "\x1b[1mabcdefgh\x1b[0mijk"
    shown = cut(name, width)
    assert len(shown) == max(1, min(width, len(name)))
    begin, _, end = shown.partition("…")
    assert name.startswith(begin)
    assert name.endswith(end)
    assert 0 <= len(begin) - len(end) <= (1 if "…" in shown else len(name))
    assert re.sub(r"\x1b\[\d*m", "", cut(styled, width)) == shown
    assert cut(styled, width).count("\x1b") == 2
    assert cut(name, 8, "...") == "abc...jk"


def test_styles_take_no_columns() -> None:
    """The line is as long as it is seen."""
    styled = "\x1b[1mbold\x1b[0m text"
    assert length(styled) == 9
    assert wrapped(styled, 9) == [styled]


def test_what_is_laid_out_stays() -> None:
    """A line of a table in full."""
    assert list(fitted([Laid("a row of a table"), "two\nlines"], 8)) == ["a row of a table", "two", "lines"]

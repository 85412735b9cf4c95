"""Screens: the first line, sections, verdicts in their colours, and the mark of a dry run."""

from __future__ import annotations

from txnctl.output.screen import (
    WIDTH,
    alarmed,
    dry_run_heading,
    heading,
    next_command,
    section,
    verdict,
    verdict_section,
)
from txnctl.output.table_layout import TextTable


class Marked:
    """Shows styles as tags, away from a terminal or on one of a width."""

    def __init__(self, width: int | None = None) -> None:
        self.width = width

    def style(self, text: str, *styles: str) -> str:
        return f"<{'+'.join(styles)}>{text}</>" if styles else text


class Plain(Marked):
    """Shows no styles."""

    def style(self, text: str, *styles: str) -> str:
        return text


def test_the_first_line_is_as_wide_as_a_report() -> None:
    """The time ends there; long facts push it on, two columns apart."""
    line = heading(Plain(), "orders", "3 messages", 0)
    assert line.startswith("orders      3 messages  ")
    assert "as of " in line
    assert len(line) == WIDTH
    assert "x  as of " in heading(Plain(), "orders", "x" * 90, 0)
    assert heading(Marked(), "orders", "facts", 0).startswith("<bold>orders</>      facts  ")


def test_the_time_of_a_report_has_its_own_line_where_both_do_not_fit() -> None:
    """Else the line ends where the terminal does."""
    assert len(heading(Plain(60), "orders", "3 messages", 0)) == 60
    facts, time = heading(Plain(60), "orders", "x" * 40, 0).split("\n")
    assert facts == f"orders      {'x' * 40}"
    assert time.startswith("   ")
    assert len(time) == 60


def table(*lines: str) -> TextTable:
    """A table with one line of headings, and a line a row."""
    return TextTable([], [lines[0]], [[line] for line in lines[1:]], ["note"])


def test_a_section_is_indented_under_dim_headings() -> None:
    """Line by line; what is said about the table is dim too."""
    assert list(section(Marked(), table("A  B", "1  2", "3  4"))) == [
        "  <dim>A  B</>", "  1  2", "  3  4", "  <dim>note</>"
    ]  # fmt: skip


def test_every_line_ends_with_its_verdict_in_colour() -> None:
    """Also where the word stands in the line before."""
    lines = list(verdict_section(Marked(), table("S  V", "ok  ok", "b  blocked", "c  strange")))
    assert lines[1:4] == ["  ok  <green>ok</>", "  b  <bold+red>blocked</>", "  c  strange"]
    assert verdict(Marked(), "behind") == "<yellow>behind</>"


def test_an_alarming_word_is_in_colour() -> None:
    """As a cell, not within one."""
    [_, first, second, _] = alarmed(Marked(), table("T  A", "1  DEAD", "DEADLY  x"), (("DEAD", "red"),))
    assert (first, second) == ("1  <red>DEAD</>", "DEADLY  x")


def test_a_report_ends_with_a_command() -> None:
    """To be typed as it stands."""
    assert next_command(Marked(), "txnctl status") == "Next: <cyan>txnctl status</>"


def test_a_dry_run_says_so_first() -> None:
    """A change says nothing."""
    assert list(dry_run_heading(Plain(), True)) == ["DRY RUN: nothing was changed.", ""]
    assert list(dry_run_heading(Plain(), False)) == []

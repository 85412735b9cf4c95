"""Screens: the first line, sections, verdicts in their colours, and the mark of a dry run."""

from __future__ import annotations

from txnctl.output.screen import (
    WIDTH,
    dry_run_heading,
    heading,
    next_command,
    section,
    verdict,
    verdict_section,
)


class Marked:
    """Shows styles as tags."""

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


def test_a_section_is_indented_under_dim_headings() -> None:
    """Line by line."""
    assert list(section(Marked(), "A  B\n1  2\n3  4")) == ["  <dim>A  B</>", "  1  2", "  3  4"]


def test_every_line_ends_with_its_verdict_in_colour() -> None:
    """Also where the word stands in the line before."""
    lines = list(
        verdict_section(Marked(), ["ok", "blocked", "strange"], "S  V\nok  ok\nb  blocked\nc  strange")
    )
    assert lines[1:] == ["  ok  <green>ok</>", "  b  <bold+red>blocked</>", "  c  strange"]
    assert verdict(Marked(), "behind") == "<yellow>behind</>"


def test_a_report_ends_with_a_command() -> None:
    """To be typed as it stands."""
    assert next_command(Marked(), "txnctl status") == "Next: <cyan>txnctl status</>"


def test_a_dry_run_says_so_first() -> None:
    """A change says nothing."""
    assert list(dry_run_heading(Plain(), True)) == ["DRY RUN: nothing was changed.", ""]
    assert list(dry_run_heading(Plain(), False)) == []

"""Reports for people: the heading with the time, sections, the colours of verdicts, the mark of a dry run."""

from __future__ import annotations

from typing import Protocol, TypeVar

from txnctl.output.timestamp import clock_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from txnctl.output.column import Column
    from txnctl.output.field import Field

R = TypeVar("R")


class Styles(Protocol):
    """The styles of one report."""

    def style(self, text: str, *styles: str) -> str:
        """The text in these styles, where colours are wanted."""


class Screen(Styles, Protocol):
    """Styles and tables of one report. The context of a command is one."""

    def table_of(
        self,
        rows: Sequence[R],
        columns: Iterable[Column[R] | Field],
        *,
        indent: int = 0,
        folds: bool = True,
    ) -> str:
        """The rows in columns, a heading above each column."""


VERDICT_STYLES = {
    "ok": ("green",),
    "behind": ("yellow",),
    "no-consumer": ("yellow",),
    "stopped": ("bold", "red"),
    "mixed": ("bold", "red"),
    "blocked": ("bold", "red"),
}
VERDICTS = tuple(reversed(VERDICT_STYLES))
"""Verdicts of subscriptions, the most alarming first."""

WAITS = ("blocked", "mixed")
"""Verdicts of subscriptions with messages behind an open transaction."""

WIDTH = 87
"""Columns of the first line of a report. The time of the report ends there."""


def heading(screen: Styles, name: str, facts: str, as_of_ms: int) -> str:
    """The first line of a report: name and facts on the left, the time of the report on the right."""
    left, as_of = f"{name:<10}  {facts}", f"as of {clock_time(as_of_ms)}"
    gap = " " * max(2, WIDTH - len(left) - len(as_of))
    return f"{screen.style(name, 'bold')}{left[len(name) :]}{gap}{screen.style(as_of, 'dim')}"


def section(screen: Styles, table: str) -> Iterator[str]:
    """A table below a heading: indented, the line of headings dim."""
    headings, *lines = table.splitlines()
    yield f"  {screen.style(headings, 'dim')}"
    yield from [f"  {line}" for line in lines]


def verdict_section(screen: Styles, verdicts: Sequence[str], table: str) -> Iterator[str]:
    """A section in which every line ends with a verdict, in the verdict's colour."""
    headings, *lines = table.splitlines()
    yield f"  {screen.style(headings, 'dim')}"
    for word, line in zip(verdicts, lines, strict=True):
        yield f"  {line.removesuffix(word)}{verdict(screen, word)}"


def verdict(screen: Styles, word: str) -> str:
    """A verdict in colour."""
    return screen.style(word, *VERDICT_STYLES.get(word, ()))


def next_command(screen: Styles, command: str) -> str:
    """The last line of a report: the command to type next."""
    return f"Next: {screen.style(command, 'cyan')}"


def dry_run_heading(screen: Styles, dry_run: bool) -> Iterator[str]:
    """The mark of a dry run above a report; nothing above a change."""
    if dry_run:
        yield screen.style("DRY RUN: nothing was changed.", "bold")
        yield ""

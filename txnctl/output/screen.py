"""Reports for people: the heading with the time, sections, the colours of verdicts, the mark of a dry run."""

from __future__ import annotations

from typing import Protocol, TypeVar

from storage.values.store_name import is_url
from txnctl.output.timestamp import clock_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from txnctl.output.column import Column
    from txnctl.output.field import Field
    from txnctl.output.table_layout import TextTable

R = TypeVar("R")


class Styles(Protocol):
    """The styles of one report."""

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None elsewhere."""

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
    ) -> TextTable:
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

WIDTH = 80
"""Columns of the first line of a report, where the terminal is no narrower. The time of the report ends there."""


def heading(screen: Styles, name: str, facts: str, as_of_ms: int) -> str:
    """The first line of a report: name and facts on the left, the time of the report on the right.

    On a narrow terminal the time may come on a line of its own.
    """
    left, as_of = f"{name:<10}  {facts}", f"as of {clock_time(as_of_ms)}"
    width = WIDTH if screen.width is None else min(WIDTH, screen.width)
    left_shown = f"{screen.style(name, 'bold')}{left[len(name) :]}"
    as_of_shown = screen.style(as_of, "dim")
    if screen.width is not None and len(left) + 2 + len(as_of) > width:
        return f"{left_shown}\n{' ' * (width - len(as_of))}{as_of_shown}"
    gap = " " * max(2, width - len(left) - len(as_of))
    return f"{left_shown}{gap}{as_of_shown}"


def store_title(path: str) -> str:
    """The short name of a store: the last part of its path, or its name and the hosts of its server."""
    from os.path import basename

    if not is_url(path):
        return basename(path) or path
    from urllib.parse import parse_qs, urlsplit

    parts = urlsplit(path)
    given = {name: values[0] for name, values in parse_qs(parts.query).items()}
    hosts = parts.netloc.rpartition("@")[2] or given.get("host") or given.get("service")
    return f"{given.get('store', path)} on {hosts or 'this host'}"


def section(screen: Styles, table: TextTable) -> TextTable:
    """A table below a heading: indented, the line of headings dim."""
    return table.changed(str, lambda line: screen.style(line, "dim"), indent=2)


def verdict_section(screen: Styles, table: TextTable) -> TextTable:
    """A section in which every row ends with a verdict, in the verdict's colour."""

    def coloured(line: str) -> str:
        before, _, word = line.rpartition("  ")
        return f"{before}  {verdict(screen, word)}" if word in VERDICT_STYLES else line

    return section(screen, table.changed(coloured))


def alarmed(screen: Styles, table: TextTable, alarms: Iterable[tuple[str, ...]]) -> TextTable:
    """The table with alarming words in colour: tuples of a word and its styles.

    Colours come after the layout: escape codes inside a cell would be escaped.
    """

    def coloured(line: str) -> str:
        for word, *styles in alarms:
            line = line.replace(f"  {word}", f"  {screen.style(word, *styles)}")
        return line

    return table.changed(coloured)


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

"""Output of the story: numbered acts, short sentences, commands to try, small tables, checks.

Output goes through a pair of functions, so that a narrator can be silent (`-o json`): the events never depend on the
output. Every check is recorded, printed or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from txnctl.output import human
from txnctl.output.escape import printable
from txnctl.output.progress import ProgressLine
from txnctl.output.prose import continued, wrapped
from txnctl.output.table_layout import LaidColumn, laid_out

_WIDTH = 96
_INDENT = 4
"""Of commands and tables."""


class Check(NamedTuple):
    """A condition of the story, with its expected and actual values."""

    name: str
    ok: bool
    expected: object
    actual: object


def _plain(text: str, style: str) -> str:  # noqa: ARG001 - the signature of a real style function
    return text


def _unwatched(total: int) -> ProgressLine:
    return ProgressLine("", total, "", watched=False)


class Narrator:
    """Prints the story, or stays silent without a function to write with.

    Args:
        width: of the terminal, in columns; None without one.
    """

    def __init__(
        self,
        write: Callable[[str], None] | None = None,
        *,
        style: Callable[[str, str], str] = _plain,
        progress: Callable[[int], ProgressLine] = _unwatched,
        wait: Callable[[], None] | None = None,
        width: int | None = None,
    ) -> None:
        self._write = write
        self._width = width
        self._style = style
        self._progress = progress
        self._wait = wait
        self._acts = 0
        self._last = ""
        self.checks: list[Check] = []

    def line(self, text: str = "") -> None:
        """Write one line unchanged; several empty lines collapse into one."""
        if self._write is not None and (text or self._last):
            self._write(text)
            self._last = text

    def act(self, title: str) -> None:
        """Begin the next act."""
        self._acts += 1
        self.line()
        for part in wrapped(f"{self._acts}. {title}", self._width):
            self.line(self._style(part, "title"))

    def say(self, text: str) -> None:
        """Print some sentences, wrapped."""
        sentences = f"  {' '.join(printable(text).split())}"
        for part in wrapped(sentences, self._width, hanging=2, most=_WIDTH):
            self.line(part)

    def command(self, text: str) -> None:
        """Show a command to type."""
        indent = " " * _INDENT
        width = None if self._width is None else self._width - _INDENT
        lines = (
            [printable(text)]
            if width is None
            else continued(printable(text), width - len("$ "), further="    ")
        )
        for number, part in enumerate(lines):
            self.line(indent + self._style(f"{'  ' if number else '$ '}{part}", "command"))

    def table(self, headings: list[str], rows: list[list[object]]) -> None:
        """Show a small table; numbers are aligned to the right."""
        cells = [[_cell(value) for value in row] for row in rows]
        columns = [
            LaidColumn(
                heading, "integer" if isinstance(rows[0][at], int) else "text", [row[at] for row in cells]
            )
            for at, heading in enumerate(headings)
        ]
        table = laid_out(columns, None if self._width is None else self._width - _INDENT)
        self.line()
        for line in table.changed(str, lambda line: self._style(line, "headings"), indent=_INDENT):
            self.line(line)
        self.line()

    def check_equal(self, name: str, expected: object, actual: object) -> bool:
        """Compare the expected with the actual value, and print the result."""
        check = Check(name, expected == actual, expected, actual)
        self.checks.append(check)
        if check.ok:
            text = f"  {self._style('ok', 'ok')}    {name}: {_cell(actual)}"
        else:
            text = (
                f"  {self._style('FAILED', 'failed')} {name}: expected {_cell(expected)}, got {_cell(actual)}"
            )
        for part in wrapped(text, self._width, hanging=8):
            self.line(part)
        return check.ok

    def progress(self, total: int) -> ProgressLine:
        """Begin a progress line up to `total`."""
        return self._progress(total)

    def pause(self, *commands: str) -> None:
        """Give the audience time to look into the store, from another terminal, with these commands."""
        if self._wait is not None:
            self.line()
            self.say("Look for yourself, from another terminal:")
            for text in commands:
                self.command(text)
            self._wait()


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return human.count(value) if value is None or isinstance(value, int) else printable(str(value))

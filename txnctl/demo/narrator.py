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
from txnctl.output.table import aligned

_WIDTH = 96


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
    """Prints the story, or stays silent without a function to write with."""

    def __init__(
        self,
        write: Callable[[str], None] | None = None,
        *,
        style: Callable[[str, str], str] = _plain,
        progress: Callable[[int], ProgressLine] = _unwatched,
        wait: Callable[[], None] | None = None,
    ) -> None:
        self._write = write
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
        self.line(self._style(f"{self._acts}. {title}", "title"))

    def say(self, text: str) -> None:
        """Print some sentences, wrapped."""
        words, line = printable(text).split(), "  "
        for word in words:
            if len(line) + len(word) > _WIDTH and line.strip():
                self.line(line.rstrip())
                line = "  "
            line += word + " "
        self.line(line.rstrip())

    def command(self, text: str) -> None:
        """Show a command to type."""
        self.line("    " + self._style(f"$ {printable(text)}", "command"))

    def table(self, headings: list[str], rows: list[list[object]]) -> None:
        """Show a small table; numbers are aligned to the right."""
        cells = [[_cell(value) for value in row] for row in rows]
        alignment = ["right" if isinstance(value, int) else "left" for value in rows[0]]
        first, *body = aligned(headings, cells, alignment).splitlines()
        self.line()
        self.line("    " + self._style(first, "headings"))
        for line in body:
            self.line("    " + line)
        self.line()

    def check_equal(self, name: str, expected: object, actual: object) -> bool:
        """Compare the expected with the actual value, and print the result."""
        check = Check(name, expected == actual, expected, actual)
        self.checks.append(check)
        if check.ok:
            self.line(f"  {self._style('ok', 'ok')}    {name}: {_cell(actual)}")
        else:
            self.line(
                f"  {self._style('FAILED', 'failed')} {name}: expected {_cell(expected)}, got {_cell(actual)}"
            )
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

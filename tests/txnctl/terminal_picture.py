"""A terminal of a given size: the picture that the bytes of a program make, and the program's keyboard.

Knows the sequences of TERM=xterm that curses and `--watch` write; any other one fails the test.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

_SEQUENCE = re.compile(r"\x1b(?:\[([?>]?[0-9;]*)([A-Za-z@`])|[()][0B]|[78=>M])")
_WAIT_S = 30
_AGAIN_S = 2.0


class Picture:
    """The characters on a screen; styles and modes are noted and not drawn."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.line = self.column = 0
        self.region = (0, rows - 1)
        self.styles: set[str] = set()
        self.modes: dict[str, bool] = {}
        self.clears = 0
        self._rest = ""

    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.cells]

    def text(self) -> str:
        return "\n".join(self.lines())

    def feed(self, data: str) -> None:
        """Draw. A sequence that is cut off waits for the rest."""
        data, at = self._rest + data, 0
        self._rest = ""
        while at < len(data):
            if data[at] == "\x1b":
                sequence = _SEQUENCE.match(data, at)
                if sequence is None:
                    assert len(data) - at < 20, data[at : at + 20]
                    self._rest = data[at:]
                    return
                if sequence[0] == "\x1bM":
                    self._reverse_index()
                self._obey(sequence[1] or "", sequence[2] or "")
                at = sequence.end()
            else:
                self._put(data[at])
                at += 1

    def _put(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            if self.line == self.region[1]:
                self._scroll(1)
            else:
                self.line = min(self.line + 1, self.rows - 1)
        elif char == "\b":
            self.column = max(0, self.column - 1)
        elif char >= " ":
            if self.column == self.columns:
                self.column = 0
                self._put("\n")
            self.cells[self.line][self.column] = char
            self.column += 1

    def _scroll(self, count: int) -> None:
        """Move the lines of the region up, or down where the count is negative; blank ones follow."""
        first, last = self.region
        rows = self.cells[first : last + 1]
        blank = [[" "] * self.columns for _ in range(abs(count))]
        moved = (rows + blank)[count:] if count > 0 else (blank + rows)[: len(rows)]
        self.cells[first : last + 1] = moved

    def _reverse_index(self) -> None:
        if self.line == self.region[0]:
            self._scroll(-1)
        else:
            self.line = max(0, self.line - 1)

    def _obey(self, given: str, what: str) -> None:
        numbers = [int(number or 0) for number in given.lstrip("?>").split(";")]
        if what and what in "HfdG`ABCD":
            self._move(what, numbers)
        elif what and what in "KJX":
            self._erase(what, numbers[0])
        elif what and what in "P@LMb":
            self._shift(what, max(1, numbers[0]))
        elif what and what in "ST":
            self._scroll(max(1, numbers[0]) * (1 if what == "S" else -1))
        elif what == "r":
            whole = len(numbers) < 2
            self.region = (0, self.rows - 1) if whole else (numbers[0] - 1, min(numbers[1], self.rows) - 1)
            self.line = self.column = 0
        elif what and what in "hl":
            self.modes[given] = what == "h"
        elif what == "m":
            self.styles |= set(given.split(";"))
        else:
            assert what in ("", "t"), (given, what)

    def _move(self, what: str, numbers: list[int]) -> None:
        count = max(1, numbers[0])
        line, column = self.line, min(self.column, self.columns - 1)
        if what in "Hf":
            line, column = count - 1, max(1, numbers[1] if len(numbers) > 1 else 1) - 1
        elif what == "d":
            line = count - 1
        elif what in "G`":
            column = count - 1
        else:
            line += {"A": -count, "B": count}.get(what, 0)
            column += {"C": count, "D": -count}.get(what, 0)
        self.line = min(max(line, 0), self.rows - 1)
        self.column = min(max(column, 0), self.columns - 1)

    def _erase(self, what: str, kind: int) -> None:
        row, column = self.cells[self.line], min(self.column, self.columns - 1)
        start, end = (0, column + 1) if kind == 1 and what != "X" else (column, self.columns)
        if what == "X":
            end = min(self.columns, column + max(1, kind))
        blank = [" "] * self.columns
        if what == "J":
            self.clears += kind == 2
            first = 0 if kind == 2 else self.line + 1
            self.cells[first:] = [list(blank) for _ in self.cells[first:]]
            row = self.cells[self.line]
        row[start:end] = blank[start:end]

    def _shift(self, what: str, count: int) -> None:
        row, column = self.cells[self.line], min(self.column, self.columns - 1)
        if what == "b":
            for _ in range(count):
                self._put(row[self.column - 1])
        elif what in "P@":
            shifted = row[:column] + (row[column + count :] if what == "P" else [" "] * count + row[column:])
            self.cells[self.line] = (shifted + [" "] * self.columns)[: self.columns]
        else:
            region, self.region = self.region, (self.line, self.region[1])
            self._scroll(count if what == "M" else -count)
            self.region = region


class Terminal:
    """`txnctl` with some words at a terminal of its own."""

    def __init__(
        self, *words: str, columns: int = 80, rows: int = 24, in_shell: bool = False, **environment: str
    ) -> None:
        """With `in_shell` a shell stands before the command: stopped, it says so, and goes on after a typed line."""
        self._ours, theirs = pty.openpty()
        self.picture = Picture(columns, rows)
        self.size(columns, rows)
        given = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SESSION + (_SHELL if in_shell else "") + _RUN, *words], stdin=theirs, stdout=theirs, stderr=theirs,
            env=given | {"TERM": "xterm"} | environment, start_new_session=True,
        )  # fmt: skip
        self._theirs = theirs

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def size(self, columns: int, rows: int) -> None:
        """Give the terminal a size; what was on the screen is gone."""
        styles, modes = self.picture.styles, self.picture.modes
        self.picture = Picture(columns, rows)
        self.picture.styles, self.picture.modes = styles, modes
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def until(self, condition: Callable[[Picture], Any]) -> Picture:
        """The picture once the condition holds."""
        end = time.monotonic() + _WAIT_S
        while not condition(self.picture):
            assert time.monotonic() < end, self.picture.text()
            self._read(0.2)
        return self.picture

    def insist(self, key: str, condition: Callable[[Picture], Any]) -> None:
        """Type a key until the condition holds: curses ignores Ctrl-Z while it draws, and drops keys at its return."""
        again = time.monotonic()
        end = again + _WAIT_S
        while not condition(self.picture):
            now = time.monotonic()
            assert now < end, self.picture.text()
            if now >= again:
                self.type(key)
                again = now + _AGAIN_S
            self._read(0.1)

    def shows(self, *texts: str) -> Picture:
        """The picture once all the texts stand on it."""
        return self.until(lambda picture: all(text in picture.text() for text in texts))

    def ends(self) -> int:
        """The exit status, once all that the program wrote has been drawn."""
        end = time.monotonic() + _WAIT_S
        while self.process.poll() is None:
            assert time.monotonic() < end, self.picture.text()
            self._read(0.05)
        while self._read(0):
            pass
        return self.process.returncode

    def modes_are_as_before(self) -> bool:
        """Whether the terminal echoes and reads lines as before the program."""
        return termios.tcgetattr(self._theirs) == self.before

    def _read(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        self.picture.feed(os.read(self._ours, 1 << 16).decode("utf-8", "replace"))
        return True


_SESSION = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
"""
"""The terminal becomes the controlling one, so that typed control characters and changes of size are signals."""

_SHELL = """
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
command = os.fork()
if command:
    while True:
        _, status = os.waitpid(command, os.WUNTRACED)
        os.tcsetpgrp(0, os.getpgrp())
        if not os.WIFSTOPPED(status):
            sys.exit(os.waitstatus_to_exitcode(status))
        print("\\r\\nstopped", flush=True)
        sys.stdin.readline()
        os.tcsetpgrp(0, command)
        os.kill(command, signal.SIGCONT)
os.setpgid(0, 0)
os.tcsetpgrp(0, os.getpgrp())
signal.signal(signal.SIGTTOU, signal.SIG_DFL)
"""
"""The command in a process group of its own, which only a group with a parent in the session can be stopped in."""

_RUN = """
from txnctl.__main__ import run
run()
"""

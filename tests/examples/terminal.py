"""A terminal with a shell in it, as somebody sits before it: what is typed, Ctrl-Z included, and what is seen.

A transcript is lines as they stand on the screen. After a prompt (`$` of the shell, with a name before it in the
transcript, or `>` of a program) stands what is typed; any other line is one that must come on the screen, after those
before it, with `...` for any characters of that line. `...` alone stands for any lines.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from pathlib import Path

PATIENCE_S = 60.0
TYPED = re.compile(r"(?:\w*\$|>) (.*)")
CONTROL = {"^Z": b"\x1a", "^D": b"\x04"}


class Terminal:
    """A bash of its own at a terminal of its own."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        modes = termios.tcgetattr(slave)
        # Ctrl-Z throws away what is on its way to the screen, and that may be what the shell says about it.
        modes[3] |= termios.NOFLSH
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        shell = ["setsid", "--ctty", "bash", "--norc", "--noprofile", "--noediting", "-i"]
        given = environment | {"TERM": "dumb", "PS1": "$ ", "NO_COLOR": "1"}
        self._shell = subprocess.Popen(
            shell, cwd=directory, env=given, stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)
        self._screen = self._typed = ""
        self._seen = 0

    def play(self, transcript: str) -> None:
        """Type what is typed, after its prompt, and wait for what is seen."""
        for line in transcript.splitlines():
            typed = TYPED.fullmatch(line)
            if typed is not None:
                self._type(typed[1])
            elif line != "...":
                words = " +".join(re.escape(word) for word in line.split())
                self._see(rf"^{words.replace(re.escape('...'), '.*')} *$", line)

    def _type(self, words: str) -> None:
        # Who is brought to the foreground again has given its prompt before.
        if self._typed != "fg":
            self._see(r"^[$>] \Z", "a prompt")
        self._typed = words
        os.write(self._master, CONTROL.get(words) or words.encode() + b"\n")

    def _see(self, pattern: str, what: str) -> None:
        """Wait until it stands on the screen, after what was seen before."""
        expected, until = re.compile(pattern, re.MULTILINE), time.monotonic() + PATIENCE_S
        while (found := expected.search(self._screen, self._seen)) is None:
            left = max(0.0, until - time.monotonic())
            assert select.select([self._master], [], [], left)[0], f"{what!r} did not come:\n{self._screen}"
            self._screen += os.read(self._master, 1 << 16).decode().replace("\r\n", "\n")
        self._seen = found.end()

    def wait(self) -> int:
        """The exit code of the shell, which was told to exit."""
        return self._shell.wait(PATIENCE_S)

    def close(self) -> None:
        """Hang up: whatever runs at the terminal ends."""
        os.close(self._master)
        self._shell.wait(PATIENCE_S)

"""Command lines at real terminals: a process that runs each line it is sent at a terminal of the wanted width.

    python -m tests.txnctl.terminal_runs

Standard input has a JSON object a line: `columns`, `words`, `directory`, and `answer`, what is typed; standard output
has a JSON text a line, all that came on the terminal. Each command runs in a fork, with the modules loaded already.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import click

from txnctl.cli.main import main, root

CHECKOUT = Path(__file__).parents[2]
_ROWS = 50


class Terminals:
    """Terminals to run commands at, of any width, in the home directory of the environment."""

    def __init__(self, environment: dict[str, str]) -> None:
        given = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.txnctl.terminal_runs"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=environment["HOME"],
            env=given | {"PYTHONPATH": str(CHECKOUT), "TERM": "xterm", "NO_COLOR": "1"} | environment,
        )  # fmt: skip

    def run(self, columns: int, *words: str, answer: str = "", directory: Path | None = None) -> str:
        """All that the command shows, results and errors; in a directory of its own where it makes files."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        asked = {
            "columns": columns,
            "words": words,
            "answer": answer,
            "directory": str(directory or Path.cwd()),
        }
        stdin.write(json.dumps(asked) + "\n")
        stdin.flush()
        return str(json.loads(stdout.readline()))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()


def commands() -> list[tuple[str, ...]]:
    """The path of every command of the tree."""
    return [path for path, command in _walk((), root()) if not isinstance(command, click.Group)]


def _walk(path: tuple[str, ...], command: click.Command) -> list[tuple[tuple[str, ...], click.Command]]:
    found = [(path, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None
            found += _walk((*path, name), member)
    return found


def _shown(columns: int, words: list[str], answer: str, directory: str) -> str:
    child, terminal = pty.fork()
    if not child:
        os.chdir(directory)
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
        # Only what the command prints: what is typed is not shown.
        modes = termios.tcgetattr(0)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(0, termios.TCSANOW, modes)
        # The width is set before the first line.
        status = 70
        try:
            status = main(words)
        finally:
            sys.stdout.flush()
            os._exit(status)
    if answer:
        os.write(terminal, answer.encode())
    seen = b""
    while True:
        try:
            got = os.read(terminal, 1 << 16)
        except OSError:
            break
        if not got:
            break
        seen += got
    os.close(terminal)
    os.waitpid(child, 0)
    return seen.decode().replace("\r\n", "\n")


def _serve() -> None:
    for path in commands():
        # Loads the modules of the commands, once for all runs.
        assert path
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(_shown(**asked)), flush=True)


if __name__ == "__main__":
    _serve()

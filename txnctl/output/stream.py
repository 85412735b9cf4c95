"""Standard output, for results only.

Text is written as UTF-8 in every locale: the same bytes everywhere. A reader of the pipe that went away is left to
`main` (a quiet end, 141); every further failure to write is an `OutputFailed`.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import FileIO

from storage.errors import TxnctlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO, TextIO


class OutputFailed(TxnctlError):
    """The result could not be written to standard output; a full disk, mostly."""

    code, exit_code = "output-failed", 6


class OutputStream:
    """Standard output as bytes; buffered, so flush before relying on the output."""

    __slots__ = ("_raw", "terminal")

    def __init__(self) -> None:
        # sys.stdout is None where the descriptor was closed at the start: output is discarded.
        self._raw: BinaryIO | None = None if sys.stdout is None else _buffered(sys.stdout.buffer)
        self.terminal = sys.stdout is not None and sys.stdout.isatty()

    def require_open(self, loss: str) -> None:
        """Check that there is a standard output, for a command whose result comes only once.

        Args:
            loss: what would be lost.

        Raises:
            OutputFailed: standard output was closed at the start (`>&-`).
        """
        if self._raw is None:
            raise OutputFailed(
                f"standard output is closed: {loss}; nothing was changed",
                hint="Redirect it to /dev/null to discard the result on purpose.",
            )

    def width(self) -> int | None:
        """Columns of the terminal, by COLUMNS or the terminal; None without a terminal."""
        return terminal_width(sys.stdout) if self.terminal else None

    def print(self, text: str) -> None:
        """Write text and a line end, and hand both to the kernel."""
        self.write(f"{text}\n")
        self.flush()

    def write(self, text: str) -> None:
        """Write text as UTF-8. File names that are not UTF-8 are written as the original bytes."""
        self.write_bytes(text.encode("utf-8", "surrogateescape"))

    def write_values(self, values: Iterable[bytes | None], *, end: bytes = b"\n") -> None:
        """Write stored content, `end` after each value: the very bytes, and on a terminal made harmless; None is "".

        The one place where content goes out as such: a message must not drive a terminal.
        """
        if self.terminal:
            from txnctl.output.escape import printable_bytes

            shown = [printable_bytes(value or b"").encode() for value in values]
        else:
            shown = [value or b"" for value in values]
        self.write_bytes(end.join([*shown, b""]))

    def write_bytes(self, data: bytes) -> None:
        """Write bytes unchanged: text of ours, in which content is escaped. Content goes to `write_values`."""
        if self._raw is None:
            return
        try:
            self._raw.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _output_failed(error) from error

    def flush(self) -> None:
        """Hand everything written so far to the kernel."""
        if self._raw is None:
            return
        try:
            sys.stdout.flush()
            self._raw.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _output_failed(error) from error

    def check_reader(self) -> None:
        """Check, while nothing is written, that the reader of the pipe is not gone.

        Raises:
            BrokenPipeError
        """
        from select import POLLERR, poll

        if sys.stdout is None:
            return
        try:
            descriptor = sys.stdout.fileno()
        except OSError:
            return
        look = poll()
        look.register(descriptor, 0)
        if any(events & POLLERR for _, events in look.poll(0)):
            raise BrokenPipeError

    def flush_if_possible(self) -> None:
        """The same after an error, which is the one to be reported."""
        with suppress(OSError, OutputFailed):
            self.flush()


def terminal_width(stream: TextIO | None) -> int | None:
    """Columns of the terminal behind a stream, by COLUMNS or the terminal; None without a terminal."""
    if stream is None or not stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def drop_output() -> None:
    """Discard the buffered output and all later output, also at the flush at the end of Python."""
    try:
        stdout = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stdout)
    os.close(nowhere)


def _buffered(stdout: BinaryIO) -> BinaryIO:
    """The same stream; under PYTHONUNBUFFERED a buffered stream beside, as a bare stream may write a part and stop."""
    if isinstance(stdout, FileIO):
        return open(stdout.fileno(), "wb", closefd=False)
    return stdout


def _output_failed(error: OSError) -> OutputFailed:
    return OutputFailed(f"cannot write the result to standard output: {error.strerror}", errno=error.errno)

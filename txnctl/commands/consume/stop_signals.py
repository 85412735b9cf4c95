"""SIGTERM and SIGHUP to `consume`: the first one lets the work in hand come to its end, and nothing more is taken.

A second SIGTERM is an exception at once. SIGHUP is no second one, as one hang-up may send several, and is ignored
where the process has no terminal that could be gone. Signals ignored by the caller stay ignored.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from txnctl.cli.exit_codes import HungUp, Terminated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import Self

_STDERR = 2


class StopSignals:
    """Call `stop` at the first signal, for a `with` statement around the work.

    Attributes:
        first: the exception of the signal that has come; None if none came.
    """

    def __init__(self, stop: Callable[[], None], *, quiet: bool) -> None:
        self.first: type[Terminated] | None = None
        self._is_interrupted = False
        self._stop = stop
        self._quiet = quiet
        self._has_terminal = foreground_group() is not None
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        # Outside of the main thread the owner of the thread decides.
        with suppress(ValueError):
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._take)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-C gives back what is in hand: a SIGTERM behind it says nothing else."""
        self._is_interrupted = True
        signal.default_int_handler(number, frame)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP and (self.first is not None or not self._has_terminal):
            return
        if self.first is not None:
            raise Terminated
        self.first = HungUp if number == signal.SIGHUP else Terminated
        self._stop()
        if not self._quiet and not self._is_interrupted:
            name = signal.Signals(number).name
            self._say(f"txnctl: {name}: what is in hand is finished; SIGTERM now would end that at once\n")

    @staticmethod
    def _say(text: str) -> None:
        """Write past the buffer of the stream: the signal may have come in the middle of a write to the stream."""
        try:
            os.write(_STDERR, text.encode())
        except OSError:
            # The terminal is gone.
            return


def foreground_group() -> int | None:
    """The process group in the foreground of the terminal of this process; None without a terminal."""
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.tcgetpgrp(terminal)
    except OSError:
        return None
    finally:
        os.close(terminal)

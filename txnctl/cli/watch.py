"""`--watch`: a report that is drawn anew on a terminal until `q` or Ctrl-C.

A screen that is too small keeps the problems (`txnctl/output/room.py`). Each line is written over the previous one, so
that nothing flickers. No view of the store is held between two screens.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from txnctl.cli import exit_codes
from txnctl.cli.decorators import option
from txnctl.cli.value_types import DURATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any, NoReturn, Self

    from txnctl.cli.context import Context

F = TypeVar("F", bound="Callable[..., Any]")

EVERY = "2s"
EVERY_MIN_S = 0.1

_HEADED = 10
"""Lines of a screen that has room for a headline above its problems."""

_CLEAR = "\x1b[H\x1b[2J"
_HOME = "\x1b[H"
_LINE_END = "\x1b[K\n"
_REST = "\x1b[J"


class Screenful(NamedTuple):
    """A report for people, and what a screen that is too small shows of the report.

    Attributes:
        problems: the problems of the report alone, the worst first, a line each.
        lines: the report.
        headline: the first line of the report, where `rest` is given.
        rest: the report without headline and problems; None for a report with the problems among its rows.
    """

    problems: list[str]
    lines: Iterable[str]
    headline: str = ""
    rest: Iterable[str] | None = None


def watches(function: F) -> F:
    """Take `--watch [EVERY]`, as the argument `watch`: seconds, or None."""
    return option(
        "--watch",
        type=DURATION,
        is_flag=False,
        flag_value=EVERY,
        metavar="[EVERY]",
        help=f"Draw it anew on a terminal, every {EVERY} or as said, until q or Ctrl-C.",
    )(function)


def is_watched(context: Context, watch: float | None) -> bool:
    """Whether the report is drawn again and again; elsewhere than on a terminal a note says why it is not."""
    if watch is None:
        return False
    from os import environ

    if context.output == "table" and context.out.terminal and environ.get("TERM") != "dumb":
        return True
    context.note("--watch draws anew on a terminal only, as a table")
    return False


def draw_until_interrupted(context: Context, every_s: float, report: Callable[[], Screenful]) -> NoReturn:
    """Draw the report now, after each interval, and when the terminal has another size.

    `q` ends with 0, Ctrl-C with 130.

    Args:
        report: reads the store, from a view of its own.

    Raises:
        StoreNotFound: the store was removed, moved or replaced.
    """
    from txnctl.output.stream import drop_output

    try:
        with _Wait() as wait:
            context.out.write(_CLEAR)
            while True:
                _draw(context, report())
                if wait.has_left(max(every_s, EVERY_MIN_S)):
                    break
                context.store.connection.look_in_place()
                context.measure()
    except KeyboardInterrupt:
        drop_output()
        context.exit(exit_codes.INTERRUPTED)
    context.exit(exit_codes.DONE)


def _draw(context: Context, screenful: Screenful) -> None:
    from os import get_terminal_size

    from txnctl.output.prose import fitted
    from txnctl.output.styled import clipped

    width = context.width or 80
    # The cursor stays on the last line.
    height = max(1, (get_terminal_size(1).lines or 24) - 1)
    lines = list(fitted(screenful.lines, width))
    if len(lines) > height:
        lines = _cut(screenful, lines, width, height)
    context.out.write(_HOME + "".join([clipped(line, width) + _LINE_END for line in lines]) + _REST)
    context.out.flush()


def _cut(screenful: Screenful, lines: list[str], width: int, height: int) -> list[str]:
    """The headline, the problems and the begin of the rest; on a very small screen the problems come first."""
    from txnctl.output.prose import fitted
    from txnctl.output.room import kept

    if screenful.rest is None:
        return kept(screenful.problems, lines, height)
    headline, rest = list(fitted([screenful.headline], width)), list(fitted(screenful.rest, width))
    if height < _HEADED:
        return kept(screenful.problems, [*headline, *rest], height)
    return [*headline, *kept(screenful.problems, rest, height - len(headline))]


class _Wait:
    """A wait between two drawings, which `q` and a change of the size of the terminal end.

    Keys are read where this process has the terminal of standard input: in the background a change of the modes of the
    terminal would stop the process.
    """

    def __init__(self) -> None:
        import os

        self._noticed, self._notice = os.pipe()
        self._handlers: dict[int, Any] = {}
        self._modes: list[Any] | None = None

    def __enter__(self) -> Self:
        import signal

        self._modes = self._take_keys()
        self._handlers = {
            signal.SIGWINCH: signal.signal(signal.SIGWINCH, self._notify),
            signal.SIGCONT: signal.signal(signal.SIGCONT, self._go_on),
            signal.SIGTSTP: signal.signal(signal.SIGTSTP, self._stop),
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import os
        import signal

        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._give_back()
        os.close(self._noticed)
        os.close(self._notice)

    def has_left(self, seconds: float) -> bool:
        """Wait so long at the most; whether `q` was typed."""
        import os
        import select

        keys = [0] if self._modes is not None and _has_terminal() else []
        ready = select.select([self._noticed, *keys], [], [], seconds)[0]
        if self._noticed in ready:
            os.read(self._noticed, 4096)
        return 0 in ready and b"q" in os.read(0, 4096)

    def _notify(self, *_: object) -> None:
        import os

        os.write(self._notice, b".")

    def _stop(self, number: int, _frame: object) -> None:
        """Ctrl-Z: the shell gets the terminal as it was."""
        import os
        import signal

        self._give_back()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _go_on(self, *_: object) -> None:
        import signal

        signal.signal(signal.SIGTSTP, self._stop)
        if self._modes is not None:
            self._take_keys()
        self._notify()

    def _give_back(self) -> None:
        if self._modes is not None and _has_terminal():
            import termios

            termios.tcsetattr(0, termios.TCSADRAIN, self._modes)

    @staticmethod
    def _take_keys() -> list[Any] | None:
        """Have keys come at once and unseen; the modes before, or None where the keys are not for this process."""
        if not _has_terminal():
            return None
        import termios

        before = termios.tcgetattr(0)
        modes = termios.tcgetattr(0)
        modes[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(0, termios.TCSADRAIN, modes)
        return before


def _has_terminal() -> bool:
    """Whether standard input is a terminal, and this process is in the foreground there."""
    import os

    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False

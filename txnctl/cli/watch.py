"""`--watch`: a report that is drawn anew on a terminal until Ctrl-C.

A screen that is too small keeps the problems (`txnctl/output/room.py`). Each line is written over the previous one, so
that nothing flickers. No view of the store is held between two screens.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from txnctl.cli import exit_codes
from txnctl.cli.decorators import option
from txnctl.cli.value_types import DURATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, NoReturn

    from txnctl.cli.context import Context

F = TypeVar("F", bound="Callable[..., Any]")

EVERY = "2s"
EVERY_MIN_S = 0.1

_CLEAR = "\x1b[H\x1b[2J"
_HOME = "\x1b[H"
_LINE_END = "\x1b[K\n"
_REST = "\x1b[J"


class Screenful(NamedTuple):
    """A report for people, and its problems alone, the worst first, a line each."""

    problems: list[str]
    lines: Iterable[str]


def watches(function: F) -> F:
    """Take `--watch [EVERY]`, as the argument `watch`: seconds, or None."""
    return option(
        "--watch",
        type=DURATION,
        is_flag=False,
        flag_value=EVERY,
        metavar="[EVERY]",
        help=f"Draw it anew on a terminal, every {EVERY} or as said, until Ctrl-C.",
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
    """Draw the report now, after each interval, and when the terminal has another size; Ctrl-C ends with 130.

    Args:
        report: reads the store, from a view of its own.

    Raises:
        StoreNotFound: the store was removed, moved or replaced.
    """
    from txnctl.output.stream import drop_output

    try:
        with _resizes() as wait:
            context.out.write(_CLEAR)
            while True:
                _draw(context, report())
                wait(max(every_s, EVERY_MIN_S))
                context.store.connection.look_in_place()
                context.measure()
    except KeyboardInterrupt:
        drop_output()
        context.exit(exit_codes.INTERRUPTED)


def _draw(context: Context, screenful: Screenful) -> None:
    from os import get_terminal_size

    from txnctl.output.prose import fitted
    from txnctl.output.room import kept
    from txnctl.output.styled import clipped

    width = context.width or 80
    # The cursor stays on the last line.
    height = max(1, (get_terminal_size(1).lines or 24) - 1)
    lines = kept(screenful.problems, list(fitted(screenful.lines, width)), height)
    context.out.write(_HOME + "".join([clipped(line, width) + _LINE_END for line in lines]) + _REST)
    context.out.flush()


@contextmanager
def _resizes() -> Iterator[Callable[[float], None]]:
    """A wait of some seconds, which a change of the size of the terminal ends."""
    import os
    import select
    import signal

    noticed, notice = os.pipe()
    before = signal.signal(signal.SIGWINCH, lambda *_: os.write(notice, b"."))

    def wait(seconds: float) -> None:
        if select.select([noticed], [], [], seconds)[0]:
            os.read(noticed, 4096)

    try:
        yield wait
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(noticed)
        os.close(notice)

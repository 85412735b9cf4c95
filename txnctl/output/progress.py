"""A progress line on standard error: only on a terminal, only after a second."""

from __future__ import annotations

import sys
from time import monotonic

from txnctl.output import human
from txnctl.output.stream import terminal_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_SILENT_S = 1.0
_REDRAW_S = 0.1
_WIDTH = 80


class ProgressLine:
    """Count finished units, as a context manager; silent without a terminal. The line is wiped at the end."""

    __slots__ = ("_done", "_drawn", "_label", "_next_draw", "_started", "_total", "_unit", "_watched")

    def __init__(self, label: str, total: int | None, unit: str, *, watched: bool) -> None:
        self._label = label
        self._total = total
        self._unit = unit
        self._watched = watched
        self._done = 0
        self._drawn = False
        self._started = monotonic()
        self._next_draw = self._started + _SILENT_S

    def advance(self, amount: int = 1) -> None:
        """`amount` more is done."""
        self._done += amount
        if self._watched:
            now = monotonic()
            if now >= self._next_draw:
                self._next_draw = now + _REDRAW_S
                self._drawn = True
                # A line that wraps could not be drawn anew.
                line = self.line(now)[: (terminal_width(sys.stderr) or _WIDTH) - 1]
                print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)

    def line(self, now: float) -> str:
        """`Verify  41 %  1,200 of 2,900 pages  120/s  14s left`, or without a total `Produce  1,200 messages  ...`."""
        elapsed = max(now - self._started, 0.001)
        rate = self._done / elapsed
        per_second = f"{rate:,.0f}/s"
        if not self._total:
            return f"{self._label}  {self._done:,} {self._unit}  {per_second}"
        done = min(self._done, self._total)
        left = (
            f"  {human.duration(int((self._total - done) / rate * 1000) // 1000 * 1000)} left" if rate else ""
        )
        percent = 100 * done // self._total
        return f"{self._label}  {percent} %  {done:,} of {self._total:,} {self._unit}  {per_second}{left}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

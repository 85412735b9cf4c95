"""Positions of a topic on a line of so many columns.

Entries are dense within a ledger, so a position is a number of earlier entries. Where the blocked end of a long topic
would be a speck, the part before is drawn on a smaller scale: at most a quarter of the line.
"""

from __future__ import annotations

from bisect import bisect_right

from storage.values.position import Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.reports.timeline import LedgerOnAxis

_BEFORE = 4
"""The part before the focus takes at most one in so many columns."""


class Axis:
    """A line on which the entries of a topic lie.

    Attributes:
        columns: of the line.
        total: entries on it.
        join: the column from which on the scale is the larger one; 0 for one scale.
    """

    __slots__ = ("_focus", "_ids", "_ledgers", "columns", "join", "total")

    total: int

    def __init__(self, ledgers: Sequence[LedgerOnAxis], columns: int, focus: Position | None = None) -> None:
        """Args:
        ledgers: in the order of the log.
        focus: the position from which on to draw large.
        """
        self._ledgers = ledgers
        self._ids = [ledger.ledger.ledger_id for ledger in ledgers]
        self.columns = columns
        self.total = sum(ledger.ledger.entries for ledger in ledgers)
        self._focus = self.join = 0
        entries = self.through(focus) if focus is not None else 0
        if self.total > columns and entries * _BEFORE > self.total:
            self._focus, self.join = entries, columns // _BEFORE

    def through(self, position: Position) -> int:
        """Entries up to and including a position."""
        at = bisect_right(self._ids, position.ledger_id) - 1
        if at < 0:
            return 0
        ledger, before = self._ledgers[at]
        is_whole = ledger.ledger_id < position.ledger_id
        return before + (ledger.entries if is_whole else min(position.entry_id + 1, ledger.entries))

    def column(self, entries: int) -> int:
        """The column of the entry with that many earlier entries; `columns` for the end of the line."""
        if entries >= self.total:
            return self.columns
        if entries < self._focus:
            return entries * self.join // self._focus
        return self.join + (entries - self._focus) * (self.columns - self.join) // (self.total - self._focus)

    def end(self, position: Position) -> int:
        """The column after a position: entries at or below the position are drawn before."""
        return self.column(self.through(position))

    def cell(self, position: Position) -> int:
        """The column in which the entry at a position lies."""
        return min(self.column(max(0, self.through(position) - 1)), max(0, self.columns - 1))


def run_of(text: str) -> tuple[Position, Position]:
    """First and last position of a run of entries: `12:4..12:9`, or `12:4` for a single entry."""
    first, _, last = text.partition("..")
    return Position.parse(first), Position.parse(last or first)

"""Positions of a topic on a line of so many columns, by messages.

A position is the number of messages stored through it. The timeline has that number for each position drawn; between
two of these an entry counts as the average one, and the markers of transactions take no room. Where the blocked end of
a long topic would be a speck, the part before is drawn on a smaller scale: at most a quarter of the line.
"""

from __future__ import annotations

from bisect import bisect_right

from storage.values.position import Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.reports.message_scale import Place
    from storage.reports.timeline import LedgerOnAxis

_BEFORE = 4
"""The part before the focus takes at most one in so many columns."""


class Axis:
    """A line on which the messages of a topic lie.

    Attributes:
        columns: of the line.
        total: messages on it.
        join: the column from which on the scale is the larger one; 0 for one scale.
    """

    __slots__ = ("_counts", "_focus", "_positions", "columns", "join", "total")

    total: int

    def __init__(
        self,
        ledgers: Sequence[LedgerOnAxis],
        columns: int,
        focus: Position | None = None,
        places: Sequence[Place] = (),
    ) -> None:
        """Args:
        ledgers: in the order of the log.
        focus: the position from which on to draw large.
        places: positions with their number of messages.
        """
        known = {place.position: place.messages for place in places}
        for ledger, _, before in ledgers:
            known[Position(ledger.ledger_id, -1)] = before
            known[Position(ledger.ledger_id, ledger.entries - 1)] = before + ledger.messages
        self._positions = sorted(known)
        self._counts = [known[position] for position in self._positions]
        self.columns = columns
        self.total = sum(row.ledger.messages for row in ledgers)
        self._focus = self.join = 0
        messages = self.through(focus) if focus is not None else 0
        if self.total > columns and messages * _BEFORE > self.total:
            self._focus, self.join = messages, columns // _BEFORE

    def through(self, position: Position) -> int:
        """Messages up to and including a position."""
        at = bisect_right(self._positions, position) - 1
        if at < 0:
            return 0
        known, count = self._positions[at], self._counts[at]
        if known == position or at + 1 == len(self._positions):
            return count
        following, more = self._positions[at + 1], self._counts[at + 1] - count
        if known.ledger_id != position.ledger_id or following.ledger_id != known.ledger_id:
            return count
        return count + more * (position.entry_id - known.entry_id) // (following.entry_id - known.entry_id)

    def before(self, position: Position) -> int:
        """Messages before a position."""
        return self.through(Position(position.ledger_id, position.entry_id - 1))

    def column(self, messages: int) -> int:
        """The column of the message with that many earlier messages; `columns` for the end of the line."""
        if messages >= self.total:
            return self.columns
        if messages < self._focus:
            return messages * self.join // self._focus
        return self.join + (messages - self._focus) * (self.columns - self.join) // (self.total - self._focus)

    def end(self, position: Position) -> int:
        """The column after a position: messages at or below the position are drawn before."""
        return self.column(self.through(position))

    def cell(self, position: Position) -> int:
        """The column in which the last message at a position lies."""
        return min(self.column(max(0, self.through(position) - 1)), max(0, self.columns - 1))

    def start(self, position: Position) -> int:
        """The column in which the first message at a position lies."""
        return min(self.column(self.before(position)), max(0, self.columns - 1))


def run_of(text: str) -> tuple[Position, Position]:
    """First and last position of a run of entries: `12:4..12:9`, or `12:4` for a single entry."""
    first, _, last = text.partition("..")
    return Position.parse(first), Position.parse(last or first)

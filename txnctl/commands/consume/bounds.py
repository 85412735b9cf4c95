"""The range that `consume` reads: from --from up to --to, by positions, message ids or times."""

from __future__ import annotations

from storage.values.position import EARLIEST, Extreme, MessageId, Position
from txnctl.cli.at_time import AtTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.topic.entry import Entry

    Place = Position | MessageId | Extreme


class ReadRange:
    """The messages to read: from a start up to an entry, a message inside an entry, or a time."""

    __slots__ = ("_last", "_until_ms", "start")

    def __init__(self, start: Place, end: Place | AtTime | None) -> None:
        self.start = start
        self._until_ms: int | None = None
        self._last: tuple[int, int, int] | None = None
        if isinstance(end, AtTime):
            self._until_ms = end.time_ms
        elif isinstance(end, MessageId):
            self._last = (end.ledger_id, end.entry_id, end.batch_index)
        elif isinstance(end, Position):
            self._last = (end.ledger_id, end.entry_id, -1)
        elif end is EARLIEST:
            self._last = (0, -1, -1)

    def first_in(self, entry: Entry) -> int:
        """The index of the first message of this entry to read: past 0 where --from names a message inside."""
        if isinstance(self.start, MessageId) and entry.position == self.start.position:
            return max(0, self.start.batch_index)
        return 0

    def stop_in(self, entry: Entry) -> int:
        """How many messages of this entry are not beyond the end: all, some of the first, or 0."""
        if self._until_ms is not None:
            return entry.count if entry.publish_time <= self._until_ms else 0
        if self._last is None or entry.position < self._last[:2]:
            return entry.count
        if entry.position > self._last[:2]:
            return 0
        return entry.count if self._last[2] < 0 else min(entry.count, self._last[2] + 1)

    def is_reached(self, entry: Entry) -> bool:
        """Whether nothing after this entry is wanted."""
        return self._last is not None and entry.position >= self._last[:2]

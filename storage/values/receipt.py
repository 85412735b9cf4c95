"""What a producer is told of what it sent: where each message went, and which were stored before.

Messages that a transaction keeps are offered together and stored together later; a receipt then knows its part of
them once they are written, and has them written when it is looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from storage.values.position import MessageId, Position

DUPLICATE: Final = MessageId(-1, -1, -1)
"""What `send` returns for a sequence id that is stored already, as Pulsar does: nothing was stored again."""


class StoredEntry:
    """What became of messages that were offered as one entry.

    Attributes:
        start: the first of them, by its place among all that were offered together.
        fresh: those that were stored, in order, counted from `start`; the others were stored before.
        position: of the entry; None if nothing was stored.
        ids: the sequence ids of those stored.
    """

    __slots__ = ("fresh", "ids", "position", "start")

    def __init__(
        self, start: int, fresh: Sequence[int], position: Position | None, ids: Sequence[int]
    ) -> None:
        self.start = start
        self.fresh = fresh
        self.position = position
        self.ids = ids


class Shipment:
    """Messages that were offered together, and where they are once they are stored.

    Attributes:
        entries: None as long as they are kept.
    """

    __slots__ = ("_write", "entries")

    def __init__(
        self, entries: list[StoredEntry] | None = None, write: Callable[[], None] | None = None
    ) -> None:
        """Args:
        write: has kept messages written, or says why that cannot be any more.
        """
        self.entries = entries
        self._write = write

    def look(self) -> list[StoredEntry]:
        """Where they are; they are written now if they are still kept.

        Raises:
            TxnctlError: they cannot be written.
        """
        if self.entries is None and self._write is not None:
            self._write()
        assert self.entries is not None, "whoever keeps messages writes them, or says why not"
        return self.entries


class BatchReceipt:
    """Where a batch went. Looking at one from a transaction that keeps the batch has it written."""

    __slots__ = ("_offered", "_shipment", "_start")

    def __init__(self, shipment: Shipment, start: int, offered: int) -> None:
        """Args:
        start, offered: which messages of the shipment it is about: the first, and how many.
        """
        self._shipment = shipment
        self._start = start
        self._offered = offered

    @property
    def is_kept(self) -> bool:
        """Whether its transaction keeps the batch still: then whatever else is asked has it written."""
        return self._shipment.entries is None

    def _pieces(self) -> Iterator[tuple[StoredEntry, int, int]]:
        """The entries with messages of ours: with the first of them, and the first after them."""
        for entry in self._shipment.look():
            first = bisect_left(entry.fresh, self._start - entry.start)
            after = bisect_left(entry.fresh, self._start + self._offered - entry.start)
            if first < after:
                yield entry, first, after

    @property
    def entries(self) -> list[tuple[Position, int]]:
        """Positions in order, with how many messages each; other messages may stand in the same entries."""
        return [(_position(entry), after - first) for entry, first, after in self._pieces()]

    @property
    def count(self) -> int:
        """Messages stored."""
        return sum(after - first for _, first, after in self._pieces())

    @property
    def duplicates(self) -> int:
        """Messages left out because their sequence ids are stored already."""
        return self._offered - self.count

    @property
    def last_sequence_id(self) -> int:
        """Of the last message stored; -1 if none was."""
        found = -1
        for entry, _, after in self._pieces():
            found = entry.ids[after - 1]
        return found

    @property
    def last_message_id(self) -> MessageId:
        """The id of the last message stored; DUPLICATE if none was."""
        found = DUPLICATE
        for entry, _, after in self._pieces():
            found = _message_id(entry, after - 1)
        return found

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[MessageId]:
        for entry, first, after in self._pieces():
            for index in range(first, after):
                yield _message_id(entry, index)


def _position(entry: StoredEntry) -> Position:
    assert entry.position is not None, "an entry of which something was stored has a position"
    return entry.position


def _message_id(entry: StoredEntry, index: int) -> MessageId:
    return MessageId(*_position(entry), index if len(entry.fresh) > 1 else -1)

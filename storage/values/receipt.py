"""Receipts of sends: the position of each stored message, and the number of duplicates.

A transaction buffers messages, and several batches are written together later, as one group. A receipt covers its
own part of the group; reading the receipt writes the buffer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from storage.values.named_tuple import NamedTuple
from storage.values.position import MessageId, Position

DUPLICATE: Final = MessageId(-1, -1, -1)
"""The id that `send` returns for a sequence id already stored, as Pulsar does: nothing is stored again."""


class StoredEntry(NamedTuple):
    """The outcome of messages offered as one entry.

    Attributes:
        start: the index of the first message within the group.
        fresh: indexes of the messages stored, counted from `start`; the rest are duplicates.
        position: the position of the entry; None if nothing was stored.
        ids: the sequence ids of the messages stored.
    """

    start: int
    fresh: Sequence[int]
    position: Position | None
    ids: Sequence[int]


as_stored_entry: Callable[[tuple[int, Sequence[int], Position | None, Sequence[int]]], StoredEntry] = partial(
    tuple.__new__, StoredEntry
)
"""Make the outcome of its fields, like `as_position`."""


class WriteGroup:
    """Messages that are written together.

    Attributes:
        entries: the outcome of each entry; None while the messages are buffered.
    """

    __slots__ = ("entries",)

    def __init__(self, entries: list[StoredEntry] | None) -> None:
        self.entries = entries

    def look(self) -> list[StoredEntry]:
        """The outcome of each entry. A group that is still buffered is written first.

        Raises:
            TxnctlError: the messages cannot be written.
        """
        assert self.entries is not None, "the write of a buffer fills in the entries, or raises"
        return self.entries


class BatchReceipt:
    """The receipt of a batch. Reading the receipt of a buffered batch writes the buffer."""

    __slots__ = ("_group", "_offered", "_start")

    def __init__(self, group: WriteGroup, start: int, offered: int) -> None:
        """Args:
        start, offered: the messages of this batch within the group: index of the first, and their number.
        """
        self._group = group
        self._start = start
        self._offered = offered

    @property
    def is_buffered(self) -> bool:
        """Whether the batch is still buffered; reading any other property writes the buffer."""
        return self._group.entries is None

    def part(self, index: int) -> BatchReceipt:
        """The receipt of one message of the batch."""
        return BatchReceipt(self._group, self._start + index, 1)

    def _pieces(self) -> Iterator[tuple[StoredEntry, int, int]]:
        """The entries with messages of this batch, each with a range of indexes: first, and one past the last."""
        for entry in self._group.look():
            first = bisect_left(entry.fresh, self._start - entry.start)
            after = bisect_left(entry.fresh, self._start + self._offered - entry.start)
            if first < after:
                yield entry, first, after

    @property
    def entries(self) -> list[tuple[Position, int]]:
        """Positions in order, each with its number of messages; an entry may hold messages of more batches."""
        return [(_position(entry), after - first) for entry, first, after in self._pieces()]

    @property
    def count(self) -> int:
        """The number of messages stored."""
        return sum(after - first for _, first, after in self._pieces())

    @property
    def duplicates(self) -> int:
        """The number of messages left out, because their sequence ids are stored already."""
        return self._offered - self.count

    @property
    def last_sequence_id(self) -> int:
        """The sequence id of the last message stored; -1 if no message was stored."""
        sequence_id = -1
        for entry, _, after in self._pieces():
            sequence_id = entry.ids[after - 1]
        return sequence_id

    @property
    def last_message_id(self) -> MessageId:
        """The id of the last message stored; DUPLICATE if no message was stored."""
        message_id = DUPLICATE
        for entry, _, after in self._pieces():
            message_id = _message_id(entry, after - 1)
        return message_id

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[MessageId]:
        for entry, first, after in self._pieces():
            for index in range(first, after):
                yield _message_id(entry, index)


def _position(entry: StoredEntry) -> Position:
    assert entry.position is not None, "an entry with stored messages has a position"
    return entry.position


def _message_id(entry: StoredEntry, index: int) -> MessageId:
    return MessageId(*_position(entry), index if len(entry.fresh) > 1 else -1)

"""Messages delivered together: a sequence that makes each message object at its use.

A consumer of many small messages would spend most of the time on making objects. `values` makes none, and a whole
batch is acknowledged without a look at single messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

from storage.topic.message import Message, MessageOrigin

if TYPE_CHECKING:
    from storage.topic.entry import Entry
    from storage.values.position import Position


class Piece:
    """Messages of one entry: their indexes in order, and the earlier deliveries of each (0 where not named).

    Attributes:
        count: the number of the messages.
    """

    __slots__ = ("_messages", "count", "entry", "indexes", "times")

    def __init__(
        self, entry: Entry, indexes: Sequence[int], times: dict[int, int], messages: int | None = None
    ) -> None:
        self.entry = entry
        self.indexes = indexes
        self.count = len(indexes)
        self.times = times
        self._messages = messages

    @property
    def at(self) -> Position:
        return self.entry.position

    @property
    def messages(self) -> int:
        """The set of the messages: bit i for message i of the entry."""
        messages = self._messages
        if messages is None:
            messages = self._messages = self._set()
        return messages

    def _set(self) -> int:
        if isinstance(self.indexes, range):
            return ((1 << self.count) - 1) << self.indexes.start if self.indexes else 0
        if not self.indexes:
            return 0
        # Digits of base two, the last first: an integer of a thousand bits is copied each time that one is set.
        last = self.indexes[-1]
        digits = bytearray(b"0") * (last + 1)
        for index in self.indexes:
            digits[last - index] = 0x31
        return int(digits, 2)

    def part(self, start: int, stop: int) -> Piece:
        """The messages start to stop of the piece, stop excluded."""
        return Piece(self.entry, self.indexes[start:stop], self.times)


class MessageBatch(Sequence[Message]):
    """The result of `Consumer.receive_batch`. A batch compares equal to a list of the same messages."""

    __slots__ = ("_length", "origin", "pieces")

    def __init__(self, pieces: list[Piece], origin: MessageOrigin) -> None:
        self.pieces = pieces
        self.origin = origin
        self._length = sum([piece.count for piece in pieces])

    @property
    def values(self) -> list[bytes | None]:
        """The values alone, in order: much faster than `message.value` of each message."""
        chosen: list[bytes | None] = []
        for piece in self.pieces:
            values = piece.entry.values
            chosen += (
                values if piece.count == piece.entry.count else [values[index] for index in piece.indexes]
            )
        return chosen

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        for piece in self.pieces:
            entry, times = piece.entry, piece.times
            for index in piece.indexes:
                yield entry.message(index, self.origin, times.get(index, 0))

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> MessageBatch: ...

    def __getitem__(self, index: int | slice) -> Message | MessageBatch:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            if step != 1:
                raise ValueError("a batch is sliced without a step; make a list of it first")
            return MessageBatch(cut(self.pieces, start, stop), self.origin)
        left = index + self._length if index < 0 else index
        for piece in self.pieces:
            if 0 <= left < piece.count:
                chosen = piece.indexes[left]
                return piece.entry.message(chosen, self.origin, piece.times.get(chosen, 0))
            left -= piece.count
        raise IndexError(f"the batch has {self._length} messages")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MessageBatch | list):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Sequence[Message]) -> list[Message]:
        return [*self, *other]

    def __radd__(self, other: list[Message]) -> list[Message]:
        return [*other, *self]

    def __repr__(self) -> str:
        return f"<MessageBatch of {self._length} from {self.origin.topic}>"


def cut(pieces: list[Piece], start: int, stop: int) -> list[Piece]:
    """Cut out the messages start to stop, stop excluded, counted through all pieces."""
    cut_out = []
    for piece in pieces:
        count = piece.count
        if start < count and stop > 0:
            cut_out.append(
                piece if start <= 0 and stop >= count else piece.part(max(start, 0), min(stop, count))
            )
        start, stop = start - count, stop - count
        if stop <= 0:
            break
    return cut_out

"""The receiver queue: messages delivered to a consumer and not yet given to its application, in position order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from storage.subscription import message_set
from storage.topic.message_batch import Piece
from storage.values.position import Position

Messages = dict[Position, int]
"""Messages by the position of their entry."""


class ReceiverQueue:
    """Pieces of entries, at most one of each entry."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque()

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._pieces)

    @property
    def first(self) -> Position:
        """The position of the first entry; the queue is not empty."""
        return self._pieces[0].at

    @property
    def last(self) -> Position:
        """The position of the last entry; the queue is not empty."""
        return self._pieces[-1].at

    def replace(self, pieces: Iterable[Piece]) -> None:
        """Queue newly delivered messages, and nothing else."""
        self._pieces = deque(pieces)

    def take(self, count: int) -> list[Piece]:
        """Take out the next messages, at most `count`."""
        taken: list[Piece] = []
        while self._pieces and count > 0:
            piece = self._pieces.popleft()
            if piece.count > count:
                self._pieces.appendleft(piece.part(count, piece.count))
                piece = piece.part(0, count)
            taken.append(piece)
            count -= piece.count
        return taken

    def messages(self) -> Messages:
        """All queued messages, by entry."""
        return {piece.at: piece.messages for piece in self._pieces}

    def keep(self, chosen: Callable[[Piece], int]) -> None:
        """Keep of each piece the messages that `chosen` returns, and forget the rest."""
        kept: deque[Piece] = deque()
        for piece in self._pieces:
            still = chosen(piece) & piece.messages
            if still == piece.messages:
                kept.append(piece)
            elif still:
                kept.append(Piece(piece.entry, message_set.indexes(still), piece.times))
        self._pieces = kept

    def drop(self, gone: Messages) -> None:
        """Forget messages that went back."""
        if gone:
            self.keep(lambda piece: ~gone.get(piece.at, 0))

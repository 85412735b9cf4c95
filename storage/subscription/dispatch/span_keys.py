"""Keys of messages in spans, remembered by a consumer of a Key_Shared subscription between dispatches.

The content of an entry never changes, so a key stays right once read. Each load compares the sets of waiting messages
with the sets of the load before, and reads only the entries that are new in them. Nothing is stored: a consumer that
knows nothing reads the entries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Final

from storage.subscription import span
from storage.values.position import Position

UNREAD: Final = object()
"""In place of a key: not read yet, or of an open transaction. Such a message blocks nothing, and is read again."""

ReadKey = Callable[[Position], object]
"""The key of the one message of an entry; None without a key, or for a message that blocks nothing; or UNREAD."""


class SpanKeys:
    """The waiting messages of spans by key: each blocks the later messages of its key.

    Attributes:
        idle: the state of all deliveries at a walk that found nothing to deliver in spans; None after any other walk.
    """

    __slots__ = ("_by_key", "_keys", "_undecided", "_waiting", "idle")

    def __init__(self) -> None:
        self._keys: dict[Position, list[object]] = {}
        self._waiting: dict[Position, int] = {}
        self._by_key: dict[bytes, list[Position]] = {}
        self._undecided: set[Position] = set()
        self.idle: object = None

    def load(self, waiting: Iterable[tuple[Position, int]], read: ReadKey) -> None:
        """Take over the waiting messages of all spans, each by the first entry of its span."""
        before, self._waiting = self._waiting, dict(waiting)
        for first in self._keys.keys() - self._waiting.keys():
            del self._keys[first]
        new = [at for at in self._undecided if self._has(at)]
        self._undecided.clear()
        for first, messages in self._waiting.items():
            new += span.entries(first, messages & ~before.get(first, 0))
        for at in new:
            key = self.key(at, read)
            if key is not None:
                heappush(self._by_key.setdefault(key, []), at)

    def _has(self, at: Position) -> bool:
        return bool(self._waiting.get(span.first_of(at), 0) & span.bit_of(at))

    def key(self, at: Position, read: ReadKey) -> bytes | None:
        """The key of the message of an entry."""
        first = span.first_of(at)
        keys, index = self._keys.get(first), at[1] - first[1]
        if keys is None:
            keys = self._keys[first] = [UNREAD] * span.SPAN_ENTRIES
        if keys[index] is UNREAD:
            keys[index] = read(at)
            if keys[index] is UNREAD:
                self._undecided.add(at)
        key = keys[index]
        return key if isinstance(key, bytes) else None

    def first(self, key: bytes) -> Position | None:
        """The first waiting message of a key, or None."""
        known = self._by_key.get(key)
        if known is None:
            return None
        while known:
            at = known[0]
            if self._has(at):
                return at
            heappop(known)
        del self._by_key[key]
        return None

    def blocks(self, key: bytes, at: Position) -> bool:
        """Whether a waiting message before an entry has this key."""
        first = self.first(key)
        return first is not None and first < at

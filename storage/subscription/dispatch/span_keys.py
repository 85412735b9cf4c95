"""Keys of messages in spans, remembered by a consumer of a Key_Shared subscription between dispatches.

The content of an entry never changes, so a key stays right once read. Each load compares the sets of waiting messages
with the sets of the load before, and reads only the entries that are new in them. A free message behind a waiting one
of its key stays blocked until waiting messages of that key are gone, and is not examined before. Nothing is stored: a
consumer that knows nothing reads the entries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from storage.subscription import message_set, span
from storage.subscription.dispatch.blocked_keys import MessageOrder
from storage.subscription.dispatch.held_keys import UNREAD, EntryKeys
from storage.values.position import Position

ReadKeys = Callable[[Position], EntryKeys]


class SpanKeys:
    """The waiting messages of spans by key: each blocks the later messages of its key.

    Attributes:
        idle: the state of all deliveries at a walk that found nothing to deliver in spans; None after any other walk.
    """

    __slots__ = ("_blocked", "_blocked_by_key", "_by_key", "_keys", "_undecided", "_waiting", "idle")

    def __init__(self) -> None:
        self._keys: dict[Position, list[EntryKeys | None]] = {}
        self._waiting: dict[Position, int] = {}
        self._by_key: dict[bytes, list[MessageOrder]] = {}
        self._undecided: set[Position] = set()
        self._blocked: dict[Position, int] = {}
        self._blocked_by_key: dict[bytes, list[MessageOrder]] = {}
        self.idle: object = None

    def load(self, waiting: Iterable[tuple[Position, int]], read: ReadKeys) -> None:
        """Take over the waiting messages of all spans, each by the first entry of its span."""
        before, self._waiting = self._waiting, dict(waiting)
        changed = self._keys_gone(before) if self._blocked_by_key else set[bytes]()
        for first in self._keys.keys() - self._waiting.keys():
            del self._keys[first]
            self._blocked.pop(first, None)
        undecided, self._undecided = self._undecided, set()
        for at in undecided:
            self._forget(at)
            self._learn(at, self._waiting_of(at), read)
        for first, messages in self._waiting.items():
            new = messages & ~before.get(first, 0)
            for at in span.entries(first, new):
                self._learn(at, span.of_entry(at, new), read)
        for key in changed:
            self._unblock(key)

    def _keys_gone(self, before: dict[Position, int]) -> set[bytes]:
        """The keys of messages that waited before and wait no longer."""
        gone = set[bytes]()
        for first, messages in before.items():
            left = messages & ~self._waiting.get(first, 0)
            for at in span.entries(first, left):
                known = self._known(at) or []
                keys = [
                    known[index]
                    for index in message_set.indexes(span.of_entry(at, left))
                    if index < len(known)
                ]
                gone.update(key for key in keys if isinstance(key, bytes))
        return gone

    def _unblock(self, key: bytes) -> None:
        """Have the messages of a key examined again that no waiting message blocks any more."""
        blocked, first = self._blocked_by_key.get(key, []), self.first(key)
        while blocked and (first is None or blocked[0] <= first):
            at, index = Position(*blocked[0][:2]), blocked[0][2]
            span_first = span.first_of(at)
            if span_first in self._blocked:
                self._blocked[span_first] &= ~span.place(at, 1 << index)
            heappop(blocked)
        if not blocked:
            self._blocked_by_key.pop(key, None)

    def blocked(self, first: Position, free: int, read: ReadKeys) -> int:
        """The messages, among free ones of a span, that are behind a waiting message of their key."""
        known = self._blocked.get(first, 0)
        for at in span.entries(first, free & ~known):
            for index in message_set.indexes(span.of_entry(at, free & ~known)):
                key, here = self.key(at, index, read), (*at, index)
                if key is not None and self.blocks(key, here):
                    known |= span.place(at, 1 << index)
                    heappush(self._blocked_by_key.setdefault(key, []), here)
        self._blocked[first] = known
        return known & free

    def _learn(self, at: Position, messages: int, read: ReadKeys) -> None:
        """Note the first of these messages of an entry for each key; `first` finds the others."""
        seen = set[bytes]()
        for index in message_set.indexes(messages):
            key = self.key(at, index, read)
            if key is not None and key not in seen:
                seen.add(key)
                heappush(self._by_key.setdefault(key, []), (*at, index))

    def _waiting_of(self, at: Position) -> int:
        return span.of_entry(at, self._waiting.get(span.first_of(at), 0))

    def _known(self, at: Position) -> EntryKeys | None:
        keys = self._keys.get(span.first_of(at))
        return None if keys is None else keys[at[1] % span.SPAN_ENTRIES]

    def _forget(self, at: Position) -> None:
        keys = self._keys.get(span.first_of(at))
        if keys is not None:
            keys[at[1] % span.SPAN_ENTRIES] = None

    def key(self, at: Position, index: int, read: ReadKeys) -> bytes | None:
        """The key of a message of an entry."""
        keys = self._known(at)
        if keys is None:
            keys = read(at)
            self._keys.setdefault(span.first_of(at), [None] * span.SPAN_ENTRIES)[
                at[1] % span.SPAN_ENTRIES
            ] = keys
            if UNREAD in keys:
                self._undecided.add(at)
        key = keys[index] if index < len(keys) else None
        return key if isinstance(key, bytes) else None

    def first(self, key: bytes) -> MessageOrder | None:
        """The first waiting message of a key, or None."""
        known = self._by_key.get(key)
        if known is None:
            return None
        while known:
            here = self._still(key, known[0])
            if here == known[0]:
                return here
            heappop(known)
            if here is not None:
                heappush(known, here)
        del self._by_key[key]
        return None

    def _still(self, key: bytes, here: MessageOrder) -> MessageOrder | None:
        """The first waiting message of a key in the entry of a message, from there on, or None."""
        at = Position(*here[:2])
        waiting, keys = self._waiting_of(at) >> here[2], self._known(at) or ()
        for index in message_set.indexes(waiting):
            if here[2] + index < len(keys) and keys[here[2] + index] == key:
                return (*here[:2], here[2] + index)
        return None

    def blocks(self, key: bytes, here: MessageOrder) -> bool:
        """Whether a waiting message before a message has this key."""
        first = self.first(key)
        return first is not None and first < here

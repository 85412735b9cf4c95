"""Delayed messages: passed by dispatch before their delivery time, and delivered when that has come.

Only Shared and Key_Shared heed delivery times. Dispatch passes such a message once, and notes it here by position
(DELAYED) and by due time (DELAYED_DUE), so that neither a walk nor a report reads messages that are not due: the next
due time is one look-up, however many messages wait. A message leaves when it is delivered, acknowledged or made
pending. Due times are wall times in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Generic, Protocol, TypeVar

from storage.disk.codec import (
    U64X2,
    corrupt,
    decoded,
    key1,
    key3,
    key4,
    key_through,
    missing,
    pack,
    unpack_first,
)
from storage.disk.schema import CURSORS, DELAYED, DELAYED_DUE
from storage.disk.view import ReadView, WriteBatch
from storage.errors import CorruptStore
from storage.subscription import message_set, subscription_purge
from storage.values.position import Position, as_position

V = TypeVar("V", bound=ReadView, covariant=True)


class DelayedCount(Protocol):
    """The cursor of a subscription: counts its delayed messages, and says under which number they are stored."""

    delayed: int
    delayed_id: int


class DelayedEntry:
    """The delayed messages of one entry.

    Attributes:
        at: the position of the entry.
        count: messages of the entry.
        due: messages by due time; no message is there twice.
    """

    __slots__ = ("at", "count", "due")

    def __init__(self, at: Position, count: int, due: dict[int, int] | None = None) -> None:
        self.at = at
        self.count = count
        self.due = due if due is not None else {}

    @classmethod
    def decode(cls, key: bytes, payload: memoryview) -> DelayedEntry:
        """Decode the record stored under `key`.

        Raises:
            CorruptStore: a message is there twice, or the payload is no such record.
        """
        return decoded(DELAYED, key, payload, partial(cls._of, as_position(U64X2.unpack(key[8:]))))

    @classmethod
    def _of(cls, at: Position, payload: memoryview) -> DelayedEntry:
        count, rows = unpack_first(payload, 2)
        entry, known = cls(at, count), 0
        for due_ms, stored in rows:
            messages = message_set.decode(stored, count)
            if messages & known:
                raise CorruptStore("a message is delayed twice")
            known |= messages
            entry.due[due_ms] = messages
        return entry

    def encode(self) -> bytes:
        rows = [[due_ms, message_set.encode(self.due[due_ms], self.count)] for due_ms in sorted(self.due)]
        return pack([self.count, rows])

    def messages(self) -> int:
        """All delayed messages of the entry."""
        every = 0
        for messages in self.due.values():
            every |= messages
        return every

    def due_by(self, now_ms: int) -> int:
        """The messages whose time has come."""
        due = 0
        for due_ms, messages in self.due.items():
            if due_ms <= now_ms:
                due |= messages
        return due


def stored_under(subscription_id: int, cursor: DelayedCount) -> int:
    """The number under which the delayed messages of a subscription are stored."""
    return cursor.delayed_id or subscription_id


def every(view: ReadView, delayed_id: int) -> Iterator[DelayedEntry]:
    """Yield the delayed messages stored under a number, in position order."""
    for key, payload in view.scan(DELAYED, key1(delayed_id)):
        yield DelayedEntry.decode(key, payload)


def due_keys(view: ReadView, delayed_id: int) -> Iterator[tuple[int, Position]]:
    """Yield the index of the delayed messages: due times, the earliest first, each with the position of its entry."""
    for key in view.keys(DELAYED_DUE, key1(delayed_id)):
        yield int.from_bytes(key[8:16], "big"), as_position(U64X2.unpack(key[16:]))


class Delayed(Generic[V]):
    """The delayed messages of one subscription, which the cursor counts."""

    __slots__ = ("_cursor", "_subscription_id", "_view")

    def __init__(self, view: V, subscription_id: int, cursor: DelayedCount) -> None:
        self._view = view
        self._subscription_id = subscription_id
        self._cursor = cursor

    @property
    def _id(self) -> int:
        return stored_under(self._subscription_id, self._cursor)

    # Reading

    def next_due_ms(self, after_ms: int | None = None) -> int | None:
        """The earliest due time; None where no message is delayed.

        Args:
            after_ms: only times behind this one count; None for every time.

        Raises:
            CorruptStore: delayed messages are counted, and none is in the index: they would never be delivered.
        """
        if not self._cursor.delayed:
            return None
        prefix = key1(self._id)
        record = self._view.first(
            DELAYED_DUE, prefix, None if after_ms is None else prefix + key1(after_ms + 1)
        )
        if record is None and after_ms is not None:
            return None
        if record is None:
            why = f"no delayed message is found; the subscription has {self._cursor.delayed}"
            raise corrupt(DELAYED_DUE, key1(self._id), why)
        return int.from_bytes(record[0][8:16], "big")

    def is_due(self, now_ms: int) -> bool:
        """Whether the time of a delayed message has come."""
        due_ms = self.next_due_ms()
        return due_ms is not None and due_ms <= now_ms

    def due(self, now_ms: int, enough: int) -> dict[Position, int]:
        """The messages whose time has come, by position.

        Args:
            enough: messages after which no further entry is looked at; those due first are taken first.
        """
        due: dict[Position, int] = {}
        for at in self._due_entries(now_ms):
            if at not in due:
                due[at] = self._stored(at).due_by(now_ms)
                enough -= due[at].bit_count()
                if enough <= 0:
                    break
        return dict(sorted(due.items()))

    def waiting(self, now_ms: int) -> int:
        """Count the messages whose time has not come: reads nothing but the messages that are due."""
        due = 0
        for at in dict.fromkeys(self._due_entries(now_ms)):
            due += self._stored(at).due_by(now_ms).bit_count()
        if due > self._cursor.delayed:
            why = f"it counts {self._cursor.delayed} delayed messages; {due} are due"
            raise corrupt(CURSORS, key1(self._subscription_id), why)
        return self._cursor.delayed - due

    def at(self, position: Position) -> int:
        """The delayed messages of an entry."""
        entry = self._find(position)
        return entry.messages() if entry is not None else 0

    def size(self, position: Position) -> int:
        """The number of messages of an entry that has delayed ones."""
        return self._stored(position).count

    def _due_entries(self, now_ms: int) -> Iterator[Position]:
        for due_ms, at in due_keys(self._view, self._id) if self._cursor.delayed else ():
            if due_ms > now_ms:
                return
            yield at

    def _find(self, at: Position) -> DelayedEntry | None:
        key = key3(self._id, *at)
        payload = self._view.get(DELAYED, key) if self._cursor.delayed else None
        return None if payload is None else DelayedEntry.decode(key, payload)

    def _stored(self, at: Position) -> DelayedEntry:
        """The delayed messages of an entry that the index names.

        Raises:
            CorruptStore
        """
        entry = self._find(at)
        if entry is None:
            raise missing(DELAYED, key3(self._id, *at))
        return entry

    # Changing

    def postpone(self: Delayed[WriteBatch], at: Position, count: int, due: dict[int, int]) -> None:
        """Note messages of an entry, which has `count` messages, by due time. None of the messages is delayed yet."""
        entry = self._find(at) or DelayedEntry(at, count)
        for due_ms, messages in due.items():
            assert not messages & entry.messages(), "a message has one due time"
            entry.due[due_ms] = entry.due.get(due_ms, 0) | messages
            self._view.put(DELAYED_DUE, key4(self._id, due_ms, *at), b"")
            self._cursor.delayed += messages.bit_count()
        self._view.put(DELAYED, key3(self._id, *at), entry.encode())

    def remove(self: Delayed[WriteBatch], at: Position, messages: int) -> None:
        """Forget messages of an entry, delayed or not: delivered, acknowledged, or pending."""
        entry = self._find(at)
        if entry is None or not entry.messages() & messages:
            return
        for due_ms, delayed in list(entry.due.items()):
            self._cursor.delayed -= (delayed & messages).bit_count()
            entry.due[due_ms] = delayed & ~messages
            if not entry.due[due_ms]:
                del entry.due[due_ms]
                self._view.delete(DELAYED_DUE, key4(self._id, due_ms, *at))
        key = key3(self._id, *at)
        if entry.due:
            self._view.put(DELAYED, key, entry.encode())
        else:
            self._view.delete(DELAYED, key)
        if self._cursor.delayed < 0:
            why = "it counts fewer delayed messages than are found"
            raise corrupt(CURSORS, key1(self._subscription_id), why)

    def remove_through(self: Delayed[WriteBatch], through: Position) -> None:
        """Forget all messages up to an entry."""
        if not self._cursor.delayed:
            return
        stop = key_through(self._id, through)
        for key, payload in list(self._view.scan(DELAYED, key1(self._id), stop=stop)):
            entry = DelayedEntry.decode(key, payload)
            self.remove(entry.at, entry.messages())

    def remove_between(self: Delayed[WriteBatch], first: Position, end: Position | None = None) -> None:
        """Forget all messages between two entries, both included; from `first` on without an end."""
        if not self._cursor.delayed:
            return
        start = key3(self._id, *first)
        stop = None if end is None else key3(self._id, *end)
        for key, payload in list(self._view.scan(DELAYED, key1(self._id), start, stop)):
            entry = DelayedEntry.decode(key, payload)
            self.remove(entry.at, entry.messages())

    def clear(self: Delayed[WriteBatch]) -> None:
        """Forget all messages, as dispatch must pass them again.

        Many records are left as remains, which later steps remove; new ones are stored under another number.
        """
        if self._cursor.delayed and not subscription_purge.remove_delayed(self._view, self._id):
            self._view.superblock.last_subscription += 1
            self._cursor.delayed_id = self._view.superblock.last_subscription
        self._cursor.delayed = 0

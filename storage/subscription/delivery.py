"""Deliveries: the state of an entry's messages that a subscription has delivered or held back (DELIVERIES).

Each message that is not acknowledged and at or before the cursor's read position is in exactly one part:

    holder > 0     in flight at that consumer
    holder = 0     free: to be delivered (again), not before `due_ns`; `times` counts the deliveries so far
    holder = -1    acknowledged in an open transaction: pending, and delivered to no consumer

`recalled` marks messages that an abort took back from a consumer: a cumulative acknowledgement may not pass over such
a message before it was delivered again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Generic, TypeVar

from storage.disk.codec import U64X2, corrupt, decoded, key1, key3, key_through, pack, unpack_first
from storage.disk.schema import CURSORS, DELIVERIES
from storage.disk.view import ReadView, WriteBatch
from storage.errors import CorruptStore
from storage.subscription import message_set
from storage.subscription.cursor import Cursor
from storage.values.position import Position, as_position

NOBODY = 0
PENDING = -1

V = TypeVar("V", bound=ReadView, covariant=True)


class DeliveryPart:
    """Messages of one entry that share one state."""

    __slots__ = ("due_ns", "holder", "messages", "recalled", "times")

    def __init__(
        self, messages: int, holder: int, times: int, due_ns: int = 0, recalled: bool = False
    ) -> None:
        self.messages = messages
        self.holder = holder
        self.times = times
        self.due_ns = due_ns
        self.recalled = recalled

    def fate(self) -> tuple[int, int, int, bool]:
        return (self.holder, self.times, self.due_ns, self.recalled)

    def freed(self, *, was_received: bool, due_ns: int = 0) -> DeliveryPart:
        """These messages, free from a time on. Recalled messages stay so until an application receives them again.

        Args:
            was_received: the messages were in flight at a consumer which tells that its application received them.
        """
        return DeliveryPart(
            self.messages, NOBODY, self.times, due_ns, recalled=self.recalled and not was_received
        )


class Delivery:
    """The parts of one entry, which has `count` messages."""

    __slots__ = ("at", "count", "parts", "was_released")

    def __init__(
        self, at: Position, count: int, parts: list[DeliveryPart], was_released: bool = False
    ) -> None:
        self.at = at
        self.count = count
        self.parts = parts
        self.was_released = was_released

    @classmethod
    def decode(cls, key: bytes, payload: memoryview) -> Delivery:
        """Decode the delivery stored under `key`.

        Raises:
            CorruptStore: a message is in two parts, or the payload is no delivery.
        """
        delivery = decoded(DELIVERIES, key, payload, partial(cls._of, as_position(U64X2.unpack(key[8:]))))
        delivery.was_released = delivery.is_released
        return delivery

    @classmethod
    def _of(cls, at: Position, payload: memoryview) -> Delivery:
        count, packed = unpack_first(payload, 2)
        delivery, known = cls(at, count, []), 0
        for fields in packed:
            part = DeliveryPart(message_set.decode(fields[0], count), *fields[1:])
            if part.messages & known:
                raise CorruptStore("a message is in two parts")
            known |= part.messages
            delivery.parts.append(part)
        return delivery

    @property
    def is_released(self) -> bool:
        return any(part.holder == NOBODY for part in self.parts)

    def known(self) -> int:
        """The messages that are in some part."""
        known = 0
        for part in self.parts:
            known |= part.messages
        return known

    def of(self, holder: int) -> int:
        """The messages that a holder has."""
        held = 0
        for part in self.parts:
            if part.holder == holder:
                held |= part.messages
        return held

    def in_flight(self) -> int:
        """The messages that some consumer has."""
        held = 0
        for part in self.parts:
            if part.holder > 0:
                held |= part.messages
        return held

    def take(self, messages: int) -> list[DeliveryPart]:
        """Cut messages out of their parts; return the cut messages as parts with unchanged states."""
        cut, kept = [], []
        for part in self.parts:
            common = part.messages & messages
            if common:
                cut.append(DeliveryPart(common, *part.fate()))
            if part.messages != common:
                kept.append(DeliveryPart(part.messages & ~common, *part.fate()))
        self.parts = kept
        return cut

    def give(self, part: DeliveryPart) -> None:
        """Add a part, joined with a part of the same state."""
        assert part.messages & self.known() == 0, "a message is in one part"
        for known in self.parts:
            if known.fate() == part.fate():
                known.messages |= part.messages
                return
        self.parts.append(part)


def find(view: ReadView, subscription_id: int, at: Position) -> Delivery | None:
    """Find the delivery of an entry, or None."""
    key = key3(subscription_id, *at)
    payload = view.get(DELIVERIES, key)
    return None if payload is None else Delivery.decode(key, payload)


def every(view: ReadView, subscription_id: int, start: Position | None = None) -> Iterator[Delivery]:
    """Yield the deliveries of a subscription, in position order."""
    first = None if start is None else key3(subscription_id, start[0], max(start[1], 0))
    for key, payload in view.scan(DELIVERIES, key1(subscription_id), first):
        yield Delivery.decode(key, payload)


class Deliveries(Generic[V]):
    """The deliveries of one subscription. The cursor counts the entries with free messages."""

    __slots__ = ("_cursor", "_subscription_id", "_view")

    def __init__(self, view: V, subscription_id: int, cursor: Cursor) -> None:
        self._view = view
        self._subscription_id = subscription_id
        self._cursor = cursor

    def find(self, at: Position) -> Delivery | None:
        """Find the delivery of an entry, or None."""
        key = key3(self._subscription_id, *at)
        payload = self._view.get(DELIVERIES, key)
        return None if payload is None else Delivery.decode(key, payload)

    def scan(self, start: Position | None = None) -> Iterator[Delivery]:
        """Yield the deliveries in position order, from `start` on.

        Raises:
            CorruptStore: a delivery with free messages is missing: they would never be delivered again.
        """
        expected, released = self._cursor.released, 0
        for delivery in every(self._view, self._subscription_id, start):
            released += delivery.was_released
            yield delivery
        if start is None and released < expected:
            why = f"{released} entries with free messages are found; the subscription has {expected}"
            raise corrupt(DELIVERIES, key1(self._subscription_id), why)

    def put(self: Deliveries[WriteBatch], delivery: Delivery) -> None:
        """Write a delivery, or remove a delivery without parts, and keep the cursor's count of released entries."""
        key = key3(self._subscription_id, *delivery.at)
        if delivery.parts:
            packed = [
                [message_set.encode(part.messages, delivery.count), *part.fate()] for part in delivery.parts
            ]
            self._view.put(DELIVERIES, key, pack([delivery.count, packed]))
        else:
            self._view.delete(DELIVERIES, key)
        self._cursor.released += delivery.is_released - delivery.was_released
        delivery.was_released = delivery.is_released
        if self._cursor.released < 0:
            why = "it counts fewer entries with free messages than are found"
            raise corrupt(CURSORS, key1(self._subscription_id), why)

    def settle(self: Deliveries[WriteBatch], at: Position, messages: int, consumer_id: int = NOBODY) -> None:
        """Forget messages of an entry, acknowledged by a consumer or by an operator (NOBODY)."""
        delivery = self.find(at)
        if delivery is not None:
            cut = delivery.take(messages)
            if cut:
                self.note_taken(cut, consumer_id)
                self.put(delivery)

    def note_taken(self, parts: list[DeliveryPart], consumer_id: int) -> None:
        """Raise the generation, so that queues drop messages that a different process has taken from a consumer."""
        if any(part.holder > 0 and part.holder != consumer_id for part in parts):
            self._cursor.generation += 1

    def settle_through(self: Deliveries[WriteBatch], through: Position, consumer_id: int = NOBODY) -> None:
        """Forget all messages up to an entry, acknowledged by a consumer or by an operator (NOBODY)."""
        for delivery in self.scan():
            if delivery.at > through:
                break
            self._cursor.released -= delivery.is_released
            self.note_taken(delivery.parts, consumer_id)
        sid = self._subscription_id
        self._view.delete_prefix(DELIVERIES, key1(sid), stop=key_through(sid, through))

    def release(self: Deliveries[WriteBatch], consumer_id: int, untouched: dict[Position, int] | None) -> int:
        """Free all messages of a consumer that is gone; return the number.

        Args:
            untouched: by entry, the messages that the consumer never gave to its application: such messages count as
                not delivered. None if only the consumer could tell.
        """
        released = 0
        for delivery in list(self.scan()):
            held = delivery.of(consumer_id)
            if not held:
                continue
            released += held.bit_count()
            _free(delivery, held, None if untouched is None else untouched.get(delivery.at, 0))
            self.put(delivery)
        return released

    def give_back(self: Deliveries[WriteBatch], consumer_id: int, untouched: dict[Position, int]) -> None:
        """Free messages that a consumer never gave to its application, as if they had not been delivered.

        Args:
            untouched: the messages, by entry; only the messages in flight at the consumer are freed.
        """
        for at, messages in untouched.items():
            delivery = self.find(at)
            if delivery is not None:
                held = delivery.of(consumer_id) & messages
                _free(delivery, held, held)
                self.put(delivery)


def _free(delivery: Delivery, held: int, untouched: int | None) -> None:
    """Free a consumer's messages; untouched messages, None if unknown, count as not delivered."""
    spare = held & (untouched or 0)
    for part in delivery.take(spare):
        part.times -= 1
        delivery.give(part.freed(was_received=False))
    for part in delivery.take(held & ~spare):
        delivery.give(part.freed(was_received=untouched is not None))

"""What has become of the messages of an entry that a subscription has handed out or held back (DELIVERIES).

Each message that is not acknowledged and at or before the cursor's read position is in exactly one part:

    holder > 0     in flight at that consumer
    holder = 0     nobody's: to be handed out (again), not before `due_ns`; `times` says how often it was
    holder = -1    its acknowledgement is pending in a transaction: it goes to nobody

`recalled` marks what an abort took back from a consumer: a cumulative acknowledgement may not pass over it until it
was handed out again.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.codec import key1, key3, key_through, pack, unpack
from storage.disk.schema import DELIVERIES
from storage.disk.view import ReadView, WriteBatch
from storage.subscription import message_set
from storage.subscription.cursor import Cursor

NOBODY = 0
PENDING = -1


class Part:
    """Messages of one entry that share their fate."""

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


class Delivery:
    """The parts of one entry, which has `count` messages."""

    __slots__ = ("at", "count", "parts", "was_released")

    def __init__(
        self, at: tuple[int, int], count: int, parts: list[Part], was_released: bool = False
    ) -> None:
        self.at = at
        self.count = count
        self.parts = parts
        self.was_released = was_released

    @classmethod
    def decode(cls, key: bytes, payload: memoryview) -> Delivery:
        at = (int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:], "big"))
        count, packed = unpack(payload)
        parts = [Part(message_set.decode(each[0], count), *each[1:]) for each in packed]
        delivery = cls(at, count, parts)
        delivery.was_released = delivery.is_released
        return delivery

    @property
    def is_released(self) -> bool:
        return any(part.holder == NOBODY for part in self.parts)

    def known(self) -> int:
        """Messages that are in some part."""
        known = 0
        for part in self.parts:
            known |= part.messages
        return known

    def of(self, holder: int) -> int:
        """Messages that a holder has."""
        held = 0
        for part in self.parts:
            if part.holder == holder:
                held |= part.messages
        return held

    def in_flight(self) -> int:
        """Messages that some consumer has."""
        held = 0
        for part in self.parts:
            if part.holder > 0:
                held |= part.messages
        return held

    def take(self, messages: int) -> list[Part]:
        """Cut messages out of their parts; what was cut, as parts of the fates they had."""
        cut, kept = [], []
        for part in self.parts:
            common = part.messages & messages
            if common:
                cut.append(Part(common, *part.fate()))
            if part.messages != common:
                kept.append(Part(part.messages & ~common, *part.fate()))
        self.parts = kept
        return cut

    def give(self, part: Part) -> None:
        """Add a part, joined with one of the same fate."""
        assert part.messages & self.known() == 0, "a message is in one part"
        for known in self.parts:
            if known.fate() == part.fate():
                known.messages |= part.messages
                return
        self.parts.append(part)


def find(view: ReadView, subscription_id: int, at: tuple[int, int]) -> Delivery | None:
    """What became of the messages of an entry, or None if nothing did."""
    key = key3(subscription_id, *at)
    payload = view.get(DELIVERIES, key)
    return None if payload is None else Delivery.decode(key, payload)


def every(view: ReadView, subscription_id: int, start: tuple[int, int] | None = None) -> Iterator[Delivery]:
    """The deliveries of a subscription, in position order."""
    first = None if start is None else key3(subscription_id, start[0], max(start[1], 0))
    for key, payload in view.scan(DELIVERIES, key1(subscription_id), first):
        yield Delivery.decode(key, payload)


def save(batch: WriteBatch, subscription_id: int, cursor: Cursor, delivery: Delivery) -> None:
    """Write the delivery, or remove it when nothing is left, and keep the cursor's count of released entries."""
    key = key3(subscription_id, *delivery.at)
    if delivery.parts:
        packed = [
            [message_set.encode(part.messages, delivery.count), *part.fate()] for part in delivery.parts
        ]
        batch.put(DELIVERIES, key, pack([delivery.count, packed]))
    else:
        batch.delete(DELIVERIES, key)
    cursor.released += delivery.is_released - delivery.was_released
    delivery.was_released = delivery.is_released
    assert cursor.released >= 0, "released entries are counted"


def settle(
    batch: WriteBatch,
    subscription_id: int,
    cursor: Cursor,
    at: tuple[int, int],
    messages: int,
    by: int = NOBODY,
) -> None:
    """These messages are acknowledged, by consumer `by` or from outside: they are nobody's business any more."""
    delivery = find(batch, subscription_id, at)
    if delivery is not None:
        cut = delivery.take(messages)
        if cut:
            note_taken(cursor, cut, by)
            save(batch, subscription_id, cursor, delivery)


def note_taken(cursor: Cursor, parts: list[Part], by: int) -> None:
    """A consumer that loses what it was handed, by another's doing, must not give it to its application."""
    if any(part.holder > 0 and part.holder != by for part in parts):
        cursor.generation += 1


def settle_through(
    batch: WriteBatch, subscription_id: int, cursor: Cursor, through: tuple[int, int], by: int = NOBODY
) -> None:
    """Everything up to and including an entry is acknowledged, by consumer `by` or from outside."""
    for found in every(batch, subscription_id):
        if found.at > through:
            break
        cursor.released -= found.is_released
        note_taken(cursor, found.parts, by)
    batch.delete_prefix(DELIVERIES, key1(subscription_id), stop=key_through(subscription_id, through))


def release(
    batch: WriteBatch,
    subscription_id: int,
    cursor: Cursor,
    consumer_id: int,
    untouched: dict[tuple[int, int], int],
) -> int:
    """A consumer is gone: what it held is to be handed out again; how many messages.

    Args:
        untouched: by entry, the messages that it never gave to its application: they count as not handed out.
    """
    released = 0
    for found in list(every(batch, subscription_id)):
        held = found.of(consumer_id)
        if not held:
            continue
        released += held.bit_count()
        _give_up(found, held, untouched.get(found.at, 0))
        save(batch, subscription_id, cursor, found)
    return released


def give_back(
    batch: WriteBatch,
    subscription_id: int,
    cursor: Cursor,
    consumer_id: int,
    untouched: dict[tuple[int, int], int],
) -> None:
    """What a consumer was handed and never gave to its application is nobody's, as if it had not been handed out.

    Args:
        untouched: the messages, by entry; of those the ones that are in flight there.
    """
    for at, messages in untouched.items():
        found = find(batch, subscription_id, at)
        if found is not None:
            held = found.of(consumer_id) & messages
            _give_up(found, held, held)
            save(batch, subscription_id, cursor, found)


def _give_up(found: Delivery, held: int, untouched: int) -> None:
    """A consumer's messages are nobody's now; those untouched count as not handed out."""
    for part in found.take(held):
        spare = part.messages & untouched
        if spare:
            found.give(Part(spare, NOBODY, part.times - 1, recalled=part.recalled))
        if part.messages != spare:
            found.give(Part(part.messages & ~spare, NOBODY, part.times))

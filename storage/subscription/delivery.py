"""Deliveries: the state of messages that a subscription has delivered or held back (DELIVERIES).

A record is of one entry, or of a span of entries with few messages each (`span.py`). An entry with a record of its
own, which earlier releases wrote, is in no span; `deliveries.py` keeps the records.

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
from heapq import merge

from storage.disk.codec import decoded, key1, key3, pack, unpack
from storage.disk.schema import DELIVERIES
from storage.disk.view import ReadView, WriteBatch
from storage.errors import CorruptStore
from storage.limits import SPAN_FATES_MAX
from storage.subscription import message_set, span
from storage.values.position import Position

NOBODY = 0
PENDING = -1


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
    """The parts of one entry, which has `count` messages, or of a span of `count` entries.

    Attributes:
        at: the entry, or the first entry of the span.
        is_span: whether the record is of a span.
        sizes: of a span, how many messages each entry has (`span.py`).
        has_record: of an entry, whether its record is its own.
        was_released: the entries with free messages, as the cursor counts them.
    """

    __slots__ = ("at", "count", "has_record", "is_span", "parts", "sizes", "was_released")

    def __init__(
        self,
        at: Position,
        count: int,
        parts: list[DeliveryPart],
        *,
        is_span: bool = False,
        was_released: int = 0,
    ) -> None:
        self.at = at
        self.count = count
        self.parts = parts
        self.is_span = is_span
        self.sizes = 0
        self.has_record = not span.fits(count)
        self.was_released = was_released

    @classmethod
    def decode(cls, key: bytes, payload: memoryview) -> Delivery:
        """Decode the delivery stored under `key`.

        Raises:
            CorruptStore: a message is in two parts, or in no entry, or the payload is no delivery.
        """
        return decoded(DELIVERIES, key, payload, partial(cls._of, *span.unpack(key[8:])))

    @classmethod
    def _of(cls, at: Position, is_span: bool, payload: memoryview) -> Delivery:
        from_bytes = int.from_bytes
        count, packed, *rest = unpack(payload, 2)
        if is_span and (count != span.SPAN_ENTRIES or at[1] % span.SPAN_ENTRIES):
            raise CorruptStore("it is no span")
        delivery, known = cls(at, count, [], is_span=is_span), 0
        for fields in packed:
            if not is_span:
                messages = message_set.decode(fields[0], count)
            else:  # as `span.decode`, whose check of each part the check of all parts replaces
                messages = from_bytes(fields[0], "big") if fields[0] else span.EVERY
            if messages & known or not messages:
                raise CorruptStore("a message is in two parts, or a part has none")
            known |= messages
            delivery.parts.append(DeliveryPart(messages, *fields[1:]))
        if is_span and rest:
            delivery.sizes = span.decode(rest[0])
        if is_span and known > span.EVERY and known & ~(delivery.sizes | span.EVERY):
            raise CorruptStore("a message is in no entry")
        delivery.has_record = True
        delivery.was_released = delivery.released
        return delivery

    def encode(self) -> bytes:
        """The payload; of a delivery without parts, which has no record, nothing."""
        if not self.parts:
            return b""
        if not self.is_span:
            return pack(
                [
                    self.count,
                    [[message_set.encode(part.messages, self.count), *part.fate()] for part in self.parts],
                ]
            )
        packed = [
            [span.encode(part.messages), part.holder, part.times, part.due_ns, part.recalled]
            for part in self.parts
        ]
        if self.sizes:
            self.sizes &= span.every_layer(span.present(self.known()))
        return pack([self.count, packed, span.encode(self.sizes)] if self.sizes else [self.count, packed])

    def size(self, at: Position) -> int:
        """The number of messages of an entry that this span has."""
        return span.size(at, self.sizes)

    def named(self, at: Position, messages: int) -> int:
        """Messages of an entry as a set within this span, given 0 for all; 0 if they are in no span."""
        if self.sizes and not messages:
            messages = message_set.everything(self.size(at))
        return span.place(at, messages or 1) if messages <= span.MESSAGES else 0

    def of_entries(self, entries: int) -> int:
        """All messages of entries of this span, given as layer 0, as a set within the span."""
        return span.every_layer(entries) & (self.sizes | span.EVERY) if self.sizes else entries

    @property
    def has_room(self) -> bool:
        """Whether any change of messages of this span leaves it within the bound of different fates."""
        return len(self.parts) < SPAN_FATES_MAX // 2

    def of_entry(self, at: Position) -> Delivery | None:
        """The delivery of an entry of this span, or None. Changes of it do not change the span."""
        if not self.sizes:
            bit = span.bit_of(at)
            for part in self.parts:
                if part.messages & bit:
                    return Delivery(at, 1, [DeliveryPart(1, *part.fate())])
            return None
        parts = [
            DeliveryPart(messages, *part.fate())
            for part in self.parts
            if (messages := span.of_entry(at, part.messages))
        ]
        return Delivery(at, self.size(at), parts) if parts else None

    def entries(self, start: Position | None = None) -> Iterator[Delivery]:
        """The deliveries of the entries of this span in order, from `start` on."""
        fates: list[tuple[int, tuple[int, int, int, bool]]] = []
        beyond = -1 if start is None else ~span.through(self.at, Position(start[0], start[1] - 1))
        if self.sizes:
            of_entries = (self.of_entry(at) for at in span.entries(self.at, self.known() & beyond))
            yield from filter(None, of_entries)
            return
        for part in self.parts:
            fates += [(index, part.fate()) for index in message_set.indexes(part.messages & beyond)]
        ledger_id, first = self.at
        for index, fate in sorted(fates):
            yield Delivery(Position(ledger_id, first + index), 1, [DeliveryPart(1, *fate)])

    def through(self, at: Position, inside: int) -> int:
        """The messages of this record up to a position, of the entry there those in `inside`."""
        if self.is_span:
            return span.through(self.at, at, inside)
        return message_set.everything(self.count) & (inside if self.at == at else -1) if self.at <= at else 0

    def first_entry(self, messages: int) -> Position:
        """The first entry of these messages."""
        if not self.is_span:
            return self.at
        inside = span.present(messages)
        return Position(self.at[0], self.at[1] + (inside & -inside).bit_length() - 1)

    @property
    def released(self) -> int:
        """The number of entries with free messages."""
        free = self.of(NOBODY)
        return span.present(free).bit_count() if self.is_span else bool(free)

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

    def due(self, now_ns: int) -> int:
        """The messages that are free and due."""
        due = 0
        for part in self.parts:
            if part.holder == NOBODY and part.due_ns <= now_ns:
                due |= part.messages
        return due

    def times(self, messages: int) -> dict[int, int]:
        """How often each of these messages was delivered, by its index; those never delivered are left out."""
        times: dict[int, int] = {}
        for part in self.parts:
            if part.times and part.messages & messages:
                for index in message_set.indexes(part.messages & messages):
                    times[index] = part.times
        return times

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
            if part.messages == common:
                cut.append(part)
                continue
            if common:
                cut.append(DeliveryPart(common, *part.fate()))
                part.messages ^= common
            kept.append(part)
        self.parts = kept
        return cut

    def deliver(self, messages: int, consumer_id: int) -> None:
        """Give messages to a consumer, and count their deliveries."""
        new = messages & ~self.known()
        for part in self.take(messages):
            self.give(DeliveryPart(part.messages, consumer_id, part.times + 1, recalled=part.recalled))
        if new:
            self.give(DeliveryPart(new, consumer_id, 1))

    def hold(self, messages: int) -> None:
        """Hold back messages that were never delivered."""
        self.give(DeliveryPart(messages, NOBODY, 0))

    def join_due(self, now_ns: int) -> None:
        """Join the messages that are free and due already, whatever time they were due at."""
        if not any(part.holder == NOBODY and 0 < part.due_ns <= now_ns for part in self.parts):
            return
        parts, self.parts = self.parts, []
        for part in parts:
            if part.holder == NOBODY and part.due_ns <= now_ns:
                part.due_ns = 0
            self.give(part)

    def put_entry(self, entry: Delivery) -> bool:
        """Give an entry of this span the parts of its delivery.

        Returns:
            False if there is no room for the states of the parts: the entry is then not in the span.
        """
        at = entry.at
        if entry.count == 1:
            return self.move(span.bit_of(at), entry.parts[0] if entry.parts else None)
        self.take(span.place(at, message_set.everything(entry.count)))
        fates = {part.fate() for part in self.parts}
        if len(fates | {part.fate() for part in entry.parts}) > SPAN_FATES_MAX:
            return False
        for part in entry.parts:
            self.give(DeliveryPart(span.place(at, part.messages), *part.fate()))
        self.sizes |= span.sizes_of(at, entry.count)
        return True

    def move(self, bit: int, to: DeliveryPart | None) -> bool:
        """Give one message the state of a part, or take the message out; False if there is no room for the state."""
        for part in self.parts:
            if part.messages & bit:
                part.messages ^= bit
                if not part.messages:
                    self.parts.remove(part)
                break
        if to is None:
            return True
        fate = to.fate()
        for part in self.parts:
            if part.holder == to.holder and part.times == to.times and part.fate() == fate:
                part.messages |= bit
                return True
        if len(self.parts) >= SPAN_FATES_MAX:
            return False
        self.parts.append(DeliveryPart(bit, *fate))
        return True

    def give(self, part: DeliveryPart) -> None:
        """Add a part, joined with a part of the same state."""
        assert part.messages & self.known() == 0, "a message is in one part"
        holder, fate = part.holder, part.fate()
        for known in self.parts:
            if known.holder == holder and known.fate() == fate:
                known.messages |= part.messages
                return
        self.parts.append(part)


def find(view: ReadView, subscription_id: int, at: Position) -> Delivery | None:
    """Find the delivery of an entry, or None."""
    delivery = find_own(view, subscription_id, at)
    if delivery is not None:
        return delivery
    record = find_span(view, subscription_id, span.first_of(at))
    return None if record is None else record.of_entry(at)


def find_own(view: ReadView, subscription_id: int, at: Position) -> Delivery | None:
    """Find the record that an entry has for itself, or None."""
    key = key3(subscription_id, *at)
    payload = view.get(DELIVERIES, key)
    return None if payload is None else Delivery.decode(key, payload)


def find_span(view: ReadView, subscription_id: int, first: Position) -> Delivery | None:
    """Find the record of a span, or None. A batch shares one object, and writes its changes."""
    key = span.key(subscription_id, first)
    return view.open(DELIVERIES, key, partial(Delivery.decode, key))


def own(view: ReadView, subscription_id: int, start: Position | None = None) -> Iterator[Delivery]:
    """Yield the records of single entries, in position order."""
    first = None if start is None else key3(subscription_id, start[0], max(start[1], 0))
    end = span.first_key(subscription_id)
    for key, payload in view.scan(DELIVERIES, key1(subscription_id), first, end):
        if key != end:
            yield Delivery.decode(key, payload)


def spans(view: ReadView, subscription_id: int, start: Position | None = None) -> Iterator[Delivery]:
    """Yield the records of spans in position order, from the span of `start` on. A batch shares the objects."""
    first = span.first_key(subscription_id)
    if start is not None:
        first = span.key(subscription_id, span.first_of(Position(start[0], max(start[1], 0))))
    is_batch = isinstance(view, WriteBatch)
    for key, payload in view.scan(DELIVERIES, key1(subscription_id), first):
        record = find_span(view, subscription_id, span.unpack(key[8:])[0]) if is_batch else None
        yield record or Delivery.decode(key, payload)


def records(view: ReadView, subscription_id: int, start: Position | None = None) -> Iterator[Delivery]:
    """Yield the records of entries, then those of spans, each in position order."""
    yield from own(view, subscription_id, start)
    yield from spans(view, subscription_id, start)


def every(view: ReadView, subscription_id: int, start: Position | None = None) -> Iterator[Delivery]:
    """Yield the deliveries of a subscription by entry, in position order."""
    of_spans = (entry for record in spans(view, subscription_id, start) for entry in record.entries(start))
    return merge(own(view, subscription_id, start), of_spans, key=lambda delivery: delivery.at)


def delete_all(batch: WriteBatch, subscription_id: int) -> None:
    """Remove all records of a subscription, open ones included."""
    for record in list(spans(batch, subscription_id)):
        batch.remove(DELIVERIES, span.key(subscription_id, record.at))
    batch.delete_prefix(DELIVERIES, key1(subscription_id))

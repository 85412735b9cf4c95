"""The records of deliveries of one subscription, and their changes.

Invariant 23: the cursor counts the entries with free messages. An entry of up to 128 messages is kept in the record of
its span, unless it has a record of its own: an earlier release wrote it, or the span has its bound of different fates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import merge
from itertools import takewhile
from typing import Generic, TypeVar

from storage.disk.codec import corrupt, key1, key3, key_through, pack
from storage.disk.schema import CURSORS, DELIVERIES
from storage.disk.view import ReadView, WriteBatch
from storage.limits import FREE_PLACES_MAX, SPAN_FATES_MAX
from storage.subscription import delivery as records, span
from storage.subscription.cursor import Cursor
from storage.subscription.delivery import NOBODY, Delivery, DeliveryPart
from storage.values.position import Position

Untouched = Callable[[int, Delivery, int], int]
"""The messages of a record, among some in flight at a consumer, that no application has received."""

EntryMessages = tuple[Position, int, int]
"""An entry, some of its messages, and the number that the entry has."""

Change = Callable[[Delivery, int], None]
"""A change of messages in the record of an entry or of a span."""

V = TypeVar("V", bound=ReadView, covariant=True)


class FreePlaces:
    """The places of the records with free messages, as a reader has met them last: proved by the cursor's count."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: list[tuple[Position, bool]] = []

    def __iter__(self) -> Iterator[tuple[Position, bool]]:
        return iter(self._places)

    def note(self, free: list[Delivery]) -> None:
        """Remember the places of all records with free messages, if these are few."""
        is_few = len(free) <= FREE_PLACES_MAX
        self._places = [(record.at, record.is_span) for record in free] if is_few else []


class _FreeRecords:
    """The records with free messages that a look has met.

    Attributes:
        released: the entries with free messages in these records.
        records: the records.
    """

    __slots__ = ("_released_of_all", "records", "released")

    def __init__(self, released_of_all: int) -> None:
        self._released_of_all = released_of_all
        self.released = 0
        self.records: list[Delivery] = []

    def up_to_last(self, stored: Iterator[Delivery]) -> Iterator[Delivery]:
        """Yield records until all entries with free messages are met."""
        while self.released < self._released_of_all and (record := next(stored, None)) is not None:
            if record.is_released:
                self.released += record.released
                self.records.append(record)
            yield record


class Deliveries(Generic[V]):
    """The deliveries of one subscription."""

    __slots__ = ("_cursor", "_known", "_subscription_id", "_view")

    def __init__(self, view: V, subscription_id: int, cursor: Cursor) -> None:
        self._view = view
        self._subscription_id = subscription_id
        self._cursor = cursor
        self._known: tuple[Position, Delivery | None] | None = None

    # Reading

    def find(self, at: Position) -> Delivery | None:
        """Find the delivery of an entry, or None."""
        return records.find_own(self._view, self._subscription_id, at) or self.find_in_span(at)

    def find_in_span(self, at: Position) -> Delivery | None:
        """Find the delivery of an entry in the record of its span, or None."""
        record = self.find_span(span.first_of(at))
        return None if record is None else record.of_entry(at)

    def find_span(self, first: Position) -> Delivery | None:
        """Find the record of the span that begins at an entry, or None."""
        if isinstance(self._view, WriteBatch):
            return records.find_span(self._view, self._subscription_id, first)
        if self._known is None or self._known[0] != first:
            self._known = first, records.find_span(self._view, self._subscription_id, first)
        return self._known[1]

    def split_by_span(
        self, items: Sequence[tuple[Position, int]], chosen: Callable[[Delivery], int]
    ) -> tuple[list[tuple[Delivery, int]], list[tuple[Position, int]]]:
        """The items whose messages are all chosen ones of the record of a span, by span; and the rest.

        Args:
            items: entries, each once, and messages of each; 0 for all.
            chosen: the messages of a record to be taken at once.
        """
        named = span.by_span([(at, messages) for at, messages in items if messages <= span.MESSAGES])
        whole = span.by_span([(at, 1) for at, messages in items if not messages])
        taken, apart = list[tuple[Delivery, int]](), dict[Position, tuple[Delivery | None, int]]()
        for first, in_part in named.items():
            record = self.find_span(first)
            known = chosen(record) if record is not None else 0
            messages = (
                in_part | record.of_entries(whole.get(first, 0)) if record is not None and whole else in_part
            )
            if record is None or messages & ~known:
                apart[first] = record, known
            else:
                taken.append((record, messages))
        rest = [item for item in items if item[1] > span.MESSAGES]
        if apart:
            left = [item for item in items if item[1] <= span.MESSAGES and span.first_of(item[0]) in apart]
            taken += _split_apart(left, apart, rest)
        return taken, rest

    def free(self, chosen: Callable[[Delivery], int], places: FreePlaces) -> Iterator[Delivery]:
        """Yield, by entry in position order, the deliveries with chosen messages, which are free.

        The records are looked at up to the last one with free messages, or at the remembered places alone where these
        have as many entries with free messages as the cursor counts.

        Args:
            chosen: the messages of a record to yield.

        Raises:
            CorruptStore: a delivery with free messages is missing: they would never be delivered again.
        """
        known = self._at_places(places)
        if known is not None:
            yield from by_entry(known, chosen)
            return
        free = _FreeRecords(self._cursor.released)
        own = free.up_to_last(records.own(self._view, self._subscription_id))
        spans = free.up_to_last(records.spans(self._view, self._subscription_id))
        yield from _merged(own, spans, chosen)
        self._check_released(free.released)
        places.note(free.records)

    def _at_places(self, places: FreePlaces) -> list[Delivery] | None:
        """The records at remembered places; None if a record elsewhere has free messages."""
        view, subscription_id, known = self._view, self._subscription_id, list[Delivery]()
        for at, is_span in places:
            record = self.find_span(at) if is_span else records.find_own(view, subscription_id, at)
            known += [record] if record is not None else []
        return known if sum(record.released for record in known) == self._cursor.released else None

    def records(self, start: Position | None = None) -> list[Delivery]:
        """The records, from the entry or the span of `start` on: of single entries, then of spans.

        Raises:
            CorruptStore: a delivery with free messages is missing: they would never be delivered again.
        """
        stored = list(records.records(self._view, self._subscription_id, start))
        if start is None:
            self._check_released(sum(record.released for record in stored))
        return stored

    def through(self, last: Position) -> list[Delivery]:
        """The records up to an entry, its own or its span's included: of single entries, then of spans."""
        kinds = (records.own, records.spans)
        stored = (kind(self._view, self._subscription_id) for kind in kinds)
        return [record for each_kind in stored for record in takewhile(lambda one: one.at <= last, each_kind)]

    def through_free(self) -> Iterator[Delivery]:
        """Yield the records up to the last one with free messages: of single entries, then of spans.

        Raises:
            CorruptStore: a delivery with free messages is missing: they would never be delivered again.
        """
        free = _FreeRecords(self._cursor.released)
        yield from free.up_to_last(records.records(self._view, self._subscription_id))
        self._check_released(free.released)

    def _check_released(self, released: int) -> None:
        if released < self._cursor.released:
            why = f"{released} entries with free messages are found; the subscription has {self._cursor.released}"
            raise corrupt(DELIVERIES, key1(self._subscription_id), why)

    # Changing

    def put(self: Deliveries[WriteBatch], delivery: Delivery) -> None:
        """Write a delivery, or remove a delivery without parts, and keep the cursor's count of released entries.

        The record of a span is written by the batch, which has it open.
        """
        if delivery.is_span:
            self._count(delivery)
        elif delivery.has_record or not self._put_in_span(delivery):
            self._put_own(delivery)

    def _put_own(self: Deliveries[WriteBatch], delivery: Delivery) -> None:
        key = key3(self._subscription_id, *delivery.at)
        if delivery.parts:
            self._view.put(DELIVERIES, key, delivery.encode())
        else:
            self._view.delete(DELIVERIES, key)
        delivery.has_record = True
        self._count(delivery)

    def _put_in_span(self: Deliveries[WriteBatch], delivery: Delivery) -> bool:
        """Put the messages of an entry into its span; False if the span has its bound of different fates."""
        first = span.first_of(delivery.at)
        record = self.find_span(first)
        if record is None and not delivery.parts:
            return True
        record = record or self._new_span(first)
        has_room = record.put_entry(delivery)
        self._count(record)
        return has_room

    def _new_span(self: Deliveries[WriteBatch], first: Position) -> Delivery:
        """Open a new record. Scans find open records by their keys, so that one without parts is stored at once."""
        record, key = (
            Delivery(first, span.SPAN_ENTRIES, [], is_span=True),
            span.key(self._subscription_id, first),
        )
        self._view.put(DELIVERIES, key, pack([span.SPAN_ENTRIES, []]))
        self._view.add(DELIVERIES, key, record)
        return record

    def change_in_spans(
        self: Deliveries[WriteBatch], chosen: Sequence[EntryMessages], change: Change
    ) -> None:
        """Change messages of entries in the records of their spans, a span at once; none has a record of its own.

        Entries of a span with many different fates are changed one by one: for want of room some may get own records.
        """
        full = dict[Position, Delivery]()
        sets = span.by_span([(at, messages) for at, messages, _ in chosen])
        sizes = span.by_span([(at, (1 << count) - 2) for at, _, count in chosen if count > 1])
        for first, messages in sets.items():
            record = self.find_span(first) or self._new_span(first)
            if record.has_room:
                record.sizes |= sizes.get(first, 0)
                change(record, messages)
                self._count(record)
            else:
                full[first] = record
        for at, messages, count in chosen if full else ():
            if span.first_of(at) in full:
                delivery = full[span.first_of(at)].of_entry(at) or Delivery(at, count, [])
                change(delivery, messages)
                self.put(delivery)

    def _count(self, record: Delivery) -> None:
        released = record.released
        self._cursor.released += released - record.was_released
        record.was_released = released
        if self._cursor.released < 0:
            why = "it counts fewer entries with free messages than are found"
            raise corrupt(CURSORS, key1(self._subscription_id), why)

    def due_ns(self: Deliveries[WriteBatch], at: Position, delay_ns: int) -> int:
        """The time from which a message of an entry may be delivered again, after a delay.

        In a span with many different fates the time is rounded up by a sixteenth of the delay at most, so that messages
        given back one by one share a few times.
        """
        now_ns, record = self._view.now_ns, self.find_span(span.first_of(at))
        if record is None or len(record.parts) < SPAN_FATES_MAX // 8:
            return now_ns + delay_ns
        record.join_due(now_ns)
        step_ns = max(delay_ns // 16, 1)
        return -(-(now_ns + delay_ns) // step_ns) * step_ns

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
        for part in parts:
            if part.holder > 0 and part.holder != consumer_id:
                self._cursor.generation += 1
                return

    def settle_through(self: Deliveries[WriteBatch], through: Position, consumer_id: int = NOBODY) -> None:
        """Forget all messages up to an entry, acknowledged by a consumer or by an operator (NOBODY)."""
        for record in self.through(through):
            if record.is_span:
                self.note_taken(record.take(span.through(record.at, through)), consumer_id)
                self._count(record)
            else:
                self._cursor.released -= record.released
                self.note_taken(record.parts, consumer_id)
        key = key_through(self._subscription_id, through)
        self._view.delete_prefix(DELIVERIES, key1(self._subscription_id), stop=key)

    def settle_in_span(self: Deliveries[WriteBatch], first: Position, messages: int) -> None:
        """Forget entries of a span, acknowledged by an operator."""
        record = self.find_span(first)
        if record is not None:
            self.note_taken(record.take(messages), NOBODY)
            self._count(record)

    def settle_between(self: Deliveries[WriteBatch], first: Position, end: Position) -> None:
        """Forget all messages between two entries of a ledger, both included, acknowledged by an operator."""
        view, subscription_id = self._view, self._subscription_id
        for delivery in list(
            takewhile(lambda known: known.at <= end, records.own(view, subscription_id, first))
        ):
            self._cursor.released -= delivery.released
            self.note_taken(delivery.parts, NOBODY)
            view.delete(DELIVERIES, key3(subscription_id, *delivery.at))
        before = Position(first[0], first[1] - 1)
        for record in takewhile(lambda known: known.at <= end, records.spans(view, subscription_id, first)):
            self.settle_in_span(record.at, span.through(record.at, end) & ~span.through(record.at, before))

    def clear(self: Deliveries[WriteBatch]) -> None:
        """Forget all messages."""
        records.delete_all(self._view, self._subscription_id)
        self._cursor.released = 0

    def release(
        self: Deliveries[WriteBatch], consumers: Collection[int], untouched: Untouched, *, was_received: bool
    ) -> int:
        """Free all messages of consumers that are gone; return the number.

        Args:
            untouched: the messages of a record in flight at a consumer that it never gave to an application: such
                messages count as not delivered.
            was_received: the consumers themselves tell that their applications received the rest.
        """
        released = 0
        for record in self.records():
            holders = sorted({part.holder for part in record.parts}.intersection(consumers))
            for consumer_id in holders:
                held = record.of(consumer_id)
                released += held.bit_count()
                _free(record, held, untouched(consumer_id, record, held), was_received=was_received)
            if holders:
                self.put(record)
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
                _free(delivery, held, held, was_received=False)
                self.put(delivery)


def by_entry(stored: Sequence[Delivery], chosen: Callable[[Delivery], int]) -> Iterator[Delivery]:
    """Yield, by entry in position order, the deliveries of records with chosen messages; of each kind in order."""
    own = (record for record in stored if not record.is_span)
    return _merged(own, (record for record in stored if record.is_span), chosen)


def _merged(
    own: Iterator[Delivery], spans: Iterator[Delivery], chosen: Callable[[Delivery], int]
) -> Iterator[Delivery]:
    of_spans = (record.of_entry(at) for record in spans for at in span.entries(record.at, chosen(record)))
    chosen_own = (record for record in own if chosen(record))
    return merge(chosen_own, filter(None, of_spans), key=lambda delivery: delivery.at)


def _split_apart(
    items: Sequence[tuple[Position, int]],
    apart: dict[Position, tuple[Delivery | None, int]],
    rest: list[tuple[Position, int]],
) -> list[tuple[Delivery, int]]:
    """Split items of spans of which not every named message is a chosen one; add to `rest`.

    Args:
        apart: the records of the spans, with the chosen messages.
    """
    taken = dict.fromkeys(apart, 0)
    for at, messages in items:
        first = span.first_of(at)
        record, chosen = apart[first]
        named = record.named(at, messages) if record is not None else 0
        if named and not named & ~chosen:
            taken[first] |= named
        else:
            rest.append((at, messages))
    return [
        (record, taken[first]) for first, (record, _) in apart.items() if record is not None and taken[first]
    ]


def _free(delivery: Delivery, held: int, untouched: int, *, was_received: bool) -> None:
    """Free a consumer's messages; untouched messages count as not delivered."""
    spare = held & untouched
    for part in delivery.take(spare):
        part.times -= 1
        delivery.give(part.freed(was_received=False))
    for part in delivery.take(held & ~spare):
        delivery.give(part.freed(was_received=was_received))

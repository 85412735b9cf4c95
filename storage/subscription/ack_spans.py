"""Acknowledged messages by span: each a bit, so that single acknowledgements do not become a record each.

A span with every entry acknowledged becomes a range of `cursor.py`, and an entry next to a range joins the range. No
entry is in both. All of them lie ahead of markDeletePosition.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.codec import key1, pack, unpack
from storage.disk.schema import ACKS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import CorruptStore
from storage.subscription import message_set, span
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position

_PLAIN_BYTES_MAX = span.SPAN_ENTRIES // 8
"""Length of the record of a span without entries of several messages, which is its set; others are longer."""


class AckedMessages(NamedTuple):
    """The acknowledged messages of a span, and its sizes (`span.py`)."""

    messages: int
    sizes: int

    @property
    def whole(self) -> int:
        """The entries acknowledged whole, as layer 0."""
        return span.whole(self.messages, self.sizes) if self.sizes else self.messages

    def without(self, messages: int) -> AckedMessages:
        """All but some messages."""
        return AckedMessages(self.messages & ~messages, self.sizes)


NOTHING = AckedMessages(0, 0)


def _decode(payload: memoryview) -> AckedMessages:
    if len(payload) <= _PLAIN_BYTES_MAX:
        return AckedMessages(message_set.decode(payload, span.SPAN_ENTRIES), 0)
    messages, sizes = map(span.decode, unpack(payload, 2)[:2])
    if messages & ~(sizes | span.EVERY):
        raise CorruptStore("a message is in no entry")
    return AckedMessages(messages, sizes)


def _encode(acknowledged: AckedMessages) -> bytes:
    sizes = acknowledged.sizes and acknowledged.sizes & span.every_layer(span.present(acknowledged.messages))
    if not sizes:
        return message_set.encode(acknowledged.messages, span.SPAN_ENTRIES)
    return pack([span.encode(acknowledged.messages), span.encode(sizes)])


def of_span(view: ReadView, subscription_id: int, first: Position) -> AckedMessages:
    """The acknowledged messages of the span that begins at an entry."""
    payload = view.get(ACKS, span.key(subscription_id, first))
    return NOTHING if payload is None else _decode(payload)


def of_entry(view: ReadView, subscription_id: int, at: Position) -> int:
    """The acknowledged messages that an entry has in its span."""
    return span.of_entry(at, of_span(view, subscription_id, span.first_of(at)).messages)


def every(
    view: ReadView, subscription_id: int, start: Position | None = None, stop: Position | None = None
) -> Iterator[tuple[Position, AckedMessages]]:
    """Yield the spans in order, those of two entries included: first entry, acknowledged messages."""
    first = span.first_key(subscription_id) if start is None else _key_of(subscription_id, start)
    last = None if stop is None else _key_of(subscription_id, stop)
    for key, payload in view.scan(ACKS, key1(subscription_id), first, last):
        yield span.unpack(key[8:])[0], _decode(payload)


def _key_of(subscription_id: int, at: Position) -> bytes:
    return span.key(subscription_id, span.first_of(Position(at[0], max(at[1], 0))))


def run_at(view: ReadView, subscription_id: int, at: Position) -> tuple[int, int] | None:
    """The first and the last entry of the run of acknowledged entries in a span around an entry, or None."""
    first = span.first_of(at)
    whole = of_span(view, subscription_id, first).whole
    if not whole & span.bit_of(at):
        return None
    index = at[1] - first[1]
    before = ~whole & ((1 << index) - 1)
    return first[1] + before.bit_length(), first[1] + end_of_run(whole, index)


def end_of_run(whole: int, index: int) -> int:
    """The index of the last entry of a run of entries in a set.

    >>> end_of_run(0b01101, 2)
    3
    """
    rest = ~whole >> index
    return index + (rest & -rest).bit_length() - 2


def put(batch: WriteBatch, subscription_id: int, first: Position, acknowledged: AckedMessages) -> None:
    """Write the acknowledged messages of a span, or remove the record."""
    if acknowledged.messages:
        batch.put(ACKS, span.key(subscription_id, first), _encode(acknowledged))
    else:
        batch.delete(ACKS, span.key(subscription_id, first))


def remove(batch: WriteBatch, subscription_id: int, after: Position, through: Position) -> None:
    """Remove the entries after one position, up to and including a second."""
    for first, acknowledged in list(every(batch, subscription_id, after, through)):
        kept = acknowledged.without(span.through(first, through) & ~span.through(first, after))
        if kept.messages != acknowledged.messages:
            put(batch, subscription_id, first, kept)


def first_run(view: ReadView, subscription_id: int) -> tuple[Position, int] | None:
    """The first run in the first span, or the first entry there with a message: first entry, id of the last one.

    An entry that is not acknowledged whole is a run that ends before it begins.
    """
    for first, acknowledged in every(view, subscription_id):
        whole, inside = acknowledged.whole, span.present(acknowledged.messages)
        index = (inside & -inside).bit_length() - 1
        last = end_of_run(whole, index) if whole & 1 << index else index - 1
        return Position(first[0], first[1] + index), first[1] + last
    return None


def runs(view: ReadView, subscription_id: int) -> list[tuple[Position, int]]:
    """All runs in order: first entry, id of the last one."""
    return [
        run
        for first, acknowledged in every(view, subscription_id)
        for run in span.runs(first, acknowledged.whole)
    ]


def in_part(first: Position, acknowledged: AckedMessages) -> list[tuple[Position, int]]:
    """The entries of a span that are acknowledged in part, in order, each with the messages."""
    if not acknowledged.sizes:
        return []
    begun = span.present(acknowledged.messages) & ~acknowledged.whole
    return [(at, span.of_entry(at, acknowledged.messages)) for at in span.entries(first, begun)]

"""Spans: neighbouring entries of a ledger under one record, with a bit for each message. Pure.

Records about entries with few messages are kept for a span of them: the entries first to first + 1,023, where first is
a multiple of 1,024. A set within a span has layers of 1,024 bits: bit i of layer j stands for message j of the entry
first + i. So the number of bits is the number of messages, and a span of entries with one message each has layer 0
alone. The key of a span has the top bit of the ledger set, so that spans lie behind the records of single entries.

    entry 5:2049 with one message   ->  span 5:2048, bit 1
    entry 5:2050, a batch of 3      ->  span 5:2048, bits 2, 1,026 and 2,050
    a batch of more than 64         ->  a record of its own

The *sizes* of a span tell how many messages each entry has: a set of the messages after the first of each entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby

from storage.disk.codec import U64X2, key3
from storage.errors import CorruptStore
from storage.subscription import message_set
from storage.values.position import Position, as_position

SPAN_ENTRIES = 1024
"""Part of the format: the first entry of a span is a multiple, and each layer of its sets has as many bits."""

SPAN_MESSAGES_MAX = 64
"""Messages of an entry of a span, which are the layers of its sets; with more, an entry has a record of its own."""

EVERY = (1 << SPAN_ENTRIES) - 1
"""The first message of every entry: layer 0."""

MESSAGES = (1 << SPAN_MESSAGES_MAX) - 1
"""Every message that an entry of a span can have."""

_SPANS = 1 << 63
_LAYER_BYTES = SPAN_ENTRIES // 8
_BITS = SPAN_ENTRIES * SPAN_MESSAGES_MAX
_LOWEST = [(1 << layers * SPAN_ENTRIES) - 1 for layers in range(SPAN_MESSAGES_MAX // 2 + 1)]
"""The bits of the lowest layers, by their number."""

_AS_NUMBERS = bytes.maketrans(b"01", b"\x00\x01")
_LOW_BITS = bytes(b"01"[number & 1] for number in range(256))


def fits(count: int) -> bool:
    """Whether an entry with `count` messages is kept in its span."""
    return 0 < count <= SPAN_MESSAGES_MAX


def first_of(at: Position) -> Position:
    """The first entry of the span of an entry."""
    return as_position((at[0], at[1] - at[1] % SPAN_ENTRIES))


def bit_of(at: Position) -> int:
    """The first message of an entry, as a set within its span."""
    return 1 << at[1] % SPAN_ENTRIES


def place(at: Position, messages: int) -> int:
    """Messages of an entry as a set within its span.

    >>> place(Position(5, 2050), 0b101) == 1 << 2 | 1 << 2 + 2 * 1024
    True
    """
    return (messages if messages <= 1 else _spread(messages)) << at[1] % SPAN_ENTRIES


@lru_cache(256)
def _spread(messages: int) -> int:
    digits = f"{messages:b}".encode()[::-1].translate(_AS_NUMBERS)
    layers = bytearray(_LAYER_BYTES * len(digits))
    layers[::_LAYER_BYTES] = digits
    return int.from_bytes(layers, "little")


def of_entry(at: Position, messages: int) -> int:
    """The messages of one entry in a set within its span."""
    rest = messages >> at[1] % SPAN_ENTRIES
    layers = -(-rest.bit_length() // SPAN_ENTRIES)
    if layers <= 1:
        return rest & 1
    digits = rest.to_bytes(layers * _LAYER_BYTES, "little")[::_LAYER_BYTES].translate(_LOW_BITS)
    return int(digits[::-1], 2)


def size(at: Position, sizes: int) -> int:
    """The number of messages of an entry."""
    return max(of_entry(at, sizes).bit_length(), 1) if sizes else 1


def sizes_of(at: Position, count: int) -> int:
    """The sizes of a span that has one entry, of `count` messages."""
    return place(at, message_set.everything(count) - 1) if count > 1 else 0


def present(messages: int) -> int:
    """The entries of which a set has any message, as layer 0."""
    if messages.bit_length() <= SPAN_ENTRIES:
        return messages
    layers = -(-messages.bit_length() // SPAN_ENTRIES)
    while layers > 1:
        layers = (layers + 1) // 2
        messages = messages >> layers * SPAN_ENTRIES | messages & _LOWEST[layers]
    return messages


def whole(messages: int, sizes: int) -> int:
    """The entries of which a set has every message, as layer 0."""
    return messages & EVERY & ~present(sizes & ~messages)


def every_layer(entries: int) -> int:
    """All messages that entries could have, given the entries as layer 0."""
    return int.from_bytes(entries.to_bytes(_LAYER_BYTES, "little") * SPAN_MESSAGES_MAX, "little")


def encode(messages: int) -> bytes:
    """Encode a set within a span, which is not empty; no bytes for layer 0."""
    return b"" if messages == EVERY else messages.to_bytes((messages.bit_length() + 7) // 8, "big")


def decode(data: bytes | memoryview) -> int:
    """Decode a set within a span.

    Raises:
        CorruptStore: the set is empty, or has more than every message of every entry.
    """
    if not data:
        return EVERY
    messages = int.from_bytes(data, "big")
    if not 0 < messages.bit_length() <= _BITS:
        raise CorruptStore("it is no set of messages of a span")
    return messages


def key(object_id: int, first: Position) -> bytes:
    """The key of a span, which starts with the number of an object."""
    return key3(object_id, first[0] + _SPANS, first[1])


def first_key(object_id: int) -> bytes:
    """The lowest key that a span of an object can have."""
    return key3(object_id, _SPANS, 0)


def unpack(position: bytes) -> tuple[Position, bool]:
    """The position in a key, and whether it is the first entry of a span."""
    ledger_id, entry_id = U64X2.unpack(position)
    if ledger_id >= _SPANS:
        return as_position((ledger_id - _SPANS, entry_id)), True
    return as_position((ledger_id, entry_id)), False


def through(first: Position, at: Position, inside: int = -1) -> int:
    """The messages of a span up to a position, which may be `L:-1`; of the entry there those in `inside`.

    All messages of a span that ends before the position are the set -1.
    """
    if at < first:
        return 0
    if at[0] > first[0] or at[1] >= first[1] + SPAN_ENTRIES:
        return -1
    index, inside = at[1] - first[1], inside & MESSAGES
    if inside == MESSAGES:
        return _before(index + 1)
    return _before(index) | place(at, inside)


@lru_cache(64)
def _before(index: int) -> int:
    """The messages of the entries before the one at an index."""
    return every_layer((1 << index) - 1)


def entries(first: Position, messages: int) -> list[Position]:
    """The positions of the entries of a set, in order."""
    ledger_id, entry_id = first
    return [as_position((ledger_id, entry_id + index)) for index in message_set.indexes(present(messages))]


def entries_of(first: Position, messages: int) -> list[tuple[Position, bytes]]:
    """The entries of a set, in order, each with its messages as a record of the entry has them."""
    return [(at, as_stored(of_entry(at, messages))) for at in entries(first, messages)]


def as_stored(messages: int) -> bytes:
    """Messages of an entry as a record of the entry has them, whatever the number that the entry has."""
    return message_set.encode(messages, messages.bit_length() + 1)


def runs(first: Position, inside: int) -> Iterator[tuple[Position, int]]:
    """The stretches of neighbouring entries, given as layer 0: first position, id of the last entry.

    >>> [(str(begin), last) for begin, last in runs(Position(5, 2048), 0b1011)]
    [('5:2048', 2049), ('5:2051', 2051)]
    """
    indexes = message_set.indexes(inside)
    for _, stretch in groupby(enumerate(indexes), key=lambda pair: pair[1] - pair[0]):
        members = [index for _, index in stretch]
        yield Position(first[0], first[1] + members[0]), first[1] + members[-1]


def by_span(messages: Iterable[tuple[Position, int]]) -> dict[Position, int]:
    """Messages by entry, as sets by span; of an entry too large for a span the messages mean nothing there."""
    sets: dict[tuple[int, int], int] = {}
    first, bits = (0, -1), 0  # of no span
    for (ledger_id, entry_id), inside in messages:
        index = entry_id % SPAN_ENTRIES
        if first != (ledger_id, entry_id - index):
            sets[first] = bits
            first = ledger_id, entry_id - index
            bits = sets.get(first, 0)
        bits |= (inside if inside <= 1 else _spread(inside & MESSAGES)) << index
    sets[first] = bits
    del sets[0, -1]
    return {as_position(first): inside for first, inside in sets.items()}

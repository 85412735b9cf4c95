"""Spans: neighbouring entries of a ledger under one record, one bit each. Pure.

A message that was sent alone is an entry of its own. Records about such entries are kept for a span of them: the
entries first to first + 1,023, where first is a multiple of 1,024. Bit i of a set stands for the entry first + i. The
key of a span has the top bit of the ledger set, so that spans lie behind the records of single entries.

    entry 5:2049 with one message   ->  span 5:2048, bit 1
    entry 5:2050, a batch of 3      ->  a record of its own; bit 2 of the span is never set
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from storage.disk.codec import U64X2, key3
from storage.subscription import message_set
from storage.values.position import Position, as_position

SPAN_ENTRIES = 1024
"""Part of the format: the first entry of a span is a multiple, and its sets have as many bits."""

EVERY = (1 << SPAN_ENTRIES) - 1
_SPANS = 1 << 63


def first_of(at: Position) -> Position:
    """The first entry of the span of an entry."""
    return as_position((at[0], at[1] - at[1] % SPAN_ENTRIES))


def bit_of(at: Position) -> int:
    """The set of one entry within its span."""
    return 1 << at[1] % SPAN_ENTRIES


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


def through(first: Position, at: Position) -> int:
    """The entries of a span up to and including a position, which may be `L:-1`."""
    if at < first:
        return 0
    if at[0] > first[0] or at[1] >= first[1] + SPAN_ENTRIES - 1:
        return EVERY
    return message_set.through(at[1] - first[1])


def entries(first: Position, messages: int) -> list[Position]:
    """The positions of a set of entries, in order."""
    ledger_id, entry_id = first
    return [as_position((ledger_id, entry_id + index)) for index in message_set.indexes(messages)]


def runs(first: Position, messages: int) -> Iterator[tuple[Position, int]]:
    """The stretches of neighbouring entries in a set: first position, id of the last entry.

    >>> [(str(begin), last) for begin, last in runs(Position(5, 2048), 0b1011)]
    [('5:2048', 2049), ('5:2051', 2051)]
    """
    indexes = message_set.indexes(messages)
    for _, stretch in groupby(enumerate(indexes), key=lambda pair: pair[1] - pair[0]):
        members = [index for _, index in stretch]
        yield Position(first[0], first[1] + members[0]), first[1] + members[-1]


def by_span(messages: dict[Position, int]) -> dict[Position, int]:
    """The entries that are keys of a mapping, as sets by span."""
    sets: dict[Position, int] = {}
    for at in messages:
        first = first_of(at)
        sets[first] = sets.get(first, 0) | bit_of(at)
    return sets

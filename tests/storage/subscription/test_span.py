"""Spans of entries: `storage/subscription/span.py`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from storage.disk.codec import key3
from storage.subscription import span
from storage.values.position import Position

ENTRIES = st.integers(0, 5000)


def st_entry(count: int) -> st.SearchStrategy[tuple[int, int]]:
    """The number of messages of an entry, and some of the messages."""
    return st.tuples(st.just(count), st.integers(1, (1 << count) - 1))


@given(ledger_id=st.integers(1, 9), entry_id=ENTRIES)
def test_an_entry_is_found_at_its_bit(ledger_id: int, entry_id: int) -> None:
    """The span begins at a multiple of 1,024, and the bit counts from there."""
    at = Position(ledger_id, entry_id)
    first = span.first_of(at)
    assert first.entry_id % 1024 == 0
    assert span.entries(first, span.bit_of(at)) == [at]


@given(entry_id=ENTRIES, through=st.integers(-1, 5000), ledger_id=st.integers(1, 3))
def test_through_has_the_entries_up_to_a_position(entry_id: int, through: int, ledger_id: int) -> None:
    """Of an earlier ledger none, of a later ledger all."""
    at, last = Position(2, entry_id), Position(ledger_id, through)
    first = span.first_of(at)
    assert bool(span.through(first, last) & span.bit_of(at)) == (at <= last)


@given(messages=st.integers(0, (1 << 40) - 1))
def test_runs_are_the_set(messages: int) -> None:
    """No two runs touch."""
    first = Position(3, 1024)
    runs = list(span.runs(first, messages))
    inside = [Position(3, entry) for begin, last in runs for entry in range(begin.entry_id, last + 1)]
    assert inside == span.entries(first, messages)
    assert all(last + 1 < begin.entry_id for (_, last), (begin, _) in pairwise(runs))


def test_keys_of_spans_lie_behind_keys_of_entries() -> None:
    """Of the same object, and before those of the next."""
    at = Position(7, 2048)
    key = span.key(5, at)
    assert key3(5, (1 << 63) - 1, 9) < span.first_key(5) <= key < key3(6, 0, 0)
    assert span.unpack(key[8:]) == (at, True)
    assert span.unpack(key3(5, *at)[8:]) == (at, False)


@pytest.mark.parametrize("messages", [{}, {Position(1, 5): 1, Position(1, 1030): 0b111, Position(2, 5): 1}])
def test_positions_grouped_by_span(messages: dict[Position, int]) -> None:
    """Every position is in the set of its span."""
    sets = span.by_span(messages.items())
    placed = [
        (at, span.of_entry(at, bits)) for first, bits in sets.items() for at in span.entries(first, bits)
    ]
    assert sorted(placed) == sorted(messages.items())


PLACED = st.dictionaries(st.integers(0, 1023), st.integers(1, 64).flatmap(st_entry), max_size=8)


@given(PLACED)
def test_messages_of_entries(entries: dict[int, tuple[int, int]]) -> None:
    """Each entry finds its number of messages and its messages again; whole entries have every message."""
    first, messages, sizes = Position(3, 2048), 0, 0
    for index, (count, inside) in entries.items():
        at = Position(3, 2048 + index)
        messages |= span.place(at, inside)
        sizes |= span.sizes_of(at, count)
    assert messages.bit_count() == sum(inside.bit_count() for _, inside in entries.values())
    for index, (count, inside) in entries.items():
        at = Position(3, 2048 + index)
        assert (span.size(at, sizes), span.of_entry(at, messages)) == (count, inside)
        assert bool(span.whole(messages, sizes) & span.bit_of(at)) == (inside == (1 << count) - 1)
        before = messages & span.through(first, at, inside >> 1)
        assert span.of_entry(at, before) == inside & inside >> 1
        assert span.of_entry(at, messages & span.through(first, at)) == inside
        assert all(earlier <= at for earlier in span.entries(first, before))
    assert [at.entry_id - 2048 for at in span.entries(first, messages)] == sorted(entries)
    assert not messages or span.decode(span.encode(messages)) == messages

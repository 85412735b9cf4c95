"""The packing of bytes: keys that sort as their numbers, and values whose checksum covers where they stand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from storage.disk.codec import (
    decoded,
    key1,
    key2,
    key_through,
    pack,
    seal,
    unpack,
    unpack_first,
    unseal,
    unsealed,
)
from storage.disk.schema import ENTRIES, ENTRY_HEADER_BYTES, HEADS, TXNS
from storage.errors import CorruptStore

U64 = st.integers(0, (1 << 64) - 1)


@given(st.tuples(U64, U64), st.tuples(U64, U64))
def test_keys_sort_as_their_numbers(first: tuple[int, int], second: tuple[int, int]) -> None:
    """LMDB compares bytes."""
    assert (key2(*first) < key2(*second)) == (first < second)


@given(
    st.integers(0, 3),
    st.tuples(st.integers(0, 4), st.integers(-1, 4)),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
def test_a_bound_takes_in_what_is_at_or_below_it(
    topic: int, bound: tuple[int, int], at: tuple[int, int]
) -> None:
    """`L:-1` is above all of ledger L - 1, and below `L:0`; nothing is below the first entry but the first key."""
    is_below = key2(topic, at[0]) + key1(at[1]) <= key_through(topic, bound)
    assert is_below == (at <= bound or (bound == (0, -1) and at == (0, 0)))


@given(st.binary(max_size=40), st.binary(max_size=80))
def test_a_sealed_value_comes_back(key: bytes, payload: bytes) -> None:
    """Both ways of reading it."""
    data = seal(TXNS, key, payload)
    assert bytes(unseal(TXNS, key, data)) == payload == unsealed(TXNS, key, data)


@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_flipped_bit_is_noticed(payload: bytes, data: st.DataObject) -> None:
    """Anywhere in the value, its checksum included."""
    stored = bytearray(seal(TXNS, b"key", payload))
    bit = data.draw(st.integers(0, 8 * len(stored) - 1))
    stored[bit // 8] ^= 1 << bit % 8
    for read in (unseal, unsealed):
        with pytest.raises(CorruptStore, match="record 6b6579 of txns is corrupt"):
            read(TXNS, b"key", bytes(stored))


@pytest.mark.parametrize("length", range(4))
def test_a_value_that_is_cut_is_noticed(length: int) -> None:
    """Also where nothing is left but part of a checksum."""
    with pytest.raises(CorruptStore):
        unseal(TXNS, b"", seal(TXNS, b"", b"")[:length])


def test_a_value_belongs_to_its_key_and_database() -> None:
    """Copied elsewhere it is damage."""
    data = seal(TXNS, b"a", b"value")
    for database, key in ((TXNS, b"b"), (HEADS, b"a")):
        with pytest.raises(CorruptStore):
            unseal(database, key, data)


def test_of_an_entry_the_header_is_covered() -> None:
    """The body has a checksum of its own, in the header."""
    header, body = b"h" * ENTRY_HEADER_BYTES, b"body"
    data = seal(ENTRIES, b"k", header + body)
    assert bytes(unseal(ENTRIES, b"k", data[:-1] + b"!")) == header + b"bod!"
    with pytest.raises(CorruptStore):
        unseal(ENTRIES, b"k", data[:4] + b"x" + data[5:])


@pytest.mark.parametrize("record", [[], [1, -1, None, True], ["text", b"bytes", [1.5]], [{1: "a", "b": 2}]])
def test_a_record_comes_back(record: list[Any]) -> None:
    """Text as text, bytes as bytes, and keys that are numbers."""
    assert unpack(pack(record)) == record


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", pack(None), pack({"a": 1}), pack([1, 2]), pack([1, 2, 3])[:-1]]
)
def test_a_record_that_does_not_unpack_is_corrupt(data: bytes) -> None:
    """No bytes, noise, another type, an array that is too short or cut; the database and key are named."""
    for read in (lambda: unpack(data, 3), lambda: unpack_first(data, 3)):
        with pytest.raises(CorruptStore):
            read()
    with pytest.raises(CorruptStore, match="record 6b of txns") as raised:
        decoded(TXNS, b"k", memoryview(data), lambda payload: unpack(payload, 3))
    assert raised.value.details == {"database": "txns", "key": "6b"}


def test_further_elements_are_accepted() -> None:
    """Records may be extended at the end."""
    assert unpack(pack([1, 2, 3]), 2) == [1, 2, 3]
    assert unpack_first(pack([1, 2, 3]), 2) == [1, 2]


@pytest.mark.parametrize("error", [ValueError("x"), TypeError("x"), IndexError("x"), KeyError("x")])
def test_whatever_decoding_raises_is_corrupt(error: Exception) -> None:
    """The payload is not the expected record."""

    def decode(_: memoryview) -> None:
        raise error

    with pytest.raises(CorruptStore, match="it cannot be decoded"):
        decoded(TXNS, b"k", memoryview(b""), decode)

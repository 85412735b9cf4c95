"""Bytes of rows, and keys that sort."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from storage.disk.codec import key1, seal
from storage.disk.schema import ROWS
from storage.errors import CorruptStore, InvalidValue
from storage.limits import KEY_BYTES_MAX, TABLE_KEY_BYTES_MAX
from storage.table import row as rows
from storage.table.key_range import KeyRange, after_prefix
from storage.table.visibility import StoredRow, Version

KEYS = st.one_of(
    st.binary(min_size=1, max_size=TABLE_KEY_BYTES_MAX),
    st.lists(st.sampled_from([b"\0", b"a", b"\xff"]), min_size=1, max_size=20).map(b"".join),
)
VALUES = st.one_of(st.none(), st.binary(max_size=40))
U64 = st.integers(1, (1 << 63) - 1)


@given(st.one_of(st.none(), st.tuples(U64, U64, VALUES)), st.one_of(st.none(), st.tuples(U64, U64, VALUES)))
def test_a_row_is_read_as_it_was_written(
    committed: tuple[int, int, bytes | None] | None, intent: tuple[int, int, bytes | None] | None
) -> None:
    """Empty values and deletions are told apart."""
    if committed is None and intent is None:
        return
    if committed is not None and intent is not None and intent[0] <= committed[0]:
        committed, intent = (
            (min(committed[0], intent[0]), *committed[1:]),
            (
                max(committed[0], intent[0]) + 1,
                *intent[1:],
            ),
        )
    row = StoredRow(Version(*committed) if committed else None, Version(*intent) if intent else None)
    again = rows.decode(b"k", memoryview(rows.encode(row)))
    assert (again.committed, again.intent) == (row.committed, row.intent)


@given(KEYS, KEYS)
def test_grouped_keys_sort_as_keys_do_and_none_begins_another(first: bytes, second: bytes) -> None:
    """So that all versions of one key lie together, and no other key's between them."""
    assert (rows.grouped(first) < rows.grouped(second)) == (first < second)
    if first != second:
        assert not rows.grouped(first).startswith(rows.grouped(second))


@given(KEYS, U64, U64)
def test_versions_of_a_key_sort_newest_first_and_name_key_and_version(
    key: bytes, one: int, other: int
) -> None:
    """The key of a superseded version holds all that its record needs."""
    first, second = rows.old_key(9, key, one), rows.old_key(9, key, other)
    assert (first < second) == (one > other)
    assert (rows.key_of(first), rows.version_of(first)) == (key, one)
    assert len(first) <= KEY_BYTES_MAX


@given(VALUES, U64, U64, KEYS)
def test_a_superseded_version_is_read_as_it_was_written(
    value: bytes | None, version: int, txn: int, key: bytes
) -> None:
    """Number, transaction and value."""
    old = Version(version, txn, value)
    assert rows.decode_old(rows.old_key(1, key, version), memoryview(rows.encode_old(old))) == old


@given(U64, U64, VALUES, KEYS)
def test_version_is_stored_with_the_bytes_of_its_row(
    version: int, txn: int, value: bytes | None, key: bytes
) -> None:
    """As the newest one and as a superseded one; checked and decoded in one step as in two."""
    written, prefix = Version(version, txn, value), key1(1)
    row = StoredRow(written, None)
    [(stored, payload)] = rows.committed_records(prefix, [(key, row, value)], version, txn)
    assert (stored, payload) == (prefix + key, rows.encode(row))
    assert rows.old_records(prefix, [(key, written)]) == [
        (rows.old_key(1, key, version), rows.encode_old(written))
    ]
    decoded = rows.decode_stored(prefix + key, seal(ROWS, prefix + key, payload))
    assert (decoded.committed, decoded.intent) == (written, None)


@pytest.mark.parametrize("at", [0, 4, 12, -1])
def test_damaged_row_is_named(at: int) -> None:
    """Checksum, flags, version, value."""
    data = bytearray(seal(ROWS, b"12345678key", rows.encode(StoredRow(Version(7, 8, b"value"), None))))
    data[at] ^= 0x40
    with pytest.raises(CorruptStore, match=b"12345678key".hex()):
        rows.decode_stored(b"12345678key", bytes(data))


def test_cut_row_is_named() -> None:
    """It is no row with its checksum."""
    data = seal(ROWS, b"12345678key", rows.encode(StoredRow(Version(7, 8, b""), None)))
    with pytest.raises(CorruptStore, match=b"12345678key".hex()):
        rows.decode_stored(b"12345678key", data[:10])


@pytest.mark.parametrize("key", [b"", b"x" * (TABLE_KEY_BYTES_MAX + 1), "text", None, bytearray(b"x")])
def test_what_is_no_key_is_refused(key: object) -> None:
    """Empty, too long, or not bytes."""
    with pytest.raises(InvalidValue):
        rows.check_key(key)


@given(KEYS, KEYS)
def test_a_prefix_ends_where_its_keys_end(prefix: bytes, key: bytes) -> None:
    """A key is below the end and at or above the prefix exactly if it begins with it."""
    end = after_prefix(prefix)
    assert key.startswith(prefix) == (key >= prefix and (end is None or key < end))


@given(
    st.binary(max_size=2), st.one_of(st.none(), st.binary(max_size=2)), st.one_of(st.none(), st.binary(max_size=2)),
    st.sets(st.binary(min_size=1, max_size=3), max_size=12), st.booleans(),
)  # fmt: skip
def test_a_range_that_is_read_on_covers_each_key_once(
    prefix: bytes, start: bytes | None, end: bytes | None, keys: set[bytes], reverse: bool
) -> None:
    """Going on after a key leaves exactly those behind it in the direction of the range."""
    wanted = KeyRange.of(prefix, start, end, reverse)
    inside = sorted(
        (
            k for k in keys
            if k.startswith(prefix) and (start is None or k >= start) and (end is None or k < end)
        ),
        reverse=reverse,
    )  # fmt: skip
    assert sorted((k for k in keys if wanted.has(k)), reverse=reverse) == inside
    for at, key in enumerate(inside):
        rest = wanted.after(key)
        assert [k for k in inside if rest.has(k)] == inside[at + 1 :]

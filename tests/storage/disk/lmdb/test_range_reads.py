"""The log of ranges: each byte that is used is under a checksum."""

from __future__ import annotations

import pytest

from storage.disk.lmdb.range_reads import Range, RangeReads
from storage.disk.lmdb.read_cache_layout import FileLayout
from storage.disk.shared_state import ReadsDamaged
from tests.storage.disk.unbounded_reads import Key

START = 12_345


def test_a_wrong_bit_is_found_wherever_it_is() -> None:
    """By the next process that takes in the log."""
    layout = FileLayout()
    data = bytearray(layout.total_bytes)
    ranges = RangeReads(data, layout, START)
    for number in range(1, 10):
        key_range: Range = (number % 3, b"a%d" % number, b"b" if number % 2 else None)
        ranges.append(ranges.encoded(key_range, (number, number)), key_range, number)
    found = ranges.find_later([Key(1, b"c")], 3)
    assert found is not None and found.timestamp == 4
    for at in range(layout.log_from, layout.log_from + layout.log_used):
        for bit in (0x01, 0x80):
            data[at] ^= bit
            with pytest.raises(ReadsDamaged):
                RangeReads(data, layout, START).find_later([Key(1, b"c")], 0)
            data[at] ^= bit
    layout.log_number += 1
    with pytest.raises(ReadsDamaged):
        RangeReads(data, layout, START).find_later([Key(1, b"c")], 0)

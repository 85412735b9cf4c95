"""The slots of keys: each byte is under a checksum, and each slot is known by its place."""

from __future__ import annotations

import pytest

from storage.disk.lmdb.key_reads import KeyReads, empty_slots
from storage.disk.lmdb.read_cache_layout import SLOT_BYTES, SLOT_READS, SLOTS_FROM
from storage.disk.shared_state import ReadsDamaged
from tests.storage.disk.unbounded_reads import Key

BITS = 2
START = 12_345


@pytest.fixture
def data() -> bytearray:
    """Four slots with a dozen reads, most of them full."""
    data = bytearray(SLOTS_FROM) + empty_slots(BITS, START)
    reads = KeyReads(data, BITS, START)
    reads.may_displace = True
    for number in range(1, 60):
        assert reads.record(1, b"%d" % number, number, number)
    return data


def test_a_wrong_bit_is_found_wherever_it_is(data: bytearray) -> None:
    """In the slot of the key that is written, by the writer and by the next reader of the key."""
    reads = KeyReads(data, BITS, START)
    place, slot = Key(1, b"59"), None
    for at in range(SLOTS_FROM, len(data)):
        before = bytes(data)
        data[at] ^= 0x10
        try:
            assert reads.find_later([place], 58) is not None, "a slot without a wrong bit"
        except ReadsDamaged:
            slot = slot or at
            with pytest.raises(ReadsDamaged):
                reads.record(1, b"59", 100, 100)
        else:
            assert slot is None or at >= slot + SLOT_BYTES
        data[:] = before
    assert slot is not None and (slot - SLOTS_FROM) % SLOT_BYTES == 0


def test_a_slot_in_the_place_of_a_different_one_is_found(data: bytearray) -> None:
    """A sound one, or zeros."""
    slots = [bytes(data[at : at + SLOT_BYTES]) for at in range(SLOTS_FROM, len(data), SLOT_BYTES)]
    for content in (slots[1] + slots[0] + slots[3] + slots[2], bytes(len(data) - SLOTS_FROM)):
        data[SLOTS_FROM:] = content
        for key in (b"1", b"2", b"58", b"59"):
            with pytest.raises(ReadsDamaged):
                KeyReads(data, BITS, START).find_later([Key(1, key)], 0)


def test_a_recent_read_keeps_its_place_while_there_can_be_more_slots() -> None:
    """The sixth key of one slot waits for more slots; a read known already does not."""
    data = bytearray(SLOTS_FROM) + empty_slots(0, START)
    reads = KeyReads(data, 0, START)
    for number in range(SLOT_READS):
        assert reads.record(1, b"%d" % number, 100 + number, 0)
    assert not reads.record(1, b"more", 200, 0)
    assert reads.record(1, b"0", 200, 0)
    assert reads.find_later([Key(1, b"more")], 1) is None
    reads.may_displace = True
    assert reads.record(1, b"more", 200, 0)
    displaced = reads.find_later([Key(1, b"1")], 100)
    assert displaced is not None and not displaced.timestamp
    assert reads.find_later([Key(1, b"other")], 101) is None


def test_a_read_older_than_all_in_a_full_slot_raises_the_watermark_to_itself() -> None:
    """It displaces no later one."""
    data = bytearray(SLOTS_FROM) + empty_slots(0, START)
    reads = KeyReads(data, 0, START)
    reads.may_displace = True
    for number in range(SLOT_READS):
        assert reads.record(1, b"%d" % number, 100 + number, number)
    assert reads.record(1, b"old", 50, 9)
    assert reads.find_later([Key(1, b"old")], 49) is not None
    assert reads.find_later([Key(1, b"old")], 50) is None
    assert reads.find_later([Key(1, b"0")], 99) is not None

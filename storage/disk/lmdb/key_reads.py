"""The slots of the read cache: for keys read one by one, the latest reader of each.

A slot has the latest reads of several keys, each under a hash of 64 bits, and a watermark of its own, which is raised
to the timestamp of every read that the slot has no room for. Slots are doubled as long as reads of the last ten minutes
would lose their place.

The hash is the CRC-32 of the key and that of the key backwards, both started with the table: importing a better hash
takes longer than a short command uses the cache at all. The first bits of the hash number the slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

from storage import faults
from storage.disk.lmdb.read_cache_layout import (
    DIRTY_AT,
    KEPT_NS,
    READ,
    SLOT_BITS_MAX,
    SLOT_BYTES,
    SLOT_READS,
    SLOTS_FROM,
    WHOLE,
    sealed,
)
from storage.disk.shared_state import LaterRead, ReadPlace, ReadsDamaged

_LATEST_BYTES: Final = 12
_READS_AT: Final = 20
_HASHES_AT: Final = _READS_AT + 8
_READ_BYTES: Final = READ.size
_CHECKSUM_AT: Final = SLOT_BYTES - 4
_LAST_AT: Final = _CHECKSUM_AT - _READ_BYTES
_FREE: Final = bytes(8)
_ALL_FREE: Final = bytes(_CHECKSUM_AT - _READS_AT)


class KeyReads:
    """The slots of one mapped file.

    Attributes:
        may_displace: whether a recent read may lose its place to a further one, because there cannot be more slots.
    """

    __slots__ = ("_bits", "_data", "_shift", "_start", "may_displace")

    def __init__(self, data: Any, bits: int, start: int) -> None:
        """Args:
        bits: there are 2 to this power slots.
        start: the value from which checksums start; slot `n` starts from `start ^ n`.
        """
        self._data = data
        self._bits = bits
        self._shift = 32 - bits
        self._start = start
        self.may_displace = bits >= SLOT_BITS_MAX

    def record(self, table_id: int, key: bytes, timestamp: int, txn: int) -> bool:
        """Record a read; False, and nothing recorded, if a recent read would lose its place and may not.

        Raises:
            ReadsDamaged
        """
        hashed, data = crc32(key, table_id), self._data
        index = hashed >> self._shift
        start, at = self._start ^ index, SLOTS_FROM + index * SLOT_BYTES
        slot = data[at : at + SLOT_BYTES]
        if crc32(slot, start) != WHOLE:
            raise ReadsDamaged
        new = READ.pack(timestamp, hashed << 32 | crc32(key[::-1], table_id), txn)
        time, place = new[:8], slot.find(new[8:16], _HASHES_AT)
        if place >= 0 and (place - _HASHES_AT) % _READ_BYTES:
            place = _find(slot, new[8:16])
        if place >= 0 and slot[place - 8 : place] >= time:
            return True
        latest = slot[:_LATEST_BYTES]
        if latest < time:
            latest = time + crc32(time, start).to_bytes(4, "little")
        if place >= 0:
            before = place - 8
            content = latest + slot[_LATEST_BYTES:before] + new + slot[before + _READ_BYTES : _CHECKSUM_AT]
        elif slot[_LAST_AT : _LAST_AT + 8] == _FREE:
            content = latest + slot[_LATEST_BYTES:_READS_AT] + new + slot[_READS_AT:_LAST_AT]
        else:
            reads = sorted([new, *_reads(slot)], reverse=True)
            displaced = reads.pop()[:8]
            age_ns = int.from_bytes(reads[0][:8], "big") - int.from_bytes(displaced, "big")
            if age_ns < KEPT_NS and not self.may_displace:
                return False
            content = latest + max(slot[_LATEST_BYTES:_READS_AT], displaced) + b"".join(reads)
        data[DIRTY_AT] = 1
        faults.reach("read_cache.half_changed")
        data[at : at + SLOT_BYTES] = content + crc32(content, start).to_bytes(4, "little")
        data[DIRTY_AT] = 0
        return True

    def find_later(self, places: Sequence[ReadPlace], timestamp: int) -> LaterRead | None:
        """A read of one of the keys after a timestamp, or a slot that has forgotten such reads.

        Raises:
            ReadsDamaged
        """
        data, shift, checksums_start, time = (
            self._data,
            self._shift,
            self._start,
            timestamp.to_bytes(8, "big"),
        )
        for place in places:
            hashed = crc32(place.key, place.table_id)
            index = hashed >> shift
            at = SLOTS_FROM + index * SLOT_BYTES
            latest = data[at : at + _LATEST_BYTES]
            if crc32(latest, checksums_start ^ index) != WHOLE:
                raise ReadsDamaged
            # A transaction that writes what it has read is often the latest reader itself.
            if latest[:8] > time:
                read = self._find_in(place, hashed, at, time)
                if read is not None:
                    return read
        return None

    def _find_in(self, place: ReadPlace, hashed: int, at: int, time: bytes) -> LaterRead | None:
        """As `find_later`, in the slot of a key."""
        slot = self._data[at : at + SLOT_BYTES]
        if crc32(slot, self._start ^ (hashed >> self._shift)) != WHOLE:
            raise ReadsDamaged
        position = _find(slot, (hashed << 32 | crc32(place.key[::-1], place.table_id)).to_bytes(8, "big"))
        if position >= 0 and slot[position - 8 : position] > time:
            timestamp, _, txn = READ.unpack_from(slot, position - 8)
            return LaterRead(place, timestamp, txn)
        return LaterRead(place, 0, 0) if slot[_LATEST_BYTES:_READS_AT] > time else None

    def doubled(self) -> bytes:
        """The bytes of twice as many slots with the same reads.

        Raises:
            ReadsDamaged
        """
        parts: list[bytes] = []
        before = self._data[SLOTS_FROM : SLOTS_FROM + (SLOT_BYTES << self._bits)]
        # The next bit of the hash decides between the two slots that follow from one.
        byte, bit = 8 + self._bits // 8, 0x80 >> self._bits % 8
        for index in range(1 << self._bits):
            slot = before[index * SLOT_BYTES : (index + 1) * SLOT_BYTES]
            if crc32(slot, self._start ^ index) != WHOLE:
                raise ReadsDamaged
            lower = upper = b""
            for at in range(_READS_AT, _CHECKSUM_AT, _READ_BYTES):
                if slot[at : at + 8] == _FREE:
                    break
                if slot[at + byte] & bit:
                    upper += slot[at : at + _READ_BYTES]
                else:
                    lower += slot[at : at + _READ_BYTES]
            latest, watermark, start = slot[:8], slot[_LATEST_BYTES:_READS_AT], self._start ^ 2 * index
            for reads in (lower, upper):
                checksum = crc32(latest, start).to_bytes(4, "little")
                content = latest + checksum + watermark + reads + _ALL_FREE[len(reads) :]
                parts += content, crc32(content, start).to_bytes(4, "little")
                start ^= 1
        return b"".join(parts)


def empty_slots(bits: int, start: int) -> bytes:
    """The bytes of slots without reads."""
    rest = bytes(_CHECKSUM_AT - _LATEST_BYTES)
    starts = [start ^ index for index in range(1 << bits)]
    return b"".join([sealed(sealed(_FREE, slot_start) + rest, slot_start) for slot_start in starts])


def _reads(slot: bytes) -> list[bytes]:
    return [slot[at : at + _READ_BYTES] for at in range(_READS_AT, _CHECKSUM_AT, _READ_BYTES)]


def _find(slot: bytes, number: bytes) -> int:
    """Where the hash of a key stands in a slot; -1 if the key has no read there."""
    at = slot.find(number, _HASHES_AT)
    while at >= 0 and (at - _HASHES_AT) % _READ_BYTES:
        at = slot.find(number, at + 1)
    return at


assert _READS_AT + SLOT_READS * _READ_BYTES == _CHECKSUM_AT

"""The ranges of the read cache: a log in the file, and the read times that follow from the log in this process.

A range costs one record at the end of the log, whatever is known already; processes take in what was added since they
looked. A full log is written anew from the read times, so that ranges read again and again take one place. What does
not fit then is forgotten table by table: the table with the most steps loses the older half, which becomes a watermark
of this table. Only where there are too many tables, whole tables are forgotten, under the watermark of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final
from zlib import crc32

from storage.disk.lmdb.read_cache_layout import (
    KEPT_NS,
    LOG_BYTES_MAX,
    WHOLE,
    FileLayout,
    sealed,
)
from storage.disk.lmdb.read_times import FORGOTTEN, Read, ReadTimes
from storage.disk.shared_state import LaterRead, ReadPlace, ReadsDamaged

_HEAD: Final = Struct(
    ">QQQHHB"
)  # table, timestamp, transaction, bytes of start and end, whether there is an end
_REMEMBERED_MAX: Final = 256

Range = tuple[int, bytes, bytes | None]
"""Table, first key, the key after the last (None: no end)."""


class RangeReads:
    """The ranges of one mapped file.

    Attributes:
        data, layout: of the mapped file; their owner exchanges and fills them, and writes a changed layout.
    """

    __slots__ = ("_log_number", "_recorded", "_start", "_tables", "_taken", "data", "layout")

    def __init__(self, data: Any, layout: FileLayout, start: int) -> None:
        self.data = data
        self.layout = layout
        self._start = start
        self._log_number = -1
        self._taken = 0
        self._tables: dict[int, ReadTimes] = {}
        self._recorded: dict[Range, int] = {}

    def knows(self, key_range: Range, timestamp: int) -> bool:
        """Whether this process has recorded a read of the range at or after a timestamp."""
        return self._recorded.get(key_range, 0) >= timestamp

    def encoded(self, key_range: Range, read: Read) -> bytes:
        """The record of a range, without its checksum."""
        (table_id, start, end), (timestamp, txn) = key_range, read
        head = _HEAD.pack(table_id, timestamp, txn, len(start), len(end or b""), end is not None)
        return head + start + (end or b"")

    def has_room(self, record: bytes) -> bool:
        """Whether a record fits into the log."""
        return self.layout.log_used + len(record) + 4 <= self.layout.log_bytes

    def append(self, record: bytes, key_range: Range, timestamp: int) -> None:
        """Add a record that fits to the log and the layout."""
        layout = self.layout
        at = layout.log_from + layout.log_used
        whole = sealed(record, self._checksum_start(layout.log_number, layout.log_used))
        self.data[at : at + len(whole)] = whole
        layout.log_used += len(whole)
        layout.newest_range = max(layout.newest_range, timestamp)
        if len(self._recorded) >= _REMEMBERED_MAX:
            self._recorded.clear()
        self._recorded[key_range] = timestamp

    def find_later(self, places: Sequence[ReadPlace], timestamp: int) -> LaterRead | None:
        """A range with one of the keys that was read after a timestamp, or was forgotten.

        Raises:
            ReadsDamaged
        """
        if self.layout.newest_range <= timestamp:
            return None
        self._take_in()
        for place in places:
            times = self._tables.get(place.table_id)
            if times is not None:
                latest, txn = times.at(place.key)
                if latest > timestamp:
                    return LaterRead(place, 0, 0) if txn == FORGOTTEN else LaterRead(place, latest, txn)
        return None

    def rewritten(self) -> tuple[bytes, int]:
        """The records of a new log, at most half full, and its size; raises the layout's watermark if it must.

        Raises:
            ReadsDamaged
        """
        self._take_in()
        size, records = self.layout.log_bytes, self._records()
        if 2 * _size(records) > size:
            self._forget_old()
            records = self._records()
        while 2 * _size(records) > size:
            if size < LOG_BYTES_MAX:
                size *= 2
            else:
                self._forget_half()
                records = self._records()
        return self._sealed_log(records), size

    def shortened(self) -> bytes:
        """The records of a new log, at most half full, of the same size; raises the layout's watermark if it must."""
        records = self._records()
        while 2 * _size(records) > self.layout.log_bytes:
            self._forget_half()
            records = self._records()
        return self._sealed_log(records)

    def _sealed_log(self, records: list[bytes]) -> bytes:
        """The records of the next log, with checksums."""
        log, used = [], 0
        for record in records:
            log.append(sealed(record, self._checksum_start(self.layout.log_number + 1, used)))
            used += len(record) + 4
        return b"".join(log)

    def _records(self) -> list[bytes]:
        return [
            self.encoded((table_id, start, end), read)
            for table_id, times in self._tables.items()
            for start, end, read in times.ranges()
        ]

    def _forget_old(self) -> None:
        """Forget what no transaction of the usual timeout can contradict."""
        for times in self._tables.values():
            if len(times) > 1:
                times.forget(max(0, self.layout.newest_range - KEPT_NS))

    def _forget_half(self) -> None:
        """Forget the older half of the table with the most steps, or of the tables if none has several."""
        most = max(self._tables.values(), key=len)
        if len(most) > 1:
            most.forget(most.median())
            return
        tables = sorted(self._tables.items(), key=lambda table: table[1].latest())
        for table_id, times in tables[: len(tables) // 2 + 1]:
            self.layout.watermark = max(self.layout.watermark, times.latest())
            del self._tables[table_id]

    def _take_in(self) -> None:
        """Take in the records that were added since the last call, or the whole of a new log.

        Raises:
            ReadsDamaged
        """
        layout, data = self.layout, self.data
        if layout.log_number != self._log_number:
            self._tables, self._taken, self._log_number = {}, 0, layout.log_number
        log = data[layout.log_from + self._taken : layout.log_from + layout.log_used]
        at, base = 0, self._taken
        while at < len(log):
            table_id, timestamp, txn, start_bytes, end_bytes, has_end = _head_at(log, at)
            keys_at = at + _HEAD.size
            end_at = keys_at + start_bytes
            next_at = end_at + end_bytes + 4
            record = log[at:next_at]
            if (
                next_at > len(log)
                or crc32(record, self._checksum_start(layout.log_number, base + at)) != WHOLE
            ):
                raise ReadsDamaged
            times = self._tables.get(table_id)
            if times is None:
                times = self._tables[table_id] = ReadTimes()
            end = log[end_at : next_at - 4] if has_end else None
            times.cover(log[keys_at:end_at], end, (timestamp, txn))
            at = next_at
            self._taken = base + at

    def _checksum_start(self, log_number: int, at: int) -> int:
        return (self._start + log_number * LOG_BYTES_MAX + at) & 0xFFFF_FFFF


def _head_at(log: bytes, at: int) -> tuple[int, int, int, int, int, int]:
    if at + _HEAD.size > len(log):
        raise ReadsDamaged
    head: tuple[int, int, int, int, int, int] = _HEAD.unpack_from(log, at)
    return head


def _size(records: list[bytes]) -> int:
    return sum(map(len, records)) + 4 * len(records)

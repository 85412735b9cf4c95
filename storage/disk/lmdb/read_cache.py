"""The read cache: the latest readers of keys and ranges, shared by all processes of the machine (K2-3SI).

One mapped file in the store's directory, touched inside the writer gate only and never synced, as its content need not
survive a reboot. The file belongs to one store, incarnation, boot and generation. A process that finds the file absent,
foreign, damaged or half-changed by a killed process starts a new generation, in a batch that first raises the durable
watermark to the last issued timestamp: every transaction that might contradict a forgotten read is then refused.

Keys are in slots (`key_reads.py`), ranges in a log (`range_reads.py`); both grow with use, up to a bound, and cover
reads beyond by watermarks of a slot or a table. They can only refuse too much. The header has the last timestamp that
was issued without a commit. Every part has a checksum (`read_cache_layout.py`), which is looked at before the part is
believed.

Invariant 18: the read time of a key or gap never falls. Bytes: docs/FORMAT.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from zlib import crc32

from storage import faults
from storage.disk.lmdb.key_reads import KeyReads, empty_slots
from storage.disk.lmdb.range_reads import RangeReads
from storage.disk.lmdb.read_cache_file import ReadCacheFile
from storage.disk.lmdb.read_cache_layout import (
    DIRTY_AT,
    HEADER_BYTES,
    IDENTITY,
    ISSUED_AT,
    ISSUED_END,
    LAYOUT_AT,
    LAYOUT_BYTES,
    MAGIC,
    SLOTS_FROM,
    WHOLE,
    FileLayout,
    issued_part,
    parse_issued,
)
from storage.disk.shared_state import LaterRead, ReadPlace, ReadsDamaged
from storage.disk.superblock import Superblock
from storage.process.clock import Clock

_PEEKS: Final = 3


class MappedReadCache:
    """The mapped file of one store in one process. Every call is made inside the writer gate.

    Attributes:
        issued: the last timestamp issued without a commit, as of the last look whether the file is valid.
    """

    __slots__ = (
        "_clock",
        "_file",
        "_header",
        "_identified",
        "_identity",
        "_keys",
        "_layout",
        "_ranges",
        "_start",
        "issued",
    )

    issues = True

    def __init__(self, directory: str, clock: Clock) -> None:
        self._clock = clock
        self._file = ReadCacheFile(directory)
        self._identified: tuple[int, bytes] | None = None
        self._identity = self._header = b""
        self.issued = 0
        self._start = 0
        self._layout = FileLayout()
        self._keys: KeyReads | None = None
        self._ranges: RangeReads | None = None

    def close(self) -> None:
        """Unmap and close the file."""
        self._file.close()
        self._forget_file()

    @property
    def is_attached(self) -> bool:
        """Whether this process has the file mapped."""
        return self._file.data is not None

    def is_valid(self, superblock: Superblock, *, looks_at_file: bool = False) -> bool:
        """Whether the file exists, is whole, and belongs to this store, boot and generation.

        Slots and ranges are checked where they are read.

        Args:
            looks_at_file: unmap a file first that was removed or cut short: it counts no more, and the next write
                forgets its reads.
        """
        if looks_at_file and self._file.drop_lost():
            self._forget_file()
        if not superblock.read_generation:
            return False
        # The boot is the clock's: the superblock names the boot of the last write.
        identified = (superblock.read_generation, self._clock.boot_id())
        if self._identified != identified:
            # A lost file begins a new generation, so only a new generation makes another look necessary.
            self._forget_file()
            if not self._file.attach():
                return False
            self._identity = self._identify(superblock, self._file.inode)
            self._start = crc32(self._identity)
            self._identified = identified
        data = self._file.data
        assert data is not None, "an identified file is mapped"
        header = data[:HEADER_BYTES]
        return header == self._header or self._accept(header)

    def _forget_file(self) -> None:
        self._identified = None
        self._header = b""
        self._keys = self._ranges = None

    def _identify(self, superblock: Superblock, inode: int) -> bytes:
        boot_id = self._clock.boot_id()
        return IDENTITY.pack(
            MAGIC, superblock.store_id, superblock.incarnation, boot_id, inode, superblock.read_generation
        )

    def _accept(self, header: bytes) -> bool:
        """Check a header that has changed, and take its layout."""
        if header[: IDENTITY.size] != self._identity or header[DIRTY_AT]:
            return False
        layout = header[LAYOUT_AT : LAYOUT_AT + LAYOUT_BYTES]
        issued = parse_issued(header, self._start)
        if issued is None or crc32(layout, self._start) != WHOLE:
            return False
        bits, before = self._layout.slot_bits, self._file.data
        self._layout.parse(layout)
        assert before is not None, "the header comes from the mapped file"
        if self._layout.total_bytes > len(before) and not self._file.follow(self._layout.total_bytes):
            return False
        if self._keys is None or self._ranges is None:
            self._ranges = RangeReads(self._file.data, self._layout, self._start)
            bits = 0
        if bits != self._layout.slot_bits or before is not self._file.data:
            self._place()
        self._header, self.issued = header, issued
        return True

    def _place(self) -> None:
        """Find slots and ranges in a new map, or at new places."""
        assert self._ranges is not None, "the file is valid"
        self._keys = KeyReads(self._file.data, self._layout.slot_bits, self._start)
        self._ranges.data = self._file.data

    # Timestamps issued without a commit

    def catch_up(self, superblock: Superblock) -> None:
        """Move the timestamp oracle past timestamps issued without a commit, at the start of a batch.

        Called where the store has a generation of the read cache; without one no timestamp was issued so.
        """
        is_valid = self.is_valid(superblock, looks_at_file=True)
        issued = self.issued if is_valid else superblock.timestamp_mark
        if issued > superblock.last_timestamp:
            superblock.last_timestamp = issued

    def catch_up_outside(self, superblock: Superblock) -> None:
        """As `catch_up`, of a dry run, outside the gate."""
        superblock.last_timestamp = self.last_issued(superblock)

    def last_issued(self, superblock: Superblock) -> int:
        """The last timestamp issued, with or without a commit, read outside the gate.

        Where the file is lost, the timestamps issued without a commit are not known: the reserved mark is above them.
        """
        if not superblock.read_generation:
            return superblock.last_timestamp
        issued = self._peek_issued(superblock)
        return max(superblock.last_timestamp, superblock.timestamp_mark if issued is None else issued)

    def _peek_issued(self, superblock: Superblock) -> int | None:
        """The last timestamp issued without a commit; None if the file is lost."""
        for _ in range(_PEEKS):  # A process inside the gate may be half-way through writing the timestamp.
            header, inode = self._file.read_header()
            identity = self._identify(superblock, inode)
            if header[: IDENTITY.size] != identity:
                return None
            issued = parse_issued(header, crc32(identity))
            if issued is not None:
                return issued
        return None

    def note_issued(self, timestamp: int) -> None:
        """Record a timestamp that is issued without a commit."""
        data, part = self._file.data, issued_part(timestamp, self._start)
        assert data is not None and part[:8] > self._header[ISSUED_AT : ISSUED_AT + 8], "timestamps grow"
        data[ISSUED_AT:ISSUED_END] = part
        self._header, self.issued = data[:HEADER_BYTES], timestamp

    # Generations

    def start_anew(self, superblock: Superblock, *, knows_issued: bool = False) -> None:
        """Start a new generation within a batch, which forgets every read and raises the watermark.

        The new generation is valid once the batch, and with it the watermark, is committed. Before the first generation
        there were no reads to forget.

        Args:
            knows_issued: the file was valid at the start of the batch, so that nothing later than the last timestamp of
                the superblock was issued.

        Raises:
            StoreFull, StoreInvalid, StoreUnsafe
        """
        if not knows_issued:
            superblock.last_timestamp = max(superblock.last_timestamp, superblock.timestamp_mark)
        if superblock.read_generation:
            superblock.read_watermark = superblock.last_timestamp
        superblock.read_generation += 1
        superblock.changes += 1
        layout = FileLayout()
        # First, since a file that cannot be made leaves none: the next batch must look anew.
        self._forget_file()
        data = self._file.create(layout.total_bytes)
        identity = self._identify(superblock, self._file.inode)
        start = crc32(identity)
        data[SLOTS_FROM : layout.log_from] = empty_slots(layout.slot_bits, start)
        issued = issued_part(superblock.last_timestamp, start)
        header = (identity + issued).ljust(LAYOUT_AT, b"\0") + layout.encode(start)
        data[:HEADER_BYTES] = header.ljust(HEADER_BYTES, b"\0")

    def _condemn(self) -> None:
        """Make the file count no more, for every process."""
        data = self._file.data
        assert data is not None, "the file was valid"
        data[DIRTY_AT] = 1
        self._header = b""

    # Reads

    def record_key(self, table_id: int, key: bytes, timestamp: int, txn: int) -> None:
        """Record that a transaction reads a key, present or absent.

        Raises:
            ReadsDamaged: the file counts no more.
        """
        try:
            while not self._keys.record(table_id, key, timestamp, txn):  # type: ignore[union-attr]
                self._make_room_for_keys()
        except ReadsDamaged:
            self._condemn()
            raise

    def record_range(self, table_id: int, start: bytes, end: bytes | None, timestamp: int, txn: int) -> None:
        """Record that a transaction reads all keys from `start` on below `end`, the gaps between keys included.

        Raises:
            ReadsDamaged: the file counts no more.
        """
        ranges, data, key_range = self._ranges, self._file.data, (table_id, start, end)
        assert ranges is not None and data is not None, "the file is valid"
        if ranges.knows(key_range, timestamp):
            return
        record = ranges.encoded(key_range, (timestamp, txn))
        if not ranges.has_room(record):
            self._rewrite_log()
            data = self._file.data
            assert data is not None, "the file is valid"
        data[DIRTY_AT] = 1
        faults.reach("read_cache.half_changed")
        ranges.append(record, key_range, timestamp)
        self._write_layout()

    def find_later_read(
        self, superblock: Superblock, places: Sequence[ReadPlace], timestamp: int
    ) -> LaterRead | None:
        """A read that forbids a transaction to write keys, within a batch; a lost or damaged file is made anew.

        Args:
            places: the keys, at least one.
            timestamp: the transaction's.

        Raises:
            StoreFull, StoreInvalid, StoreUnsafe: no file can be made.
        """
        if not superblock.read_generation:
            return None
        if not self.is_valid(superblock):
            self.start_anew(superblock)
            return LaterRead(places[0], 0, 0) if timestamp < superblock.read_watermark else None
        if timestamp < superblock.read_watermark or timestamp < self._layout.watermark:
            return LaterRead(places[0], 0, 0)
        keys, ranges = self._keys, self._ranges
        assert keys is not None and ranges is not None, "the file is valid"
        try:
            return keys.find_later(places, timestamp) or ranges.find_later(places, timestamp)
        except ReadsDamaged:
            self.start_anew(superblock, knows_issued=True)
            return LaterRead(places[0], 0, 0) if timestamp < superblock.read_watermark else None

    # Growing

    def _make_room_for_keys(self) -> None:
        """Double the slots; where there is no room for them, let recent reads be displaced."""
        layout = self._layout
        is_larger = self._file.grow(layout.total_bytes + layout.log_from - SLOTS_FROM)
        self._place()
        data, keys = self._file.data, self._keys
        assert data is not None and keys is not None, "the file is valid"
        if not is_larger:
            keys.may_displace = True
            return
        slots, log = keys.doubled(), data[layout.log_from : layout.log_from + layout.log_used]
        data[DIRTY_AT] = 1
        layout.slot_bits += 1
        data[layout.log_from : layout.log_from + len(log)] = log
        faults.reach("read_cache.half_changed")
        data[SLOTS_FROM : SLOTS_FROM + len(slots)] = slots
        self._place()
        self._write_layout()

    def _rewrite_log(self) -> None:
        """Make room in the log. Until all of it is written the file counts no more."""
        data, layout, ranges = self._file.data, self._layout, self._ranges
        assert data is not None and ranges is not None, "the file is valid"
        data[DIRTY_AT] = 1
        log, size = ranges.rewritten()
        if size > layout.log_bytes and not self._file.grow(layout.log_from + size):
            log, size = ranges.shortened(), layout.log_bytes
        self._place()
        data = self._file.data
        assert data is not None, "the file is mapped"
        data[layout.log_from : layout.log_from + len(log)] = log
        faults.reach("read_cache.half_changed")
        layout.log_number += 1
        layout.log_used, layout.log_bytes = len(log), size
        self._write_layout()

    def _write_layout(self) -> None:
        """End a change of the file with its layout."""
        data, layout = self._file.data, self._layout.encode(self._start)
        assert data is not None, "the file is valid"
        data[LAYOUT_AT : LAYOUT_AT + LAYOUT_BYTES] = layout
        data[DIRTY_AT] = 0
        self._header = data[:HEADER_BYTES]

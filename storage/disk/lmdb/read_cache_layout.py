"""The layout of the read cache's file: the header, the checksums, and where slots and the log of ranges lie.

Every part has a checksum that starts from the identity of the file and the place of the part: damage, and a part of a
different file or place, is found where the part is read. Bytes: docs/FORMAT.md.
"""

from __future__ import annotations

from struct import Struct
from typing import Final
from zlib import crc32

IDENTITY: Final = Struct(">8s16sQ16sQQ")  # magic, store id, incarnation, boot id, inode, generation
MAGIC: Final = b"txnread2"
ISSUED_AT: Final = IDENTITY.size
ISSUED_END: Final = ISSUED_AT + 8 + 4
LAYOUT_AT: Final = 80
DIRTY_AT: Final = 128
HEADER_BYTES: Final = 129
SLOTS_FROM: Final = 4096
SLOT_READS: Final = 5
READ: Final = Struct(">QQQ")  # timestamp, hash of table and key, transaction
SLOT_BYTES: Final = (
    8 + 4 + 8 + SLOT_READS * READ.size + 4
)  # latest timestamp and checksum, watermark, reads, checksum
SLOT_BITS_MIN: Final = 10
SLOT_BITS_MAX: Final = 15
"""The last doubling copies half as many slots, within the writer gate: some 60 ms."""

LOG_BYTES_MIN: Final = 1 << 14
LOG_BYTES_MAX: Final = 1 << 20
KEPT_NS: Final = 600 * 1_000_000_000
"""The age up to which reads are worth a larger file: the default timeout of a transaction."""

WHOLE: Final = 0x2144DF1C
"""The CRC-32 of any bytes followed by their own CRC-32, little-endian, from whichever value both started."""

_U64 = Struct(">Q")
_LAYOUT = Struct(">QQQIIB")


def sealed(content: bytes, start: int) -> bytes:
    """The content and its checksum."""
    return content + crc32(content, start).to_bytes(4, "little")


def issued_part(timestamp: int, start: int) -> bytes:
    """The part of the header with the last timestamp issued."""
    part = _U64.pack(timestamp)
    return part + crc32(part, start).to_bytes(4, "little")


def parse_issued(header: bytes, start: int) -> int | None:
    """The last timestamp issued; None if the part is damaged."""
    part = header[ISSUED_AT:ISSUED_END]
    return int(_U64.unpack_from(part)[0]) if crc32(part, start) == WHOLE else None


class FileLayout:
    """Sizes, and what is known of all ranges.

    Attributes:
        watermark: the timestamp below which a write may be under a range of a table that was forgotten.
        newest_range: the latest timestamp of a range.
        log_number: the number of the log, which grows whenever the log is written anew.
        log_used: bytes of the log with ranges.
        log_bytes: bytes of the log.
        slot_bits: there are 2 to this power slots.
    """

    __slots__ = ("log_bytes", "log_number", "log_used", "newest_range", "slot_bits", "watermark")

    def __init__(self) -> None:
        self.watermark = self.newest_range = self.log_number = self.log_used = 0
        self.log_bytes = LOG_BYTES_MIN
        self.slot_bits = SLOT_BITS_MIN

    def encode(self, start: int) -> bytes:
        return sealed(
            _LAYOUT.pack(
                self.watermark, self.newest_range, self.log_number, self.log_used, self.log_bytes, self.slot_bits
            ),
            start,
        )  # fmt: skip

    def parse(self, part: bytes) -> None:
        """Take the values of a whole part of the header."""
        (
            self.watermark, self.newest_range, self.log_number, self.log_used, self.log_bytes, self.slot_bits,
        ) = _LAYOUT.unpack_from(part)  # fmt: skip

    @property
    def log_from(self) -> int:
        return SLOTS_FROM + (SLOT_BYTES << self.slot_bits)

    @property
    def total_bytes(self) -> int:
        return self.log_from + self.log_bytes


LAYOUT_BYTES: Final = _LAYOUT.size + 4

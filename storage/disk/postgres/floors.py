"""The floor of the deadlines: a key below which the database of deadlines has no record.

Each transaction adds a deadline and removes it, and every batch looks for the earliest one. Under a snapshot that a
bystander holds, removed rows stay in the index, before the first row that counts; a look from the beginning would walk
over all of them. So each commit stores the floor behind its superblock: the first deadline that the batch has seen, or
an earlier one that it adds. Nothing is stored by a release without floors: then a look begins at the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from zlib import crc32

from storage.disk.codec import SEAL_BYTES, decoded, unseal
from storage.disk.postgres.layout import RecordPlace
from storage.disk.schema import HEADS, TXN_DEADLINES
from storage.disk.superblock import SUPERBLOCK_BYTES, Superblock
from storage.disk.view import SUPERBLOCK_KEY

_STORED: Final = SEAL_BYTES + SUPERBLOCK_BYTES
_SUM_BYTES: Final = 4

NO_FLOOR: Final = b""
"""Below the first key."""

NO_RECORD: Final = b"\xff" * 17
"""Behind the last key: there is no record."""


def has_floor(place: RecordPlace) -> bool:
    """Whether the floor is that of a database."""
    return place.name == TXN_DEADLINES.name


def split(stored: bytes) -> tuple[bytes, bytes]:
    """The sealed superblock of a commit, and the floor behind it; a floor that is damaged is none."""
    superblock, floor = stored[:_STORED], stored[_STORED + _SUM_BYTES :]
    is_sound = stored[_STORED : _STORED + _SUM_BYTES] == crc32(floor).to_bytes(_SUM_BYTES, "big")
    return superblock, floor if is_sound else NO_FLOOR


def superblock_of(stored: bytes) -> Superblock:
    """The superblock of a commit, as stored.

    Raises:
        CorruptStore
    """
    sealed, _ = split(stored)
    return decoded(HEADS, SUPERBLOCK_KEY, unseal(HEADS, SUPERBLOCK_KEY, sealed), Superblock.decode)


def joined(superblock: bytes, floor: bytes) -> bytes:
    """A sealed superblock and a floor as a commit stores them."""
    return superblock + crc32(floor).to_bytes(_SUM_BYTES, "big") + floor


def following(
    floor: bytes, first: bytes | None, changed: Mapping[RecordPlace, Mapping[bytes, bytes | None]]
) -> bytes:
    """The floor after a batch.

    Args:
        floor: before the batch.
        first: the first stored key, if the batch has seen it; `NO_RECORD` if there was none.
        changed: the changes of the batch.
    """
    added = [
        min((key for key, value in records.items() if value is not None), default=NO_RECORD)
        for place, records in changed.items()
        if has_floor(place)
    ]
    return min(first if first is not None else floor, *added, NO_RECORD)

"""The reserve: room that only changes may use which free space, on a disk without any other.

The size is a setting of the store. A directory keeps the room in a file (`lmdb/reserve_file.py`); a server's disk is
its own, so a store on a server keeps none.

Callers name the share that their change may use:

- WHOLE: deleting a topic, table or subscription, trimming, truncating, collecting garbage, clearing and skipping a
  backlog, aborting and reaping transactions, and the settings that let go of something.
- PART: receiving and acknowledging of consumers, which may end up freeing, and what a transaction needs to read: a
  read cache where there is none. `PART_LEAVES` bytes stay for the others.
- NONE: everything else.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from storage.disk.codec import pack, unpack
from storage.disk.schema import STORE

if TYPE_CHECKING:
    from storage.disk.view import ReadView, WriteBatch

RESERVE_BYTES: Final = 1 << 20
RESERVE_BYTES_MIN: Final = 1 << 19
RESERVE_BYTES_MAX: Final = 1 << 30
PART_LEAVES: Final = 1 << 18
_KEY: Final = b"reserve"


class ReserveShare(Enum):
    """The share of the reserve that a change may use; the value is the bytes that stay, None for no share."""

    NONE = None
    PART = PART_LEAVES
    WHOLE = 0


def setting(view: ReadView) -> int:
    """The size in bytes that the reserve of a store shall have."""
    payload = view.get(STORE, _KEY)
    size: int = RESERVE_BYTES if payload is None else unpack(payload)[0]
    return size


def set_size(batch: WriteBatch, size: int) -> None:
    """Record the size that the reserve shall have."""
    batch.put(STORE, _KEY, pack([size]))

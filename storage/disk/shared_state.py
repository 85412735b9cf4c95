"""State that all processes of a store share beside its records: the read cache, and the marks of received messages.

Neither is durable. A directory has both in mapped files, a server in tables that a crash empties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.disk.superblock import Superblock
from storage.values.named_tuple import NamedTuple
from storage.values.position import MessageId


class ReadsDamaged(Exception):
    """A part of the read cache fails its checksum: the cache counts no more, and the next batch begins a new one."""


class ReadPlace(Protocol):
    """A key to be written."""

    table_id: int
    key: bytes


class LaterRead(NamedTuple):
    """A read that forbids a write; timestamp 0 where reads were forgotten, so that the key may have been read."""

    place: ReadPlace
    timestamp: int
    txn: int


class ReadCache(Protocol):
    """The latest readers of keys and ranges, for serializable transactions. Every call is made inside the writer gate.

    Invariant 18: the read time of a key or gap never falls.
    """

    @property
    def is_attached(self) -> bool:
        """Whether this process has used the cache, so that a store with tables is likely."""

    @property
    def issues(self) -> bool:
        """Whether timestamps are issued without a commit; otherwise a record alone gives one."""

    @property
    def issued(self) -> int:
        """The last timestamp issued without a commit, as of the last look whether the cache is valid."""

    def is_valid(self, superblock: Superblock, *, looks_at_file: bool = False) -> bool:
        """Whether the cache is there, is whole, and belongs to this store, boot and generation.

        Args:
            looks_at_file: whether a cache in a file is looked for at its path again.
        """

    def catch_up(self, superblock: Superblock) -> None:
        """Move the timestamp oracle past timestamps issued without a commit, at the start of a batch."""

    def catch_up_outside(self, superblock: Superblock) -> None:
        """As `catch_up`, of a dry run, outside the gate."""

    def last_issued(self, superblock: Superblock) -> int:
        """The last timestamp issued, with or without a commit, read outside the gate."""

    def note_issued(self, timestamp: int) -> None:
        """Record a timestamp that is issued without a commit."""

    def start_anew(self, superblock: Superblock, *, knows_issued: bool = False) -> None:
        """Start a new generation within a batch, which forgets every read and raises the watermark.

        Raises:
            StoreFull, StoreInvalid, StoreUnsafe
        """

    def record_key(self, table_id: int, key: bytes, timestamp: int, txn: int) -> None:
        """Record that a transaction reads a key, present or absent.

        Raises:
            ReadsDamaged: the cache counts no more.
        """

    def record_range(self, table_id: int, start: bytes, end: bytes | None, timestamp: int, txn: int) -> None:
        """Record that a transaction reads all keys from `start` on below `end`, the gaps between keys included.

        Raises:
            ReadsDamaged: the cache counts no more.
        """

    def find_later_read(
        self, superblock: Superblock, places: Sequence[ReadPlace], timestamp: int
    ) -> LaterRead | None:
        """A read that forbids a transaction to write keys, within a batch; a lost or damaged cache is made anew.

        Raises:
            StoreFull, StoreInvalid, StoreUnsafe
        """


class ReceivedMarks(Protocol):
    """The last message that each consumer gave to its application, and since when the consumer acknowledges nothing."""

    def prepare(self, superblock: Superblock) -> bool:
        """Whether consumers of this process can write marks; called within a batch."""

    def note(self, consumer_id: int, window: int, last: MessageId) -> None:
        """Write the mark of a consumer: the last message that its application receives, of a numbered window."""

    def last(self, superblock: Superblock, consumer_id: int, window: int) -> MessageId | None:
        """The last message of a window that a consumer gave to its application; None if no mark names the window."""

    def note_quiet(self, consumer_id: int, since_ns: int) -> None:
        """Write since when a consumer acknowledges nothing, in boot time."""

    def quiet_since_ns(self, superblock: Superblock, consumer_id: int) -> int | None:
        """Since when a consumer has acknowledged nothing, in boot time; None where that is not known."""

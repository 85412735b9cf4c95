"""The superblock: counters and clocks of the store, which every commit writes.

Holds one half of invariant 16: timestamps and ids grow, and are recorded in the commit that uses them.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final

from storage.errors import StoreInvalid
from storage.limits import TABLE_RETENTION_MS
from storage.process.clock import Clock

_RECORD = Struct(">16s16sqQQQQQQQQQQQIIQQQQQQQq")
SUPERBLOCK_BYTES = _RECORD.size

UNCOUNTED: Final = -1

# Timestamps are signed 64-bit numbers, also as bytes of the lock file, which begin at 2^40, and run a little ahead.
WALL_END_NS = (1 << 63) - (1 << 53)


def check_wall(wall_ns: int) -> None:
    """Check that the wall clock is in the years whose nanoseconds records and kernel locks can hold, before a write.

    Raises:
        StoreInvalid
    """
    if not 0 <= wall_ns < WALL_END_NS:
        raise StoreInvalid(
            "the wall clock of this machine is not in the years 1970 to 2261; nothing was changed",
            hint="Set the clock. Reading goes on meanwhile.",
        )


class ReapPolicy(IntEnum):
    """The transactions that the next writer ends (reaps) in passing."""

    ALL = 0
    """Overdue transactions, and attached transactions of a process proven dead."""
    OVERDUE = 1
    MANUAL = 2
    """No transactions: `transactions reap` ends them."""


class Superblock:
    """The one record; `changes` counts the changes of the current batch and is not stored.

    Attributes:
        table_retention_ms: the age up to which table versions are kept.
        read_generation: the valid generation of the read cache; 0 before the first.
        read_watermark: the timestamp below which writes are refused, because the reads before it are forgotten.
        timestamp_mark: the last timestamp that may have been issued without a commit.
        open_firsts: the number of records of OPEN_FIRST, as batches have counted them; `UNCOUNTED` before the first
            count in a store of an earlier release, which has zeros there.
        collected_timestamp: the timestamp before which superseded table versions may be removed.
        wall_offset_ns: wall clock minus store clock when both last agreed.
    """

    __slots__ = (
        "boot_id", "changes", "clock_offset_ns", "collected_timestamp", "commits", "incarnation", "last_audit",
        "last_clock_ns", "last_conflict", "last_consumer", "last_lease", "last_producer", "last_subscription",
        "last_table", "last_timestamp", "last_topic", "last_txn", "open_firsts", "read_generation", "read_watermark",
        "reap_policy", "store_id", "table_retention_ms", "timestamp_mark", "wall_offset_ns",
    )  # fmt: skip

    boot_id: bytes
    changes: int
    clock_offset_ns: int
    collected_timestamp: int
    commits: int
    incarnation: int
    last_audit: int
    last_clock_ns: int
    last_conflict: int
    last_consumer: int
    last_lease: int
    last_producer: int
    last_subscription: int
    last_table: int
    last_timestamp: int
    last_topic: int
    last_txn: int
    open_firsts: int
    read_generation: int
    read_watermark: int
    reap_policy: int
    store_id: bytes
    table_retention_ms: int
    timestamp_mark: int
    wall_offset_ns: int

    def __init__(self, store_id: bytes, clock: Clock) -> None:
        self.store_id = store_id
        self.boot_id = clock.shared_id()
        self.clock_offset_ns = -clock.shared_ns()
        self.last_clock_ns = 0
        self.last_timestamp = 0
        self.incarnation = 1
        self.commits = 0
        self.last_topic = self.last_subscription = self.last_txn = self.last_lease = 0
        self.last_consumer = self.last_producer = self.last_audit = 0
        self.open_firsts, self.reap_policy = 0, ReapPolicy.ALL
        self.last_table = self.last_conflict = self.read_generation = self.read_watermark = 0
        self.timestamp_mark = self.collected_timestamp = 0
        self.table_retention_ms = TABLE_RETENTION_MS
        self.wall_offset_ns = clock.wall_ns()
        self.changes = 0

    def encode(self) -> bytes:
        return _RECORD.pack(
            self.store_id, self.boot_id, self.clock_offset_ns, self.last_clock_ns, self.last_timestamp,
            self.incarnation, self.commits, self.last_topic, self.last_subscription, self.last_txn,
            self.last_lease, self.last_consumer, self.last_producer, self.last_audit,
            self.open_firsts + 1, self.reap_policy, self.last_table, self.last_conflict, self.table_retention_ms,
            self.read_generation, self.read_watermark, self.timestamp_mark, self.collected_timestamp,
            self.wall_offset_ns,
        )  # fmt: skip

    @classmethod
    def decode(cls, payload: memoryview) -> Superblock:
        block = cls.__new__(cls)
        (
            block.store_id, block.boot_id, block.clock_offset_ns, block.last_clock_ns, block.last_timestamp,
            block.incarnation, block.commits, block.last_topic, block.last_subscription, block.last_txn,
            block.last_lease, block.last_consumer, block.last_producer, block.last_audit,
            block.open_firsts, block.reap_policy, block.last_table, block.last_conflict, block.table_retention_ms,
            block.read_generation, block.read_watermark, block.timestamp_mark, block.collected_timestamp,
            block.wall_offset_ns,
        ) = _RECORD.unpack(payload)  # fmt: skip
        block.open_firsts -= 1
        block.changes = 0
        return block

    def now_ns(self, clock: Clock) -> int:
        """The store clock, which stands at its last reading until the first write after a reboot."""
        if clock.shared_id() != self.boot_id:
            return self.last_clock_ns
        now_ns = clock.shared_ns() + self.clock_offset_ns
        return now_ns if now_ns > self.last_clock_ns else self.last_clock_ns

    def is_clock_running(self, clock: Clock) -> bool:
        """Whether a write in this boot has continued the store clock."""
        return clock.shared_id() == self.boot_id

    def begin_batch(self, clock: Clock, wall_ns: int) -> bool:
        """Bring `last_clock_ns` to the time of a batch that begins; return whether the store clock starts in this boot.

        Raises:
            StoreInvalid: as `check_wall`
        """
        if not 0 <= wall_ns < WALL_END_NS:
            check_wall(wall_ns)
        boot_id, boot_ns = clock.shared_id(), clock.shared_ns()
        if boot_id != self.boot_id:
            # The clock goes on from its last recorded reading.
            self.boot_id = boot_id
            self.clock_offset_ns = self.last_clock_ns - boot_ns
            self.wall_offset_ns = wall_ns - self.last_clock_ns
            return True
        now_ns = boot_ns + self.clock_offset_ns
        if now_ns > self.last_clock_ns:
            self.last_clock_ns = now_ns
        return False

    def issue_timestamp(self, wall_ns: int) -> int:
        """Issue the next timestamp: max(wall clock, last + 1), in nanoseconds since 1970."""
        following = self.last_timestamp + 1
        self.last_timestamp = wall_ns if wall_ns > following else following
        return self.last_timestamp

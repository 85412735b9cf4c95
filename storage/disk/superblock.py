"""The store's own head: the counters and clocks that every store transaction may move.

Holds invariant 16's half: timestamps and every kind of id grow, and are recorded in the same commit that uses them.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from storage.limits import TABLE_RETENTION_MS
from storage.process.clock import Clock

_HEAD = Struct(">16s16sqQQQQQQQQQQQQQQQQQQQq")


class ReapPolicy(IntEnum):
    """Which transactions the next writer ends on its way."""

    ALL = 0
    """Overdue ones, and attached ones whose owner is proven dead."""
    OVERDUE = 1
    MANUAL = 2
    """None: `transactions reap` does it."""


class Superblock:
    """One record; `changes` counts what the current batch did and is not stored.

    Attributes:
        table_retention_ms: how far back table versions are kept.
        read_generation: of the file of remembered reads that counts; 0 before there was one.
        read_watermark: writes of transactions older than this are refused: what they would contradict is forgotten.
        timestamp_mark: timestamps up to here may have been issued without a commit.
        collected_timestamp: table versions superseded before it may be gone.
        wall_offset_ns: wall clock minus store clock when they were last found to agree.
    """

    __slots__ = (
        "boot_id", "changes", "clock_offset_ns", "collected_timestamp", "commits", "incarnation", "last_audit",
        "last_clock_ns", "last_conflict", "last_consumer", "last_lease", "last_producer", "last_subscription",
        "last_table", "last_timestamp", "last_topic", "last_txn", "read_generation", "read_watermark", "reap_policy",
        "store_id", "table_retention_ms", "timestamp_mark", "wall_offset_ns",
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
    read_generation: int
    read_watermark: int
    reap_policy: int
    store_id: bytes
    table_retention_ms: int
    timestamp_mark: int
    wall_offset_ns: int

    def __init__(self, store_id: bytes, clock: Clock) -> None:
        self.store_id = store_id
        self.boot_id = clock.boot_id()
        self.clock_offset_ns = -clock.boot_ns()
        self.last_clock_ns = 0
        self.last_timestamp = 0
        self.incarnation = 1
        self.commits = 0
        self.last_topic = self.last_subscription = self.last_txn = self.last_lease = 0
        self.last_consumer = self.last_producer = self.last_audit = 0
        self.reap_policy = ReapPolicy.ALL
        self.last_table = self.last_conflict = self.read_generation = self.read_watermark = 0
        self.timestamp_mark = self.collected_timestamp = 0
        self.table_retention_ms = TABLE_RETENTION_MS
        self.wall_offset_ns = clock.wall_ns()
        self.changes = 0

    def encode(self) -> bytes:
        return _HEAD.pack(
            self.store_id, self.boot_id, self.clock_offset_ns, self.last_clock_ns, self.last_timestamp,
            self.incarnation, self.commits, self.last_topic, self.last_subscription, self.last_txn,
            self.last_lease, self.last_consumer, self.last_producer, self.last_audit,
            self.reap_policy, self.last_table, self.last_conflict, self.table_retention_ms, self.read_generation,
            self.read_watermark, self.timestamp_mark, self.collected_timestamp, self.wall_offset_ns,
        )  # fmt: skip

    @classmethod
    def decode(cls, payload: memoryview) -> Superblock:
        head = cls.__new__(cls)
        (
            head.store_id, head.boot_id, head.clock_offset_ns, head.last_clock_ns, head.last_timestamp,
            head.incarnation, head.commits, head.last_topic, head.last_subscription, head.last_txn,
            head.last_lease, head.last_consumer, head.last_producer, head.last_audit,
            head.reap_policy, head.last_table, head.last_conflict, head.table_retention_ms, head.read_generation,
            head.read_watermark, head.timestamp_mark, head.collected_timestamp, head.wall_offset_ns,
        ) = _HEAD.unpack(payload)  # fmt: skip
        head.changes = 0
        return head

    def now_ns(self, clock: Clock) -> int:
        """The store clock. In a boot that has not written yet it stands where the last one left it."""
        if clock.boot_id() != self.boot_id:
            return self.last_clock_ns
        return max(clock.boot_ns() + self.clock_offset_ns, self.last_clock_ns)

    def go_on(self, clock: Clock) -> None:
        """Let the store clock run on in this boot from its last recorded reading."""
        if clock.boot_id() != self.boot_id:
            self.boot_id = clock.boot_id()
            self.clock_offset_ns = self.last_clock_ns - clock.boot_ns()
            self.wall_offset_ns = clock.wall_ns() - self.last_clock_ns

    def issue_timestamp(self, clock: Clock) -> int:
        """max(clock, last + 1), in nanoseconds since 1970."""
        self.last_timestamp = max(clock.wall_ns(), self.last_timestamp + 1)
        return self.last_timestamp

"""The store's own head: the counters and clocks that every store transaction may move.

Holds invariant 16's half: timestamps and every kind of id grow, and are recorded in the same commit that uses them.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from storage.clock import Clock

_HEAD = Struct(">16s16sqQQQQQQQQQQQQ")


class ReapPolicy(IntEnum):
    """Which transactions the next writer ends on its way."""

    ALL = 0
    """Overdue ones, and attached ones whose owner is proven dead."""
    OVERDUE = 1
    MANUAL = 2
    """None: `transactions reap` does it."""


class StoreHead:
    """One record; `changes` counts what the current batch did and is not stored."""

    __slots__ = (
        "boot_id", "changes", "clock_offset_ns", "commits", "incarnation", "last_audit", "last_clock_ns",
        "last_consumer", "last_lease", "last_producer", "last_subscription", "last_timestamp", "last_topic",
        "last_txn", "reap_policy", "store_id",
    )  # fmt: skip

    boot_id: bytes
    changes: int
    clock_offset_ns: int
    commits: int
    incarnation: int
    last_audit: int
    last_clock_ns: int
    last_consumer: int
    last_lease: int
    last_producer: int
    last_subscription: int
    last_timestamp: int
    last_topic: int
    last_txn: int
    reap_policy: int
    store_id: bytes

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
        self.changes = 0

    def encode(self) -> bytes:
        return _HEAD.pack(
            self.store_id, self.boot_id, self.clock_offset_ns, self.last_clock_ns, self.last_timestamp,
            self.incarnation, self.commits, self.last_topic, self.last_subscription, self.last_txn,
            self.last_lease, self.last_consumer, self.last_producer, self.last_audit,
            self.reap_policy,
        )  # fmt: skip

    @classmethod
    def decode(cls, payload: memoryview) -> StoreHead:
        head = cls.__new__(cls)
        (
            head.store_id, head.boot_id, head.clock_offset_ns, head.last_clock_ns, head.last_timestamp,
            head.incarnation, head.commits, head.last_topic, head.last_subscription, head.last_txn,
            head.last_lease, head.last_consumer, head.last_producer, head.last_audit,
            head.reap_policy,
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

    def issue_timestamp(self, clock: Clock) -> int:
        """max(clock, last + 1), in nanoseconds since 1970."""
        self.last_timestamp = max(clock.wall_ns(), self.last_timestamp + 1)
        return self.last_timestamp

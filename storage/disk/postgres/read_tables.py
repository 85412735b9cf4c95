"""The read cache of a store on a server: tables that a crash empties, touched inside the writer gate only.

Reads are sent with the end of the gate's transaction, so that recording costs no round trip of its own. A cache that
is empty, or of a former generation, starts a new generation, in a batch that first raises the durable watermark:
forgetting can only refuse. Timestamps
that are issued without a commit are in the same row as the generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from storage.disk.postgres.binary import as_int, bytea_array, int8, int8_array
from storage.disk.postgres.layout import (
    BEGIN_READS,
    CLEAR_READS,
    FORGET_READS,
    ISSUED,
    PASSED,
    READS_OF_KEYS,
    RECORD_KEYS,
    RECORD_RANGE,
)
from storage.disk.postgres.session import Row, Session, Step
from storage.disk.shared_state import LaterRead, ReadPlace
from storage.disk.superblock import Superblock

KEPT_NS: Final = 600 * 1_000_000_000
"""The age up to which reads are kept: the default timeout of a transaction."""

_RECORDED_BETWEEN: Final = 4096
"""Reads of this process between two times that it forgets old ones."""


class ReadTables:
    """The read cache in one process.

    A batch that is made without the gate works on the state as this process knows it: each pass of the gate that
    records a read or issues a timestamp is counted, and `apply` compares the count.

    Attributes:
        pending: steps that the end of the gate's transaction sends.
        issued: the last timestamp issued without a commit.
        passes: the count of passes; None without a cache.
    """

    __slots__ = (
        "_generation", "_recorded", "_session", "_view_session", "_watermark",
        "is_attached", "issued", "passes", "pending",
    )  # fmt: skip

    issues = True

    def __init__(self, session: Session, view_session: Session) -> None:
        """Args:
        session: the session of batches.
        view_session: the session of views, whose thread asks for the last timestamp issued.
        """
        self._session = session
        self._view_session = view_session
        self._generation = self._watermark = self._recorded = 0
        self.pending: list[Step] = []
        self.is_attached = False
        self.issued = 0
        self.passes: int | None = None

    def enter(self, row: Row) -> None:
        """Take over the state of the cache, as read inside the gate: generation, watermark, issued, passes."""
        self._generation, self._watermark, self.issued, passes = map(as_int, row)
        self.passes = None if row[0] is None else passes
        self.is_attached = self.is_attached or row[0] is not None
        self.pending = []

    def leave(self) -> None:
        """Drop what was not sent: the gate is left."""
        self.pending = []

    def is_valid(self, superblock: Superblock, *, looks_at_file: bool = False) -> bool:  # noqa: ARG002
        return 0 < superblock.read_generation == self._generation

    def catch_up(self, superblock: Superblock) -> None:
        issued = self.issued if self.is_valid(superblock) else superblock.timestamp_mark
        superblock.last_timestamp = max(superblock.last_timestamp, issued)

    def catch_up_outside(self, superblock: Superblock) -> None:
        superblock.last_timestamp = self.last_issued(superblock)

    def last_issued(self, superblock: Superblock) -> int:
        if not superblock.read_generation:
            return superblock.last_timestamp
        (rows,) = self._view_session.run_steps(((ISSUED, (int8(superblock.read_generation),)),))
        return max(superblock.last_timestamp, as_int(rows[0][0]) if rows else superblock.timestamp_mark)

    def note_issued(self, timestamp: int) -> None:
        self.issued = timestamp
        self._count_pass()

    def _count_pass(self) -> None:
        assert self.passes is not None, "the cache is valid"
        self.passes += 1
        self.pending.append((PASSED, (int8(self.issued), int8(self.passes))))

    def start_anew(self, superblock: Superblock, *, knows_issued: bool = False) -> None:
        if not knows_issued:
            superblock.last_timestamp = max(superblock.last_timestamp, superblock.timestamp_mark)
        if superblock.read_generation:
            superblock.read_watermark = superblock.last_timestamp
        superblock.read_generation += 1
        superblock.changes += 1
        generation, issued = superblock.read_generation, superblock.last_timestamp
        self._generation, self._watermark, self.issued = generation, 0, issued
        self.passes = (self.passes or 0) + 1
        self.is_attached = True
        self.pending = [(statement, ()) for statement in CLEAR_READS]
        self.pending.append((BEGIN_READS, (int8(generation), int8(issued), int8(self.passes))))

    def record_key(self, table_id: int, key: bytes, timestamp: int, txn: int) -> None:
        self._count_pass()
        self.pending.append((RECORD_KEYS, (int8(table_id), key, int8(timestamp), int8(txn))))
        self._forget_some(timestamp)

    def record_range(self, table_id: int, start: bytes, end: bytes | None, timestamp: int, txn: int) -> None:
        self._count_pass()
        self.pending.append((RECORD_RANGE, (int8(table_id), start, end, int8(timestamp), int8(txn))))
        self._forget_some(timestamp)

    def _forget_some(self, timestamp: int) -> None:
        self._recorded += 1
        if self._recorded % _RECORDED_BETWEEN == 0:
            before = int8(timestamp - KEPT_NS)
            self.pending += [(statement, (before,)) for statement in FORGET_READS]

    def find_later_read(
        self, superblock: Superblock, places: Sequence[ReadPlace], timestamp: int
    ) -> LaterRead | None:
        if not superblock.read_generation:
            return None
        if not self.is_valid(superblock):
            self.start_anew(superblock)
        if timestamp < superblock.read_watermark or timestamp < self._watermark:
            return LaterRead(places[0], 0, 0)
        tables, keys = (
            int8_array([place.table_id for place in places]),
            bytea_array([place.key for place in places]),
        )
        (rows,) = self._session.run_steps(((READS_OF_KEYS, (tables, keys, int8(timestamp))),))
        if not rows:
            return None
        number, later, txn = map(as_int, rows[0])
        return LaterRead(places[number - 1], later, txn)

"""The read cache of a store on a server: tables that a crash empties, touched inside the writer gate only.

Reads are sent with the end of the gate's transaction, so that recording costs no round trip of its own. A cache that
is empty, or of a former generation, starts a new generation, in a batch that first raises the durable watermark:
forgetting can only refuse. Transactions have their timestamps from records, so none is issued without a commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from storage.disk.postgres.binary import as_int, bytea_array, int8, int8_array
from storage.disk.postgres.layout import (
    BEGIN_READS,
    CLEAR_READS,
    FORGET_READS,
    READS_OF_KEYS,
    RECORD_KEYS,
    RECORD_RANGE,
)
from storage.disk.postgres.session import Session, Step
from storage.disk.postgres.speculation import NeedsGate
from storage.disk.shared_state import LaterRead, ReadPlace
from storage.disk.superblock import Superblock

KEPT_NS: Final = 600 * 1_000_000_000
"""The age up to which reads are kept: the default timeout of a transaction."""

_RECORDED_BETWEEN: Final = 4096
"""Reads of this process between two times that it forgets old ones."""


class ReadTables:
    """The read cache in one process.

    Attributes:
        pending: steps that the end of the gate's transaction sends.
        issues: whether timestamps are issued without a commit.
    """

    __slots__ = (
        "_generation",
        "_is_inside",
        "_recorded",
        "_session",
        "_watermark",
        "is_attached",
        "issued",
        "issues",
        "pending",
    )

    def __init__(self, session: Session) -> None:
        self._session = session
        self._generation = self._watermark = self._recorded = 0
        self.pending: list[Step] = []
        self.is_attached = False
        self.issues = False
        self._is_inside = False
        self.issued = 0

    def enter(self, generation: int, watermark: int) -> None:
        """Take over the state of the cache, as read inside the gate."""
        self._generation, self._watermark = generation, watermark
        self.pending = []
        self._is_inside = True

    def leave(self) -> None:
        """Note that the gate is left, outside of which the cache is not looked at."""
        self._is_inside = False
        self.pending = []

    def _check_inside(self) -> None:
        if not self._is_inside:
            raise NeedsGate

    def is_valid(self, superblock: Superblock) -> bool:
        self._check_inside()
        return 0 < superblock.read_generation == self._generation

    def drop_lost(self) -> None:
        return

    def catch_up(self, superblock: Superblock) -> None:  # noqa: ARG002
        return

    def last_issued(self, superblock: Superblock) -> int:
        return superblock.last_timestamp

    def note_issued(self, timestamp: int) -> None:  # noqa: ARG002
        raise AssertionError("timestamps are issued with a record alone")

    def start_anew(self, superblock: Superblock, *, knows_issued: bool = False) -> None:  # noqa: ARG002
        self._check_inside()
        if superblock.read_generation:
            superblock.read_watermark = superblock.last_timestamp
        superblock.read_generation += 1
        superblock.changes += 1
        self.pending = [(statement, ()) for statement in CLEAR_READS]
        self.pending.append((BEGIN_READS, (int8(superblock.read_generation),)))
        self._generation, self._watermark = superblock.read_generation, 0

    def record_key(self, table_id: int, key: bytes, timestamp: int, txn: int) -> None:
        self.pending.append((RECORD_KEYS, (int8(table_id), key, int8(timestamp), int8(txn))))
        self._forget_some(timestamp)

    def record_range(self, table_id: int, start: bytes, end: bytes | None, timestamp: int, txn: int) -> None:
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
        (rows,) = self._session.run(((READS_OF_KEYS, (tables, keys, int8(timestamp))),))
        if not rows:
            return None
        number, later, txn = map(as_int, rows[0])
        return LaterRead(places[number - 1], later, txn)

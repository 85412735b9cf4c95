"""How far back a table can be read, and removing what is older.

gc keeps every committed version in the window and the newest committed one at or before its start; intents never
count (invariant 22: it changes no answer that is still allowed). It goes by wall time, and removes nothing while the
wall clock and the boot clock disagree by more than a minute.
"""

from __future__ import annotations

from storage.codec import U64, key1, key2
from storage.limits import CLOCKS_DISAGREE_NS, GC_STEP_RECORDS, WRITE_BYTES_TARGET
from storage.schema import ROWS, TXN_KEYS, VERSIONS
from storage.table import row as rows
from storage.table.intent import RowWriter, finalize_some
from storage.table.visibility import ABORTED, COMMITTED, OPEN
from storage.txn import record as records
from storage.view import ReadView, WriteBatch


def clocks_agree(view: ReadView) -> bool:
    """Whether wall clock and boot clock have gone on together since they were last found to agree."""
    offset_ns = view.clock.wall_ns() - view.now_ns
    same_boot = view.head.boot_id == view.clock.boot_id()
    return same_boot and abs(offset_ns - view.head.wall_offset_ns) <= CLOCKS_DISAGREE_NS


def window_start(view: ReadView) -> int:
    """The oldest timestamp that may be read at; what gc has removed is never in the window again."""
    if not clocks_agree(view):
        return view.head.collected_timestamp
    start = view.clock.wall_ns() - view.head.table_retention_ms * 1_000_000
    return max(start, view.head.collected_timestamp)


def trust_clocks(batch: WriteBatch) -> None:
    """Take the wall clock as it is now: an operator has looked at it."""
    batch.head.wall_offset_ns = batch.clock.wall_ns() - batch.now_ns
    batch.head.changes += 1


def has_decided(view: ReadView) -> bool:
    """Whether intents of a decided transaction are left."""
    found = view.first(TXN_KEYS, b"", b"\0")
    while found is not None:
        txn = U64.unpack(found[0][:8])[0]
        if records.state_code(view, txn) != OPEN:
            return True
        found = view.first(TXN_KEYS, b"", key1(txn + 1))
    return False


def finalize_step(batch: WriteBatch, after: bytes) -> tuple[int, bytes | None]:
    """Finalise intents of decided transactions, from a key of TXN_KEYS on: how many, and where to go on."""
    done, at = 0, after
    while done < GC_STEP_RECORDS:
        found = batch.first(TXN_KEYS, b"", at or b"\0")
        if found is None:
            return done, None
        txn, table_id = (U64.unpack(found[0][start : start + 8])[0] for start in (0, 8))
        state = records.state_code(batch, txn)
        if state == OPEN:
            at = key1(txn + 1)
            continue
        assert state in (COMMITTED, ABORTED), "a transaction is open or decided"
        done += finalize_some(batch, txn, table_id, state == COMMITTED, min(256, GC_STEP_RECORDS - done))
        at = key2(txn, table_id)
        if batch.bytes >= WRITE_BYTES_TARGET:
            break
    return done, at


def _collect_to(batch: WriteBatch, start: int) -> None:
    """Versions before `start` may be gone from now on; small corrections of the wall clock are taken over."""
    batch.head.collected_timestamp = max(batch.head.collected_timestamp, start)
    if clocks_agree(batch):
        trust_clocks(batch)


class Sweep:
    """One pass of gc over versions and deleted keys, in steps of a bounded size.

    Looking for what can go takes views; removing it takes batches, which look again.
    """

    def __init__(self, start: int) -> None:
        self.start = start

    def find_versions(self, view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]:
        """Superseded versions that nobody may read any more, and where to go on looking."""
        found: list[bytes] = []
        current, covered = b"", False
        for seen, key in enumerate(view.keys(VERSIONS, start=after or b"\0")):
            prefix = key[:-8]
            if prefix != current:
                if seen >= GC_STEP_RECORDS:
                    return found, key
                current, covered = prefix, self._row_covers(view, key)
            if covered:
                found.append(key)
            elif rows.version_of(key) <= self.start:
                covered = True  # the newest at or before the start of the window stays
            if len(found) >= GC_STEP_RECORDS:
                return found, current
        return found, None

    def _row_covers(self, view: ReadView, key: bytes) -> bool:
        """Whether the finalised version of the row is at or before the start itself."""
        table_id = U64.unpack(key[:8])[0]
        stored = key1(table_id) + rows.key_of(key)
        payload = view.get(ROWS, stored)
        committed = rows.decode(stored, payload).committed if payload is not None else None
        return committed is not None and committed.version <= self.start

    def remove_versions(self, batch: WriteBatch, keys: list[bytes]) -> int:
        """Remove what was found, as a version that could go then can go now; how many."""
        _collect_to(batch, self.start)
        counts: dict[int, int] = {}
        for key in keys:
            if batch.delete(VERSIONS, key):
                table_id = U64.unpack(key[:8])[0]
                counts[table_id] = counts.get(table_id, 0) + 1
        for table_id, count in counts.items():
            writer = RowWriter(batch, table_id)
            writer.note_removed(versions=count)
            writer.finish()
        return sum(counts.values())

    def find_tombstones(self, view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]:
        """Rows that say only that a key was deleted before the window, and where to go on looking."""
        found: list[bytes] = []
        for seen, (key, payload) in enumerate(view.scan(ROWS, start=after or b"\0")):
            if seen >= GC_STEP_RECORDS:
                return found, key
            if payload[0] == rows.COMMITTED | rows.COMMITTED_DELETED and self._is_done(view, key, payload):
                found.append(key)
        return found, None

    def _is_done(self, view: ReadView, key: bytes, payload: memoryview) -> bool:
        committed = rows.decode(key, payload).committed
        assert committed is not None, "the flags say so"
        table_id, name = U64.unpack(key[:8])[0], key[8:]
        has_older = view.first(VERSIONS, rows.old_prefix(table_id, name)) is not None
        return committed.version <= self.start and not has_older

    def remove_tombstones(self, batch: WriteBatch, keys: list[bytes]) -> int:
        """Remove what was found and is still so; how many."""
        _collect_to(batch, self.start)
        counts: dict[int, int] = {}
        for key in keys:
            payload = batch.get(ROWS, key)
            if payload is None or payload[0] != rows.COMMITTED | rows.COMMITTED_DELETED:
                continue
            if self._is_done(batch, key, payload):
                batch.delete(ROWS, key)
                table_id = U64.unpack(key[:8])[0]
                counts[table_id] = counts.get(table_id, 0) + 1
        for table_id, count in counts.items():
            writer = RowWriter(batch, table_id)
            writer.note_removed(rows=count)
            writer.finish()
        return sum(counts.values())

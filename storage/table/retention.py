"""Retention: the window of versions that can be read, and the removal of older versions.

gc keeps every committed version in the window and the newest committed version at or before the start of the window;
intents never count (invariant 22: gc changes no answer that is still allowed). The window goes by wall time, and gc
removes nothing as long as the wall clock and the boot clock disagree by more than a minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Literal

from storage.disk.codec import U64, U64X2, key1
from storage.disk.schema import ROWS, TABLE_PURGES, TXN_KEYS, VERSIONS
from storage.disk.superblock import Superblock
from storage.disk.view import ReadView, WriteBatch
from storage.disk.wall_clock import agree, clocks_agree, trust_clocks
from storage.limits import GC_LOOK_RECORDS, GC_STEP_BYTES, GC_STEP_RECORDS
from storage.process.clock import Clock
from storage.table import catalogue as tables, change_index, row as rows
from storage.table.intent import RowWriter, finalize_keys
from storage.table.read import state_of
from storage.table.visibility import COMMITTED, OPEN, StateOf, StoredRow
from storage.txn import record as records


def window_start(view: ReadView, *, trust_clock: bool = False) -> int:
    """The oldest timestamp that can be read; versions that gc has removed are never in the window again.

    Args:
        trust_clock: assume that an operator has confirmed the wall clock.
    """
    superblock, clock = view.superblock, view.clock
    wall_ns, collected = clock.wall_ns(), superblock.collected_timestamp
    if not (trust_clock or agree(superblock, clock, wall_ns)):
        return collected
    return max(wall_ns - superblock.table_retention_ms * 1_000_000, collected)


def is_kept(view: ReadView, timestamp: int) -> bool:
    """Whether a timestamp can be read: whether it is `window_start` or later."""
    clock = view.clock
    return is_in_window(view.superblock, clock, clock.wall_ns(), timestamp)


def is_in_window(superblock: Superblock, clock: Clock, wall_ns: int, timestamp: int) -> bool:
    """As `is_kept`, given the superblock of a view and the wall time now."""
    if timestamp < superblock.collected_timestamp:
        return False
    is_recent = timestamp >= wall_ns - superblock.table_retention_ms * 1_000_000
    return is_recent or not agree(superblock, clock, wall_ns)


def find_decided(view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]:
    """Find intents of decided transactions, from a key of TXN_KEYS on: their keys there, and the key to go on from."""
    decided: list[bytes] = []
    at, size = after or b"\0", 0
    for _ in range(GC_LOOK_RECORDS):
        record = view.first(TXN_KEYS, b"", at)
        if record is None:
            return decided, None
        txn = U64.unpack(record[0][:8])[0]
        if records.state_code(view, txn) != OPEN:
            for stored in view.keys(TXN_KEYS, key1(txn), start=at):
                decided.append(stored)
                size += len(view.get(ROWS, stored[8:]) or b"")
                if len(decided) >= GC_STEP_RECORDS or size >= GC_STEP_BYTES:
                    return decided, stored + b"\0"
        at = key1(txn + 1)
    return decided, at


def finalize(batch: WriteBatch, keys: list[bytes]) -> int:
    """Finalise intents that `find_decided` returned and that are still stored; return the number."""
    done = 0
    for (txn, table_id), group in groupby(keys, key=lambda stored: U64X2.unpack(stored[:16])):
        left = [stored[16:] for stored in group if batch.has(TXN_KEYS, stored)]
        if left:
            is_committed = records.state_code(batch, txn) == COMMITTED
            done += finalize_keys(batch, txn, table_id, is_committed, left)
    return done


def _collect_to(batch: WriteBatch, start: int) -> None:
    """Move the start of the window: earlier versions may go from now on. Accept small changes of the wall clock."""
    batch.superblock.collected_timestamp = max(batch.superblock.collected_timestamp, start)
    if clocks_agree(batch):
        trust_clocks(batch)


def _note_removed(batch: WriteBatch, keys: list[bytes], what: Literal["versions", "rows"]) -> int:
    """Count removed versions, or rows, in the states of their tables; return the number."""
    for table_id, count in Counter(U64.unpack(key[:8])[0] for key in keys).items():
        RowWriter(batch, tables.by_number(table_id)).note_removed(**{what: count})
    return len(keys)


class Sweep:
    """A pass of gc over versions and deleted keys, in steps of a bounded size.

    Removable records are found in views; batches remove them, after a second check.
    """

    def __init__(self, start: int) -> None:
        self.start = start

    def find_changes(self, view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]:
        """Find entries of the index of changes that are older than the window, and the key to go on from."""
        return change_index.find_removable(view, self.start, after)

    def remove_changes(self, batch: WriteBatch, keys: list[bytes]) -> int:
        """Remove entries of the index of changes, before the versions that they name; return the number."""
        _collect_to(batch, self.start)
        return change_index.remove(batch, keys)

    def find_versions(self, view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]:
        """Find superseded versions that no reader may see any more, and the key to go on from."""
        removable: list[bytes] = []
        current = b""
        for seen, (key, goes) in enumerate(self._superseded(view, after)):
            if seen >= GC_LOOK_RECORDS and key[:-8] != current:
                return removable, key
            current = key[:-8]
            if goes:
                removable.append(key)
            if len(removable) >= GC_STEP_RECORDS:
                return removable, current
        return removable, None

    def _superseded(self, view: ReadView, after: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield the keys of superseded versions, from the newest of a row on, and whether each is removable."""
        current, covered = b"", False
        for key in view.keys(VERSIONS, start=after or b"\0"):
            if key[:-8] != current:
                current, covered = key[:-8], self._row_covers(view, key)
            yield key, covered
            # The newest at or before the start of the window stays.
            covered = covered or rows.version_of(key) <= self.start

    def _row_covers(self, view: ReadView, key: bytes) -> bool:
        """Whether the finalised version of the row is itself at or before the start."""
        table_id = U64.unpack(key[:8])[0]
        stored = key1(table_id) + rows.key_of(key)
        payload = view.get(ROWS, stored)
        committed = rows.decode(stored, payload).committed if payload is not None else None
        return committed is not None and committed.version <= self.start

    def remove_versions(self, batch: WriteBatch, keys: list[bytes]) -> int:
        """Remove versions that were found: a removable version stays removable. Return the number."""
        _collect_to(batch, self.start)
        gone = [key for key in keys if batch.delete(VERSIONS, key)]
        return _note_removed(batch, gone, "versions")

    def find_tombstones(self, view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]:
        """Find rows of keys that were deleted before the window, and the key to go on from."""
        removable: list[bytes] = []
        for seen, (key, payload) in enumerate(view.scan(ROWS, start=after or b"\0")):
            if seen >= GC_LOOK_RECORDS or len(removable) >= GC_STEP_RECORDS:
                return removable, key
            if self._is_done(view, key, payload):
                removable.append(key)
        return removable, None

    def _is_done(self, view: ReadView, key: bytes, payload: memoryview | None) -> bool:
        if payload is None or payload[0] != rows.COMMITTED | rows.COMMITTED_DELETED:
            return False
        committed = rows.decode(key, payload).committed
        if committed is None:
            return False
        table_id, name = U64.unpack(key[:8])[0], key[8:]
        has_older = view.first(VERSIONS, rows.old_prefix(table_id, name)) is not None
        return committed.version <= self.start and not has_older

    def remove_tombstones(self, batch: WriteBatch, keys: list[bytes]) -> int:
        """Remove rows that were found and are still removable; return the number."""
        _collect_to(batch, self.start)
        gone = [
            key for key in keys if self._is_done(batch, key, batch.get(ROWS, key)) and batch.delete(ROWS, key)
        ]
        return _note_removed(batch, gone, "rows")

    # Forecast

    def forecast(self, view: ReadView) -> tuple[int, int, int]:
        """Count the intents, versions and tombstones that finalising and this sweep would remove from one view."""
        gone = {key[:8] for key in view.keys(TABLE_PURGES)}
        versions = sum(goes for key, goes in self._superseded(view, b"") if key[:8] not in gone)
        intents = tombstones = 0
        look_up = state_of(view)
        for key, payload in view.scan(ROWS):
            if payload[0] == rows.COMMITTED or key[:8] in gone:
                continue  # a row of one value stays
            finalized, superseded, deletion = self._forecast_row(rows.decode(key, payload), look_up)
            intents, versions = intents + finalized, versions + superseded
            tombstones += deletion
        return intents, versions, tombstones

    def _forecast_row(self, row: StoredRow, look_up: StateOf) -> tuple[bool, bool, bool]:
        """Whether the intent is finalised, whether the version superseded by this goes, whether the row goes.

        Finalising an intent changes nothing for the versions superseded before: their age stays.
        """
        newest, intent = row.committed, row.intent
        if intent is not None:
            state = look_up(intent.txn)
            if state == OPEN:
                return False, False, False
            if state == COMMITTED:
                newest = intent
        is_old = newest is not None and newest.version <= self.start
        supersedes = newest is intent and row.committed is not None
        is_deletion = newest is not None and newest.value is None
        return intent is not None, is_old and supersedes, is_old and is_deletion

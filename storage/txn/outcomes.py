"""Forgetting how transactions ended: when nothing names one any more, and it was a day ago.

What names a transaction is a message (a part of a topic), an acknowledgement (a part of a subscription) or a write
intent. Versions of table rows name theirs only for people; readers never look it up.
"""

from __future__ import annotations

from storage.codec import key1
from storage.limits import GC_STEP_RECORDS, OUTCOME_RETENTION_MS
from storage.schema import PART_TABLE, TXN_KEYS, TXN_PARTS, TXNS
from storage.txn import record as records
from storage.view import ReadView, WriteBatch


def find_old(view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]:
    """Records that may go, from a key on, and where to go on looking."""
    ended_before_ms = view.clock.wall_ms() - OUTCOME_RETENTION_MS
    found: list[bytes] = []
    for seen, key in enumerate(view.keys(TXNS, start=after or b"\0")):
        record = records.get(view, int.from_bytes(key, "big"))
        if record.begun_ms > ended_before_ms:
            return found, None  # the following ones began later still
        if seen >= GC_STEP_RECORDS:
            return found, key
        if record.ended_ms is not None and record.ended_ms <= ended_before_ms and not _is_named(view, key):
            found.append(key)
    return found, None


def _is_named(view: ReadView, key: bytes) -> bool:
    if next(view.keys(TXN_KEYS, key), None) is not None:
        return True
    return any(part[8] != PART_TABLE for part in view.keys(TXN_PARTS, key))


def remove(batch: WriteBatch, keys: list[bytes]) -> int:
    """Remove the records that were found; a decided transaction that nothing named is named by nothing now."""
    for key in keys:
        batch.delete_prefix(TXN_PARTS, key1(int.from_bytes(key, "big")))
        batch.delete(TXNS, key)
    return len(keys)

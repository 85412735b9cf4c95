"""Remove the records of ended transactions: a day after the end, when nothing names the transaction any more.

A message, as long as its topic exists, or a write intent names an ended transaction; no acknowledgement is pending in
an ended transaction. Versions of table rows name transactions for people only: no reader looks such a transaction up.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.codec import key1
from storage.disk.schema import HEADS, PART_TOPIC, TXN_KEYS, TXN_PARTS, TXNS
from storage.disk.view import ReadView, WriteBatch
from storage.limits import GC_LOOK_RECORDS, GC_STEP_RECORDS, OUTCOME_RETENTION_MS
from storage.txn import record as records


def find_old(view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]:
    """Find records that may be removed, from a key on, and the key from which to go on."""
    removable: list[bytes] = []
    for seen, (key, goes) in enumerate(_old(view, after)):
        if seen >= GC_LOOK_RECORDS or len(removable) >= GC_STEP_RECORDS:
            return removable, key
        if goes and next(view.keys(TXN_KEYS, key), None) is None:
            removable.append(key)
    return removable, None


def forecast(view: ReadView) -> int:
    """Count the records that may be removed once the intents of ended transactions are finalised."""
    return sum(goes for _, goes in _old(view, b""))


def _old(view: ReadView, after: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield records of transactions old enough, from a key on, and whether at most an intent names the transaction."""
    ended_before_ms = view.clock.wall_ms() - OUTCOME_RETENTION_MS
    for key in view.keys(TXNS, start=after or b"\0"):
        record = records.get(view, int.from_bytes(key, "big"))
        if record.begun_ms > ended_before_ms:
            return  # hardly a later record began earlier: it waits for the next run
        has_ended = record.ended_ms is not None and record.ended_ms <= ended_before_ms
        yield key, has_ended and not any(_has_messages(view, part) for part in view.keys(TXN_PARTS, key))


def _has_messages(view: ReadView, part: bytes) -> bool:
    """Whether a part of a transaction is of a topic that still exists; ids of topics are never used twice."""
    return part[8] == PART_TOPIC and view.has(HEADS, part[9:17])


def remove(batch: WriteBatch, keys: list[bytes]) -> int:
    """Remove records that `find_old` returned; a decided transaction that nothing named is named by nothing now."""
    for key in keys:
        batch.delete_prefix(TXN_PARTS, key1(int.from_bytes(key, "big")))
        batch.delete(TXNS, key)
    return len(keys)

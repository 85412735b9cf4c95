"""Remove the records of ended transactions: a day after the end, when nothing names the transaction any more.

A stored message or a write intent names an ended transaction: a message is stored until its topic is deleted or its
ledger is trimmed. No acknowledgement is pending in an ended transaction. Versions of table rows name transactions for
people only: no reader looks such a transaction up.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.codec import PART_KEY, key1
from storage.disk.schema import ENTRIES, HEADS, PART_TOPIC, TXN_KEYS, TXN_PARTS, TXNS
from storage.disk.view import ReadView, WriteBatch
from storage.limits import GC_LOOK_RECORDS, GC_STEP_RECORDS, OUTCOME_RETENTION_MS
from storage.topic.entry import Entry
from storage.txn import record as records, runs


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
        parts = view.keys(TXN_PARTS, key) if has_ended else ()
        yield (
            key,
            has_ended and not any(_has_entries(view, record.ended_timestamp or 0, part) for part in parts),
        )


def _has_entries(view: ReadView, ended_timestamp: int, part: bytes) -> bool:
    """Whether messages or the marker of a transaction are stored on the topic of a part.

    Trimming removes entries from the front: once the first entry left is newer than the end of the transaction, and not
    its marker, nothing of the transaction is left. Ids of topics are never used twice.
    """
    txn, kind, topic_id = PART_KEY.unpack(part)
    if kind != PART_TOPIC or not view.has(HEADS, key1(topic_id)):
        return False
    record = view.first(ENTRIES, key1(topic_id))
    first = None if record is None else Entry(*record)
    return first is not None and (first.timestamp <= ended_timestamp or first.txn == txn)


def remove(batch: WriteBatch, keys: list[bytes]) -> int:
    """Remove records that `find_old` returned; a decided transaction that nothing named is named by nothing now."""
    for key in keys:
        for part in list(batch.keys(TXN_PARTS, key)):
            txn, kind, object_id = PART_KEY.unpack(part)
            if kind == PART_TOPIC:
                runs.forget(batch, object_id, txn)
        batch.delete_prefix(TXN_PARTS, key)
        batch.delete(TXNS, key)
    return len(keys)

"""The names of deleted topics: where the ledger ids and epochs of a new topic of the name go on.

The record of a deleted topic is kept for a month. Then gc folds it into one record of the store: a topic with a name
that has no record begins behind the highest ledger id and epoch of all folded ones. So a stale position or epoch never
fits a later topic, and the number of records does not grow with every name that was ever used.
"""

from __future__ import annotations

from typing import Final

from storage.disk.codec import pack, unpack_first
from storage.disk.schema import STORE, TOPICS
from storage.disk.view import ReadView, WriteBatch
from storage.limits import FORMER_TOPICS_RETENTION_MS, GC_LOOK_RECORDS, GC_STEP_RECORDS
from storage.values.named_tuple import NamedTuple

_KEY: Final = b"former-topics"


class FirstIds(NamedTuple):
    """The ledger id and the epoch with which a topic begins."""

    ledger_id: int
    epoch: int


def first_ids(view: ReadView) -> FirstIds:
    """The begin of a topic whose name has no record."""
    payload = view.get(STORE, _KEY)
    return FirstIds(1, -1) if payload is None else FirstIds(*unpack_first(payload, 2))


def begin_at(batch: WriteBatch, first: FirstIds) -> None:
    """Set the begin of a topic whose name has no record, and the lowest first ledger of every later topic."""
    batch.put(STORE, _KEY, pack(list(first)))


def find_old(view: ReadView, after: bytes) -> tuple[list[bytes], bytes | None]:
    """Find records of topics that were deleted long ago, from a key on, and the key to go on from."""
    before_ms = view.clock.wall_ms() - FORMER_TOPICS_RETENTION_MS
    keys: list[bytes] = []
    for seen, (key, payload) in enumerate(view.scan(TOPICS, start=after or b"\0")):
        if seen >= GC_LOOK_RECORDS or len(keys) >= GC_STEP_RECORDS:
            return keys, key
        if _is_former(payload, before_ms):
            keys.append(key)
    return keys, None


def forecast(view: ReadView) -> int:
    """Count the records that gc would fold."""
    before_ms = view.clock.wall_ms() - FORMER_TOPICS_RETENTION_MS
    return sum(_is_former(payload, before_ms) for _, payload in view.scan(TOPICS))


def fold(batch: WriteBatch, keys: list[bytes]) -> int:
    """Fold records that were found and whose name was not used again since; return the number."""
    before_ms = batch.clock.wall_ms() - FORMER_TOPICS_RETENTION_MS
    first, folded = first_ids(batch), 0
    for key in keys:
        payload = batch.get(TOPICS, key)
        if payload is not None and _is_former(payload, before_ms):
            *_, ledger_id, epoch = unpack_first(payload, 5)
            first = FirstIds(max(first.ledger_id, ledger_id), max(first.epoch, epoch))
            batch.delete(TOPICS, key)
            folded += 1
    if folded:
        begin_at(batch, first)
    return folded


def _is_former(payload: memoryview | bytes, before_ms: int) -> bool:
    topic_id, deleted_ms = unpack_first(payload, 2)
    return not topic_id and deleted_ms <= before_ms

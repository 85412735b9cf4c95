"""Sequence ids: which ones a producer name has used on a topic.

Ranges of used ids, each plain (transaction 0: stored plain or committed) or standing in an open transaction.
Invariant 20: a given (producer, sequence id) is stored plain or committed at most once. A range that is committed
becomes plain and joins its neighbours; one that is aborted goes, and its ids are free again.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.disk.codec import U64X2, key1
from storage.disk.schema import SEQUENCES
from storage.disk.view import ReadView, WriteBatch
from storage.errors import SequenceConflict
from storage.values.txn_id import TxnID


def _prefix(topic_id: int, producer: str) -> bytes:
    return key1(topic_id) + producer.encode("ascii") + b"\0"


def last_sequence_id(view: ReadView, topic_id: int, producer: str) -> int:
    """The highest id in use, open transactions included; -1 if there is none."""
    prefix = _prefix(topic_id, producer)
    found = view.last(SEQUENCES, prefix, prefix + b"\xff" * 8)
    return -1 if found is None else int(U64X2.unpack(found[1])[0])


def assign(batch: WriteBatch, topic_id: int, producer: str, count: int, txn: int) -> int:
    """Use the next `count` ids; the first of them."""
    first = last_sequence_id(batch, topic_id, producer) + 1
    _use(batch, topic_id, producer, first, first + count - 1, txn)
    return first


def claim(batch: WriteBatch, topic_id: int, producer: str, ids: Sequence[int], txn: int) -> list[int]:
    """Use the ids that the caller gave; the indexes of those that are new.

    Raises:
        SequenceConflict: one stands in another open transaction.
    """
    fresh = []
    for index, sequence_id in enumerate(ids):
        holder = _holder(batch, topic_id, producer, sequence_id)
        if holder is None:
            _use(batch, topic_id, producer, sequence_id, sequence_id, txn)
            fresh.append(index)
        elif holder not in (0, txn):
            raise SequenceConflict(
                f"sequence id {sequence_id} of producer {producer} stands in open transaction {TxnID(holder)}",
                hint=f"Wait until it ends: `txnctl transactions wait {TxnID(holder)}`.",
                transaction=str(TxnID(holder)),
                sequenceId=sequence_id,
            )
    return fresh


def _holder(view: ReadView, topic_id: int, producer: str, sequence_id: int) -> int | None:
    prefix = _prefix(topic_id, producer)
    found = view.last(SEQUENCES, prefix, prefix + key1(sequence_id))
    if found is None:
        return None
    last, txn = U64X2.unpack(found[1])
    return txn if sequence_id <= last else None


def _use(batch: WriteBatch, topic_id: int, producer: str, first: int, last: int, txn: int) -> None:
    """Add a range, joined to the neighbours of the same transaction."""
    prefix = _prefix(topic_id, producer)
    before = batch.last(SEQUENCES, prefix, prefix + key1(first))
    if before is not None:
        last_before, owner = U64X2.unpack(before[1])
        assert last_before < first, "ranges of sequence ids do not overlap"
        if owner == txn and last_before == first - 1:
            first = int.from_bytes(before[0][-8:], "big")
    after = batch.get(SEQUENCES, prefix + key1(last + 1))
    if after is not None and U64X2.unpack(after)[1] == txn:
        batch.delete(SEQUENCES, prefix + key1(last + 1))
        last = U64X2.unpack(after)[0]
    batch.put(SEQUENCES, prefix + key1(first), U64X2.pack(last, txn))


def settle(
    batch: WriteBatch, topic_id: int, producer: str, first: int, last: int, txn: int, committed: bool
) -> None:
    """A transaction that used ids first to last has ended: make its ranges among them plain, or free."""
    prefix = _prefix(topic_id, producer)
    ranges = []
    for key, payload in batch.scan(SEQUENCES, prefix, prefix + key1(first), prefix + key1(last)):
        end, owner = U64X2.unpack(payload)
        if owner == txn:
            ranges.append((int.from_bytes(key[-8:], "big"), end))
    for start, end in ranges:
        batch.delete(SEQUENCES, prefix + key1(start))
        if committed:
            _use(batch, topic_id, producer, start, end, 0)

"""Sequence ids that a producer name has used on a topic.

Ranges of used ids. A range is plain (transaction 0), that is stored outside a transaction or committed, or belongs to
an open transaction. Invariant 20: a
given (producer, sequence id) is stored plain or committed at most once. A range that is committed becomes plain and
joins its neighbours; a range that is aborted is removed, and the ids are free again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from storage.actions import Action, Hint
from storage.disk.codec import U64X2, corrupt, key1
from storage.disk.schema import SEQUENCES
from storage.disk.view import ReadView, WriteBatch
from storage.errors import SequenceConflict
from storage.values.txn_id import TxnID

V = TypeVar("V", bound=ReadView, covariant=True)


class SequenceIds(Generic[V]):
    """The sequence ids of one producer name on one topic."""

    __slots__ = ("_prefix", "_producer", "_view")

    def __init__(self, view: V, topic_id: int, producer: str) -> None:
        self._view = view
        self._producer = producer
        self._prefix = key1(topic_id) + producer.encode("ascii") + b"\0"

    @property
    def last(self) -> int:
        """The highest id in use, open transactions included; -1 if there is none."""
        record = self._view.last(SEQUENCES, self._prefix, self._prefix + b"\xff" * 8)
        return -1 if record is None else int(U64X2.unpack(record[1])[0])

    def assign(self: SequenceIds[WriteBatch], count: int, txn: int) -> int:
        """Use the next `count` ids; return the first."""
        first = self.last + 1
        self._use(first, first + count - 1, txn)
        return first

    def claim(self: SequenceIds[WriteBatch], ids: Sequence[int], txn: int) -> list[int]:
        """Use ids that the application gave; return the indexes of the new ones.

        Raises:
            SequenceConflict: an id stands in a different open transaction.
        """
        fresh = []
        for index, sequence_id in enumerate(ids):
            holder = self._holder(sequence_id)
            if holder is None:
                self._use(sequence_id, sequence_id, txn)
                fresh.append(index)
            elif holder not in (0, txn):
                raise SequenceConflict(
                    f"sequence id {sequence_id} of producer {self._producer} stands in open transaction "
                    f"{TxnID(holder)}",
                    hint=Hint(
                        "Wait until it ends: `{}`.",
                        Action("store.reports.wait_for_transaction", TxnID(holder)),
                    ),
                    held_by=(holder,),
                    transaction=str(TxnID(holder)),
                    sequenceId=sequence_id,
                )
        return fresh

    def _holder(self, sequence_id: int) -> int | None:
        record = self._view.last(SEQUENCES, self._prefix, self._prefix + key1(sequence_id))
        if record is None:
            return None
        last, txn = U64X2.unpack(record[1])
        return txn if sequence_id <= last else None

    def _use(self: SequenceIds[WriteBatch], first: int, last: int, txn: int) -> None:
        """Add a range, joined to the neighbours of the same transaction."""
        batch, prefix = self._view, self._prefix
        before = batch.last(SEQUENCES, prefix, prefix + key1(first))
        if before is not None:
            last_before, owner = U64X2.unpack(before[1])
            if last_before >= first:
                raise corrupt(SEQUENCES, before[0], f"it reaches to {last_before}, and {first} is not in use")
            if owner == txn and last_before == first - 1:
                first = int.from_bytes(before[0][-8:], "big")
        after = batch.get(SEQUENCES, prefix + key1(last + 1))
        if after is not None and U64X2.unpack(after)[1] == txn:
            batch.delete(SEQUENCES, prefix + key1(last + 1))
            last = U64X2.unpack(after)[0]
        batch.put(SEQUENCES, prefix + key1(first), U64X2.pack(last, txn))

    def settle(self: SequenceIds[WriteBatch], first: int, last: int, txn: int, committed: bool) -> None:
        """Make the ranges of an ended transaction, among ids first to last, plain or free."""
        batch, prefix = self._view, self._prefix
        ranges = []
        for key, payload in batch.scan(SEQUENCES, prefix, prefix + key1(first), prefix + key1(last)):
            end, owner = U64X2.unpack(payload)
            if owner == txn:
                ranges.append((int.from_bytes(key[-8:], "big"), end))
        for start, end in ranges:
            batch.delete(SEQUENCES, prefix + key1(start))
            if committed:
                self._use(start, end, 0)

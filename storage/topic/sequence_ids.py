"""Sequence ids that a producer name has used on a topic.

Ranges of used ids. A range is plain (transaction 0), that is stored outside a transaction or committed, or belongs to
an open transaction. Invariant 20: a
given (producer, sequence id) is stored plain or committed at most once. A range that is committed becomes plain and
joins its neighbours; a range that is aborted is removed, and the ids are free again. Each range notes its latest use,
from which `sequence_retention.py` tells that its messages are gone for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from storage.actions import Action, Hint
from storage.disk.codec import U64X2, U64X4, corrupt, key1
from storage.disk.schema import SEQUENCES
from storage.disk.view import ReadView, WriteBatch
from storage.errors import SequenceConflict
from storage.topic.open_topic import OpenTopic
from storage.values.named_tuple import NamedTuple
from storage.values.txn_id import TxnID

V = TypeVar("V", bound=ReadView, covariant=True)


class LastUse(NamedTuple):
    """The latest use of a range: the ledger that was open just before, and the wall time in ms.

    The message is in that ledger, or in the next one if the topic rolled over for the message.
    """

    ledger_id: int
    at_ms: int

    @classmethod
    def now(cls, topic: OpenTopic[WriteBatch]) -> LastUse:
        """A use by the next message of a topic."""
        return cls(topic.state.ledger_id, topic.view.now_ms)


class UsedRange(NamedTuple):
    """A range of used ids: its last id, its transaction, and its latest use, which format 1 did not note."""

    last: int
    txn: int
    used: LastUse | None

    @classmethod
    def decode(cls, payload: bytes | memoryview) -> UsedRange:
        """Unpack a record."""
        if len(payload) < U64X4.size:
            last, txn = U64X2.unpack_from(payload)
            return cls(last, txn, None)
        last, txn, ledger_id, at_ms = U64X4.unpack_from(payload)
        return cls(last, txn, LastUse(ledger_id, at_ms))

    def encode(self) -> bytes:
        """Pack a record."""
        first = U64X2.pack(self.last, self.txn)
        return first if self.used is None else first + U64X2.pack(*self.used)


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
        return -1 if record is None else UsedRange.decode(record[1]).last

    def assign(self: SequenceIds[WriteBatch], count: int, txn: int, used: LastUse) -> int:
        """Use the next `count` ids; return the first."""
        first = self.last + 1
        self._use(first, UsedRange(first + count - 1, txn, used))
        return first

    def claim(self: SequenceIds[WriteBatch], ids: Sequence[int], txn: int, used: LastUse) -> list[int]:
        """Use ids that the application gave; return the indexes of the new ones.

        Raises:
            SequenceConflict: an id stands in a different open transaction.
        """
        fresh = []
        for index, sequence_id in enumerate(ids):
            holder = self._holder(sequence_id)
            if holder is None:
                self._use(sequence_id, UsedRange(sequence_id, txn, used))
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
        holder = UsedRange.decode(record[1])
        return holder.txn if sequence_id <= holder.last else None

    def _use(self: SequenceIds[WriteBatch], first: int, added: UsedRange) -> None:
        """Add a range, joined to the neighbours of the same transaction."""
        batch, prefix, used = self._view, self._prefix, added.used
        last, txn = added.last, added.txn
        before = batch.last(SEQUENCES, prefix, prefix + key1(first))
        if before is not None:
            lower = UsedRange.decode(before[1])
            if lower.last >= first:
                raise corrupt(SEQUENCES, before[0], f"it reaches to {lower.last}, and {first} is not in use")
            if lower.txn == txn and lower.last == first - 1:
                first, used = int.from_bytes(before[0][-8:], "big"), _later(lower.used, used)
        after = batch.get(SEQUENCES, prefix + key1(last + 1))
        upper = None if after is None else UsedRange.decode(after)
        if upper is not None and upper.txn == txn:
            batch.delete(SEQUENCES, prefix + key1(last + 1))
            last, used = upper.last, _later(upper.used, used)
        batch.put(SEQUENCES, prefix + key1(first), UsedRange(last, txn, used).encode())

    def settle(self: SequenceIds[WriteBatch], first: int, last: int, txn: int, committed: bool) -> None:
        """Make the ranges of an ended transaction, among ids first to last, plain or free."""
        batch, prefix = self._view, self._prefix
        ranges = []
        for key, payload in batch.scan(SEQUENCES, prefix, prefix + key1(first), prefix + key1(last)):
            settled = UsedRange.decode(payload)
            if settled.txn == txn:
                ranges.append((int.from_bytes(key[-8:], "big"), settled))
        for start, settled in ranges:
            batch.delete(SEQUENCES, prefix + key1(start))
            if committed:
                self._use(start, settled._replace(txn=0))


def _later(one: LastUse | None, two: LastUse | None) -> LastUse | None:
    """The later ledger and the later time; a use that was not noted adds nothing."""
    if one is None or two is None:
        return one or two
    return LastUse(max(one.ledger_id, two.ledger_id), max(one.at_ms, two.at_ms))

"""The coordinator: begin, use, commit, abort.

Invariants: 6, a transaction is decided for all it touched in one store transaction; 16, a decided state never
changes; 17, one that is doomed never commits. Commit and abort always name the transaction, so a delayed one can
never hit the next. It meets topics and subscriptions as participants only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from storage import audit_trail, faults
from storage.disk.codec import key1, key2
from storage.disk.schema import (
    LEASE_TXNS,
    PART_SUBSCRIPTION,
    PART_TABLE,
    PART_TOPIC,
    TXN_DEADLINES,
    TXN_PARTS,
)
from storage.disk.view import ReadView, WriteBatch
from storage.errors import TxnctlError
from storage.process.identity import ProcessIdentity
from storage.txn import errors, record as records
from storage.txn.begin import Started, check_begin, new_record
from storage.txn.options import SERIALIZABLE, TransactionIsolation, TransactionOptions
from storage.txn.record import TransactionRecord
from storage.values.txn_state import STATE_CODES, AbortReason, TransactionState, Verdict, judge_end

if TYPE_CHECKING:
    from storage.txn.participant import Effect, PartDone, Participant

_EXPIRIES = (AbortReason.TIMED_OUT, AbortReason.OWNER_DEAD)
_OPEN = STATE_CODES.index(TransactionState.OPEN)


class Ended:
    """What ending a transaction did."""

    __slots__ = ("already", "effects", "record")

    def __init__(self, record: TransactionRecord, effects: list[Effect], already: bool) -> None:
        self.record = record
        self.effects = effects
        self.already = already


class Expired(NamedTuple):
    """An expired transaction, as the audit trail stores it."""

    owner: ProcessIdentity
    labels: dict[str, str]
    messages_discarded: int
    acknowledgements_released: int


class Coordinator:
    """See the module. Every method takes the write batch of the store transaction it is part of."""

    def __init__(self, participant: Callable[[int], Participant]) -> None:
        self._participant = participant

    def begin(
        self,
        batch: WriteBatch,
        owner: ProcessIdentity,
        lease: int,
        timeout_ms: int,
        labels: dict[str, str] | None = None,
        options: TransactionOptions = SERIALIZABLE,
        started: Started | None = None,
        ends_here: bool = False,
    ) -> TransactionRecord:
        """A new open transaction.

        Args:
            lease: of the process it is attached to; 0 makes it detached.
            timeout_ms: until its deadline, 24 hours at most.
            started: when it began, if that was before this batch; its timestamp is issued now if it is 0.
            ends_here: it ends within this batch: its record is written then, and nobody need find it by deadline.

        Raises:
            InvalidValue, InvalidName: a timeout or label out of bounds.
        """
        check_begin(timeout_ms, labels)
        if started is None:
            started = Started(batch.timestamp(), batch.now_ms, batch.now_ns)
        record = new_record(batch, owner, lease, timeout_ms, labels or {}, options, started)
        if not ends_here:
            records.save(batch, record)
            batch.put(TXN_DEADLINES, key2(record.deadline_ns, record.txn_id), b"")
        if lease and not ends_here:
            batch.put(LEASE_TXNS, key2(lease, record.txn_id), b"")
        return record

    def use(self, batch: WriteBatch, txn_id: int, by: ProcessIdentity) -> TransactionRecord:
        """The record of an open transaction that is about to produce or acknowledge; the caller saves it.

        Raises:
            TransactionNotFound, TransactionNotOpen
            TransactionTimedOut: its deadline has passed; the abort is durable before this is reported.
        """
        record = records.get(batch, txn_id)
        if record.isolation == TransactionIsolation.READ_COMMITTED.value:
            raise errors.read_only(str(record.id))
        if record.state_code != _OPEN:
            raise errors.not_open(record, "used")
        if record.is_overdue(batch.now_ns):
            self._end(batch, record, TransactionState.ABORTED, AbortReason.TIMED_OUT, None, by)
            raise batch.refuse(errors.timed_out(record))
        record.version += 1
        record.used_ns, record.used_ms = batch.now_ns, batch.now_ms
        return record

    def commit(
        self,
        batch: WriteBatch,
        txn_id: int,
        by: ProcessIdentity,
        prepare: Callable[[TransactionRecord], None] | None = None,
        record: TransactionRecord | None = None,
    ) -> Ended:
        """Make all of a transaction visible at one instant. Repeating it succeeds.

        Args:
            prepare: does the last of its work within the same batch, once it is certain that it may commit.
            record: its record, if it was begun in this very batch.

        Raises:
            TransactionNotFound, TransactionNotOpen (it was aborted), TransactionTimedOut
            ProducerFenced: it holds messages of an epoch that is over; the abort is durable before this is reported.
        """
        if record is None:
            record = records.get(batch, txn_id)
        verdict = judge_end(record.state, TransactionState.COMMITTED, batch.now_ns, record.deadline_ns)
        if verdict is Verdict.ALREADY_SO:
            return Ended(record, [], already=True)
        if verdict is Verdict.CONFLICT:
            raise errors.not_open(record, "committed")
        if verdict is Verdict.TOO_LATE:
            self._end(batch, record, TransactionState.ABORTED, AbortReason.TIMED_OUT, None, by)
            raise batch.refuse(errors.timed_out(record))
        refusal = self._refusal(batch, txn_id)
        if refusal is not None:
            self._end(batch, record, TransactionState.ABORTED, AbortReason.FENCED, refusal.message, by)
            raise batch.refuse(refusal)
        if prepare is not None:
            prepare(record)
        return self._end(batch, record, TransactionState.COMMITTED, None, None, by)

    def _refusal(self, view: ReadView, txn_id: int) -> TxnctlError | None:
        """Why the transaction must not be committed, as the first of its participants says."""
        for key, part in view.scan(TXN_PARTS, key1(txn_id)):
            found = self._participant(key[8]).refusal(view, txn_id, int.from_bytes(key[9:17], "big"), part)
            if found is not None:
                return found
        return None

    def doom(
        self,
        batch: WriteBatch,
        record: TransactionRecord,
        reason: AbortReason,
        by: ProcessIdentity,
        conflict: list[Any],
    ) -> None:
        """Abort an open transaction over a conflict, which its record keeps. A doomed one never commits."""
        record.conflict = conflict
        self._end(batch, record, TransactionState.ABORTED, reason, None, by)

    def fence(self, batch: WriteBatch, record: TransactionRecord, by: ProcessIdentity, text: str) -> None:
        """Abort an open transaction because a producer that sends in it is fenced."""
        self._end(batch, record, TransactionState.ABORTED, AbortReason.FENCED, text, by)

    def abort(
        self,
        batch: WriteBatch,
        txn_id: int,
        by: ProcessIdentity,
        reason: AbortReason = AbortReason.ASKED,
        text: str | None = None,
        if_version: int | None = None,
    ) -> Ended:
        """Drop all of a transaction. Repeating it succeeds, at whatever version it was looked at before it ended.

        Raises:
            TransactionNotFound, TransactionNotOpen (it was committed), TransactionChanged
        """
        record = records.get(batch, txn_id)
        verdict = judge_end(record.state, TransactionState.ABORTED, batch.now_ns, record.deadline_ns)
        if verdict is Verdict.ALREADY_SO:
            if if_version is not None and if_version > record.version:
                raise errors.changed(record, if_version)
            return Ended(record, [], already=True)
        if verdict is Verdict.CONFLICT:
            raise errors.not_open(record, "aborted")
        if if_version is not None and if_version != record.version:
            raise errors.changed(record, if_version)
        return self._end(batch, record, TransactionState.ABORTED, reason, text, by)

    def _end(
        self,
        batch: WriteBatch,
        record: TransactionRecord,
        state: TransactionState,
        reason: AbortReason | None,
        text: str | None,
        by: ProcessIdentity,
    ) -> Ended:
        """The decision: every part, then the record, in this store transaction."""
        assert record.state_code == _OPEN, "only an open transaction is decided"
        faults.reach("txn.before_parts")
        effects = []
        for key, part in list(batch.scan(TXN_PARTS, key1(record.txn_id))):
            participant = self._participant(key[8])
            object_id = int.from_bytes(key[9:17], "big")
            effects.append(
                participant.decide(batch, record.txn_id, object_id, part, state is TransactionState.COMMITTED)
            )
            faults.reach("txn.between_parts")
        batch.delete(TXN_DEADLINES, key2(record.deadline_ns, record.txn_id))
        if record.lease:
            batch.delete(LEASE_TXNS, key2(record.lease, record.txn_id))
        record.state_code = STATE_CODES.index(state)
        record.version += 1
        record.ended_ms, record.ended_timestamp = batch.now_ms, batch.timestamp()
        record.reason_code = reason.value if reason else None
        record.reason_text, record.ended_by_fields = text, by.fields()
        records.save(batch, record)
        if reason in _EXPIRIES:
            _note_expiry(batch, record, by)
        faults.reach("txn.before_record")
        return Ended(record, effects, already=False)

    def parts(self, view: ReadView, txn_id: int) -> list[PartDone]:
        """The parts of a transaction, for reports."""
        return [
            self._participant(key[8]).describe(view, txn_id, int.from_bytes(key[9:17], "big"), part)
            for key, part in view.scan(TXN_PARTS, key1(txn_id))
        ]


def _note_expiry(batch: WriteBatch, record: TransactionRecord, by: ProcessIdentity) -> None:
    """Nobody asked for it: who was it that found it, whose was it, and what was dropped?"""
    effects = Expired(record.owner, record.labels, record.messages, record.acknowledgements)
    audit_trail.record(
        batch, by, "transaction expired", str(record.id), record.reason_code, effects, audit_trail.Kind.EXPIRY
    )


def touches(view: ReadView, txn_id: int, kind: int) -> list[int]:
    """Ids of the topics (PART_TOPIC), subscriptions (PART_SUBSCRIPTION) or tables that a transaction touched."""
    assert kind in (PART_TOPIC, PART_SUBSCRIPTION, PART_TABLE)
    prefix = key1(txn_id) + bytes((kind,))
    return [int.from_bytes(key[9:17], "big") for key in view.keys(TXN_PARTS, prefix)]

"""The coordinator: begin, use, commit, abort.

Invariants: 6, a transaction is decided for everything it touched in one store transaction; 16, a decided state never
changes; 17, a doomed transaction never commits. Commit and abort always name the transaction, so a delayed request can
never hit the next one. The coordinator knows topics, subscriptions and tables as participants only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
from storage.txn.begin import NewTransaction, Started, new_record
from storage.txn.options import TransactionIsolation
from storage.txn.record import TransactionRecord
from storage.values.counters import ABORTS, COMMITS
from storage.values.named_tuple import NamedTuple
from storage.values.txn_state import STATE_CODES, AbortReason, TransactionState, Verdict, judge_end

if TYPE_CHECKING:
    from storage.txn.participant import Effect, PartDone, Participant

_EXPIRIES = (AbortReason.TIMED_OUT, AbortReason.OWNER_DEAD, AbortReason.RETENTION)
_OPEN, _COMMITTED, _ABORTED = range(len(STATE_CODES))


class Ended:
    """The result of ending a transaction.

    Attributes:
        already: whether the transaction had ended so before.
    """

    __slots__ = ("already", "effects", "record")

    def __init__(self, record: TransactionRecord, effects: list[Effect], already: bool) -> None:
        self.record = record
        self.effects = effects
        self.already = already


class _Decision:
    """The end of a transaction: state, the process that ends it, and for an abort the reason."""

    __slots__ = ("by", "reason", "state", "text")

    def __init__(
        self,
        state: TransactionState,
        process: ProcessIdentity,
        reason: AbortReason | None = None,
        text: str | None = None,
    ) -> None:
        self.state = state
        self.by = process
        self.reason = reason
        self.text = text


class Expired(NamedTuple):
    """An expired transaction, as the audit trail stores it."""

    owner: ProcessIdentity
    labels: dict[str, str]
    messages_discarded: int
    acknowledgements_released: int


class Coordinator:
    """See the module. Every method takes the write batch of the store transaction that it is part of."""

    def __init__(self, participant: Callable[[int], Participant]) -> None:
        self._participant = participant

    def begin(
        self,
        batch: WriteBatch,
        owner: ProcessIdentity,
        lease: int,
        options: NewTransaction,
        started: Started | None = None,
    ) -> TransactionRecord:
        """Begin a transaction.

        Args:
            lease: of the process that the transaction is attached to; 0 makes the transaction detached.
            started: as `new_record`.
        """
        record = new_record(batch, owner, lease, options, started)
        records.add(batch, record)
        batch.put(TXN_DEADLINES, key2(record.deadline_ns, record.txn_id), b"")
        if lease:
            batch.put(LEASE_TXNS, key2(lease, record.txn_id), b"")
        return record

    def use(self, batch: WriteBatch, txn_id: int, process: ProcessIdentity) -> TransactionRecord:
        """Open the record of an open transaction that is about to produce or acknowledge, and note the use.

        Raises:
            TransactionNotFound, TransactionNotOpen
            TransactionTimedOut: the deadline has passed; the abort is durable before the error is raised.
        """
        record = records.open_record(batch, txn_id)
        if record.isolation == TransactionIsolation.READ_COMMITTED.value:
            raise errors.read_only(str(record.id))
        if record.state_code != _OPEN:
            raise errors.not_open(record, "used")
        if record.is_overdue(batch.now_ns):
            self._end(batch, record, _Decision(TransactionState.ABORTED, process, AbortReason.TIMED_OUT))
            raise batch.refuse(errors.timed_out(record))
        record.version += 1
        record.used_ns, record.used_ms = batch.now_ns, batch.now_ms
        user = [*process]
        record.user_fields = user if user != record.owner_fields else None
        return record

    def commit(
        self,
        batch: WriteBatch,
        txn_id: int,
        process: ProcessIdentity,
        prepare: Callable[[TransactionRecord], None] | None = None,
        record: TransactionRecord | None = None,
    ) -> Ended:
        """Make all work of a transaction visible at one instant. Repeating a commit succeeds.

        Args:
            prepare: does the last work of the transaction within the same batch, once the commit is certain.
            record: the record, if the transaction was begun in this very batch, and is in no index.

        Raises:
            TransactionNotFound, TransactionNotOpen (it was aborted), TransactionTimedOut
            ProducerFenced: the transaction has messages of an epoch that is over; the abort is durable before the
                error is raised.
        """
        is_new = record is not None
        if record is None:
            record = records.get(batch, txn_id)
        state = STATE_CODES[record.state_code]
        verdict = judge_end(state, TransactionState.COMMITTED, batch.now_ns, record.deadline_ns)
        if verdict is Verdict.ALREADY_SO:
            return Ended(record, [], already=True)
        if verdict is Verdict.CONFLICT:
            raise errors.not_open(record, "committed")
        if verdict is Verdict.TOO_LATE:
            self._end(batch, record, _Decision(TransactionState.ABORTED, process, AbortReason.TIMED_OUT))
            raise batch.refuse(errors.timed_out(record))
        refusal = None if is_new else self._refusal(batch, txn_id)
        if refusal is not None:
            self.abort_fenced(batch, record, process, refusal.message)
            raise batch.refuse(refusal)
        if prepare is not None:
            prepare(record)
        return self._end(batch, record, _Decision(TransactionState.COMMITTED, process), is_indexed=not is_new)

    def _refusal(self, view: ReadView, txn_id: int) -> TxnctlError | None:
        """The error of the first participant that forbids the commit."""
        for key, part in view.scan(TXN_PARTS, key1(txn_id)):
            error = self._participant(key[8]).refusal(view, txn_id, int.from_bytes(key[9:17], "big"), part)
            if error is not None:
                return error
        return None

    def doom(
        self,
        batch: WriteBatch,
        record: TransactionRecord,
        reason: AbortReason,
        process: ProcessIdentity,
        conflict: list[Any],
    ) -> None:
        """Abort an open transaction over a conflict, and keep the conflict in the record. Such a one never commits."""
        record.conflict = conflict
        self._end(batch, record, _Decision(TransactionState.ABORTED, process, reason))

    def abort_fenced(
        self, batch: WriteBatch, record: TransactionRecord, process: ProcessIdentity, text: str
    ) -> None:
        """Abort an open transaction because a producer that sends in it is fenced."""
        self._end(batch, record, _Decision(TransactionState.ABORTED, process, AbortReason.FENCED, text))

    def abort(
        self,
        batch: WriteBatch,
        txn_id: int,
        process: ProcessIdentity,
        reason: AbortReason = AbortReason.ASKED,
        text: str | None = None,
    ) -> Ended:
        """Drop all work of a transaction. Repeating an abort succeeds.

        Raises:
            TransactionNotFound, TransactionNotOpen (it was committed)
        """
        record = records.get(batch, txn_id)
        verdict = judge_end(record.state, TransactionState.ABORTED, batch.now_ns, record.deadline_ns)
        if verdict is Verdict.ALREADY_SO:
            return Ended(record, [], already=True)
        if verdict is Verdict.CONFLICT:
            raise errors.not_open(record, "aborted")
        return self._end(batch, record, _Decision(TransactionState.ABORTED, process, reason, text))

    def check_version(self, view: ReadView, txn_id: int, version: int) -> None:
        """Check that a transaction to be aborted is still at the version that an operator has looked at.

        An aborted transaction passes at every version up to its last, so that repeating an abort succeeds.

        Raises:
            TransactionNotFound, TransactionChanged
        """
        record = records.get(view, txn_id)
        is_aborted = record.state is TransactionState.ABORTED
        if version > record.version if is_aborted else version != record.version:
            raise errors.changed(record, version)

    def _end(
        self, batch: WriteBatch, record: TransactionRecord, decision: _Decision, *, is_indexed: bool = True
    ) -> Ended:
        """Decide a transaction in this store transaction: every part, then the record."""
        assert record.state_code == _OPEN, "only an open transaction is decided"
        faults.reach("txn.before_parts")
        effects, is_committed = [], decision.state is TransactionState.COMMITTED
        for key, part in _parts_to_decide(batch, record.txn_id):
            participant, object_id = self._participant(key[8]), int.from_bytes(key[9:17], "big")
            effects += [participant.decide(batch, record.txn_id, object_id, part, is_committed)]
            faults.reach("txn.between_parts")
        if is_indexed:
            batch.delete(TXN_DEADLINES, key2(record.deadline_ns, record.txn_id))
        if record.lease:
            batch.delete(LEASE_TXNS, key2(record.lease, record.txn_id))
        record.state_code = _COMMITTED if is_committed else _ABORTED
        record.version += 1
        record.ended_ms, record.ended_timestamp = batch.now_ms, batch.timestamp()
        record.reason_code = decision.reason.value if decision.reason else None
        record.reason_text, record.ended_by_fields = decision.text, [*decision.by]
        records.save(batch, record)
        batch.counted[COMMITS if record.reason_code is None else ABORTS[record.reason_code]] += 1
        if decision.reason in _EXPIRIES:
            _note_expiry(batch, record, decision.by)
        faults.reach("txn.before_record")
        return Ended(record, effects, already=False)

    def parts(self, view: ReadView, txn_id: int) -> list[PartDone]:
        """Describe everything that a transaction touched, for reports."""
        return [
            self._participant(key[8]).describe(view, txn_id, int.from_bytes(key[9:17], "big"), part)
            for key, part in view.scan(TXN_PARTS, key1(txn_id))
        ]


def _parts_to_decide(batch: WriteBatch, txn_id: int) -> list[tuple[bytes, Any]]:
    """The parts of a transaction, as stored; those of one that begins and ends in the batch are written now, once."""
    prefix = key1(txn_id)
    if batch.ending != txn_id:
        return list(batch.scan(TXN_PARTS, prefix))
    batch.ending, parts = 0, batch.open_with(TXN_PARTS, prefix)
    for key, part in parts:
        batch.put_record(TXN_PARTS, key, part)
    return parts


def _note_expiry(batch: WriteBatch, record: TransactionRecord, process: ProcessIdentity) -> None:
    """Record an abort that no user asked for: finder, owner, and the work that was dropped."""
    effects = Expired(record.owner, record.labels, record.messages, record.acknowledgements)
    audit_trail.record(
        batch,
        process,
        "transaction expired",
        str(record.id),
        record.reason_code,
        effects,
        audit_trail.Kind.EXPIRY,
    )


def touches(view: ReadView, txn_id: int, kind: int) -> list[int]:
    """Ids of the topics (PART_TOPIC), subscriptions (PART_SUBSCRIPTION) or tables that a transaction touched."""
    assert kind in (PART_TOPIC, PART_SUBSCRIPTION, PART_TABLE)
    prefix = key1(txn_id) + bytes((kind,))
    return [int.from_bytes(key[9:17], "big") for key in view.keys(TXN_PARTS, prefix)]

"""The coordinator: begin, use, commit, abort.

Invariants: 6, a transaction is decided for all it touched in one store transaction; 16, a decided state never
changes; 17, one that is doomed never commits. Commit and abort always name the transaction, so a delayed one can
never hit the next. It meets topics and subscriptions as participants only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from storage import audit_trail, faults
from storage.codec import key1, key2
from storage.errors import (
    InvalidValue,
    LostConflict,
    OwnerAlive,
    ReadOnlyTransaction,
    TransactionChanged,
    TransactionNotOpen,
    TransactionTimedOut,
    TxnctlError,
)
from storage.limits import (
    ACTIVE_OWNER_MS,
    LABEL_VALUE_BYTES_MAX,
    LABELS_MAX,
    TRANSACTION_TIMEOUT_MS_MAX,
)
from storage.names import check_name
from storage.owner import Owner
from storage.schema import LEASE_TXNS, PART_SUBSCRIPTION, PART_TABLE, PART_TOPIC, TXN_DEADLINES, TXN_PARTS
from storage.txn import record as records
from storage.txn.record import TransactionRecord
from storage.txn_id import TxnID
from storage.txn_options import SERIALIZABLE, TransactionIsolation, TransactionOptions
from storage.txn_state import STATE_CODES, AbortReason, TransactionState, Verdict, judge_end
from storage.view import ReadView, WriteBatch

if TYPE_CHECKING:
    from storage.participant import Participant

_EXPIRIES = (AbortReason.TIMED_OUT, AbortReason.OWNER_DEAD)
_OPEN, _COMMITTED, _ABORTED = range(len(STATE_CODES))


class Ended:
    """What ending a transaction did."""

    __slots__ = ("already", "effects", "record")

    def __init__(self, record: TransactionRecord, effects: list[dict[str, Any]], already: bool) -> None:
        self.record = record
        self.effects = effects
        self.already = already


class Coordinator:
    """See the module. Every method takes the write batch of the store transaction it is part of."""

    def __init__(self, participants: list[Participant]) -> None:
        self._participants = {participant.kind: participant for participant in participants}

    def begin(
        self,
        batch: WriteBatch,
        owner: Owner,
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
        batch.head.last_txn += 1
        record = TransactionRecord()
        record.least, record.state_code, record.version = batch.head.last_txn, _OPEN, 1
        record.timestamp, record.begun_ms = started.timestamp or batch.timestamp(), started.wall_ms
        record.deadline_ns, record.timeout_ms = started.now_ns + timeout_ms * 1_000_000, timeout_ms
        record.lease, record.owner_fields, record.labels = lease, owner.fields(), labels or {}
        record.isolation, record.priority = options.isolation.value, options.priority.value
        record.check = options.check.value if options.check is not None else None
        record.used_ns, record.used_ms = batch.now_ns, batch.now_ms
        record.ended_ms = record.ended_timestamp = record.reason_code = record.reason_text = None
        record.ended_by_fields = None
        record.messages = record.acknowledgements = 0
        record.incarnation = batch.head.incarnation
        record.uses_tables, record.consumed, record.written, record.conflict = False, 0, [], None
        if not ends_here:
            records.save(batch, record)
            batch.put(TXN_DEADLINES, key2(record.deadline_ns, record.least), b"")
        if lease and not ends_here:
            batch.put(LEASE_TXNS, key2(lease, record.least), b"")
        return record

    def use(self, batch: WriteBatch, least: int, by: Owner) -> TransactionRecord:
        """The record of an open transaction that is about to produce or acknowledge; the caller saves it.

        Raises:
            TransactionNotFound, TransactionNotOpen
            TransactionTimedOut: its deadline has passed; the abort is durable before this is reported.
        """
        record = records.get(batch, least)
        if record.isolation == TransactionIsolation.READ_COMMITTED.value:
            raise read_only(str(record.id))
        if record.state_code != _OPEN:
            raise not_open(record, "used")
        if record.is_overdue(batch.now_ns):
            self._end(batch, record, TransactionState.ABORTED, AbortReason.TIMED_OUT, None, by)
            raise batch.refuse(_timed_out(record))
        record.version += 1
        record.used_ns, record.used_ms = batch.now_ns, batch.now_ms
        return record

    def commit(
        self,
        batch: WriteBatch,
        least: int,
        by: Owner,
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
            record = records.get(batch, least)
        verdict = judge_end(record.state, TransactionState.COMMITTED, batch.now_ns, record.deadline_ns)
        if verdict is Verdict.ALREADY_SO:
            return Ended(record, [], already=True)
        if verdict is Verdict.CONFLICT:
            raise not_open(record, "committed")
        if verdict is Verdict.TOO_LATE:
            self._end(batch, record, TransactionState.ABORTED, AbortReason.TIMED_OUT, None, by)
            raise batch.refuse(_timed_out(record))
        refusal = self._refusal(batch, least)
        if refusal is not None:
            self._end(batch, record, TransactionState.ABORTED, AbortReason.FENCED, refusal.message, by)
            raise batch.refuse(refusal)
        if prepare is not None:
            prepare(record)
        return self._end(batch, record, TransactionState.COMMITTED, None, None, by)

    def _refusal(self, view: ReadView, least: int) -> TxnctlError | None:
        """Why the transaction must not be committed, as the first of its participants says."""
        for key, part in view.scan(TXN_PARTS, key1(least)):
            found = self._participants[key[8]].refusal(view, least, int.from_bytes(key[9:17], "big"), part)
            if found is not None:
                return found
        return None

    def doom(
        self,
        batch: WriteBatch,
        record: TransactionRecord,
        reason: AbortReason,
        by: Owner,
        conflict: list[Any],
    ) -> None:
        """Abort an open transaction over a conflict, which its record keeps. A doomed one never commits."""
        record.conflict = conflict
        self._end(batch, record, TransactionState.ABORTED, reason, None, by)

    def fence(self, batch: WriteBatch, record: TransactionRecord, by: Owner, text: str) -> None:
        """Abort an open transaction because a producer that sends in it is fenced."""
        self._end(batch, record, TransactionState.ABORTED, AbortReason.FENCED, text, by)

    def abort(
        self,
        batch: WriteBatch,
        least: int,
        by: Owner,
        reason: AbortReason = AbortReason.ASKED,
        text: str | None = None,
        if_version: int | None = None,
    ) -> Ended:
        """Drop all of a transaction. Repeating it succeeds.

        Raises:
            TransactionNotFound, TransactionNotOpen (it was committed), TransactionChanged
        """
        record = records.get(batch, least)
        verdict = judge_end(record.state, TransactionState.ABORTED, batch.now_ns, record.deadline_ns)
        if verdict is Verdict.ALREADY_SO:
            if if_version is not None and if_version != record.version:
                raise not_open(record, "aborted")
            return Ended(record, [], already=True)
        if verdict is Verdict.CONFLICT:
            raise not_open(record, "aborted")
        if if_version is not None and if_version != record.version:
            raise TransactionChanged(
                f"transaction {record.id} is at version {record.version}, not {if_version}: it was used meanwhile",
                hint=f"Look again: `txnctl transactions show {record.id}`.",
                transaction=str(record.id),
                version=record.version,
            )
        return self._end(batch, record, TransactionState.ABORTED, reason, text, by)

    def _end(
        self,
        batch: WriteBatch,
        record: TransactionRecord,
        state: TransactionState,
        reason: AbortReason | None,
        text: str | None,
        by: Owner,
    ) -> Ended:
        """The decision: every part, then the record, in this store transaction."""
        assert record.state_code == _OPEN, "only an open transaction is decided"
        faults.reach("txn.before_parts")
        effects = []
        for key, part in list(batch.scan(TXN_PARTS, key1(record.least))):
            participant = self._participants[key[8]]
            object_id = int.from_bytes(key[9:17], "big")
            effects.append(
                participant.decide(batch, record.least, object_id, part, state is TransactionState.COMMITTED)
            )
            faults.reach("txn.between_parts")
        batch.delete(TXN_DEADLINES, key2(record.deadline_ns, record.least))
        if record.lease:
            batch.delete(LEASE_TXNS, key2(record.lease, record.least))
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

    def parts(self, view: ReadView, least: int) -> list[dict[str, Any]]:
        """What a transaction touched, for reports."""
        return [
            self._participants[key[8]].describe(view, least, int.from_bytes(key[9:17], "big"), part)
            for key, part in view.scan(TXN_PARTS, key1(least))
        ]


def _note_expiry(batch: WriteBatch, record: TransactionRecord, by: Owner) -> None:
    """Nobody asked for it: who was it that found it, whose was it, and what was dropped?"""
    effects = {
        "owner": str(record.owner), "labels": record.labels, "messagesDiscarded": record.messages,
        "acknowledgementsReleased": record.acknowledgements,
    }  # fmt: skip
    audit_trail.record(
        batch, by, "transaction expired", str(record.id), record.reason_code, effects, audit_trail.Kind.EXPIRY
    )


class Started:
    """When a transaction began: its timestamp (0: not issued yet), wall time in ms, store clock in ns."""

    __slots__ = ("now_ns", "timestamp", "wall_ms")

    def __init__(self, timestamp: int, wall_ms: int, now_ns: int) -> None:
        self.timestamp = timestamp
        self.wall_ms = wall_ms
        self.now_ns = now_ns


def check_begin(timeout_ms: int, labels: dict[str, str] | None) -> None:
    """That a transaction may be begun so.

    Raises:
        InvalidValue, InvalidName: a timeout or label out of bounds.
    """
    if not 0 < timeout_ms <= TRANSACTION_TIMEOUT_MS_MAX:
        raise InvalidValue(
            f"a transaction's timeout of {timeout_ms / 1000:,.10g} s is not between 1 ms and 24 h",
            timeoutMs=timeout_ms,
        )
    _check_labels(labels or {})


def touches(view: ReadView, least: int, kind: int) -> list[int]:
    """Ids of the topics (PART_TOPIC), subscriptions (PART_SUBSCRIPTION) or tables that a transaction touched."""
    assert kind in (PART_TOPIC, PART_SUBSCRIPTION, PART_TABLE)
    prefix = key1(least) + bytes((kind,))
    return [int.from_bytes(key[9:17], "big") for key in view.keys(TXN_PARTS, prefix)]


def check_owner_idle(view: ReadView, record: TransactionRecord, is_alive: bool) -> None:
    """Raises:
    OwnerAlive: the owner lives and used the transaction within the last minute.
    """
    idle_ms = record.idle_ms(view.now_ns)
    if is_alive and idle_ms < ACTIVE_OWNER_MS:
        raise OwnerAlive(
            f"the owner of transaction {record.id}, {record.owner}, is alive and used it {idle_ms / 1000:.0f} s ago",
            hint="Let it finish, or abort it all the same with --force.",
            transaction=str(record.id),
            idleMs=idle_ms,
        )


def _check_labels(labels: dict[Any, Any]) -> dict[str, str]:
    if len(labels) > LABELS_MAX:
        raise InvalidValue(f"a transaction has at most {LABELS_MAX} labels, not {len(labels)}")
    for name, value in labels.items():
        if (
            not isinstance(name, str)
            or not isinstance(value, str)
            or (not value.isascii() and not _is_unicode(value))
        ):
            raise InvalidValue("the names and values of labels are text")
        check_name("label name", name)
        if len(value.encode()) > LABEL_VALUE_BYTES_MAX:
            raise InvalidValue(f"the value of label {name} is longer than {LABEL_VALUE_BYTES_MAX} bytes")
    return labels


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_only(name: str) -> ReadOnlyTransaction:
    """The error for a write, a message or an acknowledgement in a read-committed transaction."""
    return ReadOnlyTransaction(
        f"transaction {name} is read-committed: it only reads tables",
        hint="Begin a serializable one: a read-committed one that writes would cost the same and promise less.",
        transaction=name,
    )


def not_open(record: TransactionRecord, asked: str) -> TransactionNotOpen:
    """The error for what only an open transaction can do; one that lost a conflict is told to whom."""
    if record.reason_code == AbortReason.LOST_CONFLICT.value and record.conflict:
        return _lost(record, asked)
    when = _ago(record.ended_ms)
    why = f", reason: {record.reason_code}" if record.reason_code else ""
    text = f" ({record.reason_text})" if record.reason_text else ""
    return TransactionNotOpen(
        f"transaction {record.id} cannot be {asked}: it was {record.state.value.lower()} {when} "
        f"by {record.ended_by}{why}{text}",
        hint="Begin a new one: `txnctl transactions begin`.",
        transaction=str(record.id),
        state=record.state.value,
        reason=record.reason_code,
    )


def _lost(record: TransactionRecord, asked: str) -> LostConflict:
    assert record.conflict is not None, "the caller has seen it"
    _, winner, version, table, key = record.conflict
    who = f"transaction {TxnID(winner)}" if winner else f"the transaction of timestamp {version}"
    shown = ascii(key)[2:-1]
    return LostConflict(
        f"transaction {record.id} cannot be {asked}: it lost key {shown} of table {table} to {who} "
        f"and was aborted {_ago(record.ended_ms)}",
        hint="Run all of it again in a new transaction, with a higher priority if it loses often.",
        transaction=str(record.id),
        state=record.state.value,
        reason=record.reason_code,
        winner=str(TxnID(winner)) if winner else None,
        winnerVersion=str(version),
        table=table,
        key=shown,
    )


def _timed_out(record: TransactionRecord) -> TxnctlError:
    return TransactionTimedOut(
        f"the deadline of transaction {record.id} ({record.timeout_ms / 1000:g} s) has passed: it is aborted",
        hint="Begin a new one, with a longer --timeout if the work needs it.",
        transaction=str(record.id),
        state="ABORTED",
        reason=AbortReason.TIMED_OUT.value,
    )


def _ago(wall_ms: int | None) -> str:
    from time import gmtime, strftime

    return "" if wall_ms is None else "at " + strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(wall_ms / 1000))

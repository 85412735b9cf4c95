"""The record of a transaction: state, deadline, owner, and end."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

from storage.actions import Action, Hint
from storage.disk.codec import U64X2, decoded, key1, missing, pack, unpack
from storage.disk.schema import TXN_DEADLINES, TXN_PARTS, TXNS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import CorruptStore, TransactionNotFound
from storage.process.identity import ProcessIdentity
from storage.txn.options import TransactionIsolation
from storage.values.txn_id import TxnID
from storage.values.txn_state import STATE_CODES, AbortReason, TransactionState

_FIELDS = (
    "state_code", "version", "timestamp", "begun_ms", "deadline_ns", "timeout_ms", "lease", "owner_fields", "labels",
    "isolation", "check", "priority", "used_ns", "used_ms", "ended_ms", "ended_timestamp", "reason_code",
    "reason_text", "ended_by_fields", "messages", "acknowledgements", "incarnation",
    "uses_tables", "consumed", "written", "conflict",
)  # fmt: skip
_fields_of = attrgetter(*_FIELDS)


class TransactionRecord:
    """One transaction.

    Attributes:
        version: grows with every use, so that an operator ends exactly the transaction that was looked at.
        timestamp: of the oracle, given at begin; the version of every row that the transaction writes.
        deadline_ns: on the store clock.
        lease: of the process that the transaction is attached to; 0 for a detached one, which only a deadline ends.
        used_ns, used_ms: last use, on the store clock and by the wall.
        uses_tables: whether the transaction has read or written a table.
        consumed: timestamp of the newest acknowledged message; 0 for none.
        written: keys that the commit wrote without intents: table, number of keys, the first keys.
        conflict: the conflict that doomed the transaction (kind, winner, winner's version, table name, key), or None.
        user_fields: the process that used the transaction last; None if that was the owner.
        producers_fenced: whether the operator's abort that ended the transaction fenced its producers as well.
    """

    __slots__ = (*_FIELDS, "producers_fenced", "txn_id", "user_fields")

    txn_id: int
    state_code: int
    version: int
    timestamp: int
    begun_ms: int
    deadline_ns: int
    timeout_ms: int
    lease: int
    owner_fields: list[Any]
    labels: dict[str, str]
    isolation: str
    check: str | None
    priority: str
    used_ns: int
    used_ms: int
    ended_ms: int | None
    ended_timestamp: int | None
    reason_code: str | None
    reason_text: str | None
    ended_by_fields: list[Any] | None
    messages: int
    acknowledgements: int
    incarnation: int
    uses_tables: bool
    consumed: int
    written: list[list[Any]]
    conflict: list[Any] | None
    producers_fenced: bool
    user_fields: list[Any] | None

    @property
    def id(self) -> TxnID:
        return TxnID(self.txn_id)

    @property
    def state(self) -> TransactionState:
        return STATE_CODES[self.state_code]

    @property
    def owner(self) -> ProcessIdentity:
        return ProcessIdentity.of(self.owner_fields)

    @property
    def user(self) -> ProcessIdentity:
        """The process that used the transaction last."""
        return ProcessIdentity.of(self.user_fields or self.owner_fields)

    @property
    def ended_by(self) -> ProcessIdentity | None:
        return ProcessIdentity.of(self.ended_by_fields) if self.ended_by_fields else None

    @property
    def reason(self) -> AbortReason | None:
        return AbortReason(self.reason_code) if self.reason_code else None

    def age_ms(self, now_ms: int) -> int:
        """Milliseconds of wall time from the begin to now, or to the end."""
        return max(0, (self.ended_ms or now_ms) - self.begun_ms)

    def idle_ms(self, now_ns: int) -> int:
        """Milliseconds since the last use."""
        return max(0, (now_ns - self.used_ns) // 1_000_000)

    def left_ms(self, now_ns: int) -> int:
        """Milliseconds until the deadline; negative after the deadline."""
        return (self.deadline_ns - now_ns) // 1_000_000

    def is_overdue(self, now_ns: int) -> bool:
        """Whether the deadline has passed."""
        return now_ns >= self.deadline_ns

    def encode(self) -> bytes:
        fields = _fields_of(self)
        if self.user_fields:
            return pack((*fields, self.producers_fenced, self.user_fields))
        return pack((*fields, True) if self.producers_fenced else fields)

    @classmethod
    def decode(cls, txn_id: int, payload: memoryview) -> TransactionRecord:
        record = cls()
        record.txn_id = txn_id
        fields = unpack(payload, len(_FIELDS))
        for name, value in zip(_FIELDS, fields, strict=False):
            setattr(record, name, value)
        record.producers_fenced = len(fields) > len(_FIELDS) and fields[len(_FIELDS)]
        record.user_fields = fields[len(_FIELDS) + 1] if len(fields) > len(_FIELDS) + 1 else None
        if record.state_code not in range(len(STATE_CODES)):
            raise CorruptStore(f"there is no state {record.state_code!r} of a transaction")
        return record


def _decoded(txn_id: int, payload: memoryview) -> TransactionRecord:
    return decoded(TXNS, key1(txn_id), payload, partial(TransactionRecord.decode, txn_id))


def find(view: ReadView, txn_id: int) -> TransactionRecord | None:
    """Find the record of a transaction, to be read only; None if there is none."""
    opened: TransactionRecord | None = view.opened(TXNS, key1(txn_id))
    if opened is not None:
        return opened
    payload = view.get(TXNS, key1(txn_id))
    return None if payload is None else _decoded(txn_id, payload)


def get(view: ReadView, txn_id: int) -> TransactionRecord:
    """Find the record of a transaction, to be read only.

    Raises:
        TransactionNotFound
    """
    record = find(view, txn_id)
    if record is None:
        raise _not_found(view, txn_id)
    return record


def open_record(batch: WriteBatch, txn_id: int) -> TransactionRecord:
    """Open the record of a transaction: the batch writes its changes.

    Raises:
        TransactionNotFound
    """
    record = batch.open(TXNS, key1(txn_id), partial(TransactionRecord.decode, txn_id))
    if record is None:
        raise _not_found(batch, txn_id)
    return record


def oldest_writer(view: ReadView, up_to: int) -> TransactionRecord | None:
    """The open transaction with the lowest timestamp, up to a bound, that may write; None if there is none.

    A passed deadline or a dead owner counts for nothing before the abort is recorded: after a reboot the rest of a
    deadline remains, and a transaction of a dead process may be committed by its number.
    """
    oldest: TransactionRecord | None = None
    for key in view.keys(TXN_DEADLINES):
        record = named(view, U64X2.unpack(key)[1])
        is_writer = record.isolation == TransactionIsolation.SERIALIZABLE.value
        if is_writer and record.timestamp <= (up_to if oldest is None else oldest.timestamp):
            oldest = record
    return oldest


def named(view: ReadView, txn_id: int) -> TransactionRecord:
    """Find the record of a transaction that another record names, to be read only.

    Raises:
        CorruptStore: the record is missing.
    """
    record = find(view, txn_id)
    if record is None:
        raise missing(TXNS, key1(txn_id))
    return record


def _not_found(view: ReadView, txn_id: int) -> TransactionNotFound | CorruptStore:
    """The error for a transaction without a record: damage, where another record names the transaction."""
    has_part = next(view.keys(TXN_PARTS, key1(txn_id)), None) is not None
    if has_part or any(U64X2.unpack(key)[1] == txn_id for key in view.keys(TXN_DEADLINES)):
        return missing(TXNS, key1(txn_id))
    return TransactionNotFound(
        f"there is no transaction {TxnID(txn_id)}",
        hint=Hint(
            "`{}` shows the open ones, with {} the others.",
            Action("store.reports.list_transactions"),
            Action("list_ended_transactions"),
        ),
        transaction=str(TxnID(txn_id)),
    )


def add(batch: WriteBatch, record: TransactionRecord) -> None:
    """Open the record of a new transaction: the batch writes it."""
    batch.add(TXNS, key1(record.txn_id), record)


def save(batch: WriteBatch, record: TransactionRecord) -> None:
    """Write the record of a transaction now, and close it: the rest of the batch reads the state from the store."""
    batch.put_record(TXNS, key1(record.txn_id), record)


def state_of(view: ReadView, txn_id: int) -> TransactionState:
    """The state of a transaction that a message names."""
    return STATE_CODES[state_code(view, txn_id)]


def state_code(view: ReadView, txn_id: int) -> int:
    """The number of a transaction's state: the first field of the record, read without unpacking the rest.

    No change of state waits in an open record: `save` writes it at once.

    Raises:
        CorruptStore: the transaction, which a message or an intent names, has no record.
    """
    payload = view.get(TXNS, key1(txn_id))
    return named(view, txn_id).state_code if payload is None else packed_state_code(payload)


def packed_state_code(payload: bytes | memoryview) -> int:
    """Read the number of the state from the bytes of a record.

    Raises:
        CorruptStore: the bytes are no such record.
    """
    # An array of 16 and more elements begins with one byte of type and two of length; a small integer is one byte.
    if len(payload) < 4 or payload[3] >= len(STATE_CODES):
        raise CorruptStore("it has no state of a transaction")
    return payload[3]

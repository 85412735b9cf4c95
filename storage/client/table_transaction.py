"""The transaction in whose name a table is read or written: the one that a caller names, or one of the call's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from storage.client.table_reader import ReadCommitted
from storage.client.transaction import txn_number
from storage.client.work.beginning import BeginRequest
from storage.client.work.work import Work, begin_work, work_by_record
from storage.disk.connection import Connection
from storage.errors import ConditionFailed, InvalidValue
from storage.limits import TRANSACTION_TIMEOUT_MS
from storage.table.catalogue import TableEntry
from storage.txn import record as records
from storage.txn.coordinator import Coordinator
from storage.txn.options import CheckMode, TransactionIsolation
from storage.txn.record import TransactionRecord
from storage.values.key_text import key_text
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState

T = TypeVar("T")


def reader_in(
    connection: Connection, coordinator: Coordinator, txn: TxnID | str, check: CheckMode | None
) -> Work | ReadCommitted:
    """Reads tables in a transaction named by number: the work of a serializable one, or a read-committed reader.

    Raises:
        InvalidValue: a check mode in a serializable transaction.
        TransactionNotFound, InvalidTxnId
    """
    record = _record(connection, txn)
    if record.isolation == TransactionIsolation.SERIALIZABLE.value:
        if check is not None:
            raise InvalidValue("a serializable transaction has no check mode")
        return work_by_record(connection, coordinator, record)
    mode = check or CheckMode(record.check or CheckMode.MINIMAL.value)
    return ReadCommitted(connection, mode, record.timestamp, record.txn_id)


def _record(connection: Connection, txn: TxnID | str) -> TransactionRecord:
    txn_id = txn_number(connection, txn)
    with connection.view() as view:
        return records.get(view, txn_id)


def write_in(
    connection: Connection, coordinator: Coordinator, txn: TxnID | str | None, action: Callable[[Work], T]
) -> T:
    """Write in a serializable transaction: the one named, or one of the call's own, which the call commits.

    Raises:
        ReadOnlyTransaction: the transaction is read-committed.
        WriteTooOld, LostConflict, RequestTooOld, TransactionNotOpen, TransactionTimedOut
    """
    if txn is not None:
        return action(work_by_record(connection, coordinator, _record(connection, txn)))
    work = begin_work(connection, coordinator, BeginRequest(TRANSACTION_TIMEOUT_MS, None))
    try:
        result = action(work)
    except BaseException:
        if work.state is TransactionState.OPEN:
            work.abort("its write was refused")
        raise
    work.commit()
    return result


def check_version(work: Work, table: TableEntry, key: bytes, expected: int) -> None:
    """See that the newest version of a key that a transaction sees is the expected one; 0 for none.

    Raises:
        ConditionFailed: the transaction has read the key, and goes on.
    """
    seen = work.read_version(table, key)
    version = 0 if seen is None else seen.version
    if version == expected:
        return
    asked = f"version {expected}" if expected else "no value"
    has = f"version {version}" if version else "no value"
    raise ConditionFailed(
        f"key {key_text(key)} of table {table.name} was to have {asked}, and has {has}",
        hint="Read it again, and decide anew.",
        table=table.name,
        key=key_text(key),
        version=str(version) if version else None,
    )

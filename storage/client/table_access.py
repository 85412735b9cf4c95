"""In whose name a table is read and written: the transaction that a caller names, or one of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from storage.client.table_reader import ReadCommitted
from storage.client.transaction import Transaction, reader_not_open, txn_number
from storage.client.work.handle import Begun
from storage.client.work.write_set import TableWork
from storage.disk.connection import Connection
from storage.errors import ConditionFailed, InvalidValue
from storage.limits import TRANSACTION_TIMEOUT_MS
from storage.table.catalogue import TableEntry
from storage.txn import record as records
from storage.txn.coordinator import Coordinator
from storage.txn.options import CheckMode, TransactionIsolation
from storage.txn.record import TransactionRecord
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState

T = TypeVar("T")
Txn = Transaction | TxnID | str


def reader(
    connection: Connection, coordinator: Coordinator, txn: Txn, check: CheckMode | None
) -> TableWork | ReadCommitted:
    """Who reads: the work of a serializable transaction, or a read-committed reader.

    Raises:
        InvalidValue: a check mode in a serializable transaction.
        TransactionNotOpen: a read-committed one that has ended.
        TransactionNotFound, InvalidTxnId
    """
    if isinstance(txn, Transaction):
        if txn.work is not None:
            _check_no_mode(check)
            return txn.work
        if txn.state is not TransactionState.OPEN:
            raise reader_not_open("used", txn.state)
        return ReadCommitted(connection, check or txn.check or CheckMode.MINIMAL, txn.start)
    record = _record(connection, txn)
    if record.isolation == TransactionIsolation.SERIALIZABLE.value:
        _check_no_mode(check)
        return _work(connection, coordinator, record)
    mode = check or CheckMode(record.check or CheckMode.MINIMAL.value)
    return ReadCommitted(connection, mode, record.timestamp, record.txn_id)


def _check_no_mode(check: CheckMode | None) -> None:
    if check is not None:
        raise InvalidValue("a serializable transaction has no check mode")


def _record(connection: Connection, txn: TxnID | str) -> TransactionRecord:
    txn_id = txn_number(txn)
    with connection.view() as view:
        return records.get(view, txn_id)


def _work(connection: Connection, coordinator: Coordinator, record: TransactionRecord) -> TableWork:
    begun = Begun(record.timeout_ms, record.labels, attached=False)
    return TableWork(connection, coordinator, begun, record.txn_id)


def run(
    connection: Connection, coordinator: Coordinator, txn: Txn | None, action: Callable[[TableWork], T]
) -> T:
    """Do something in a serializable transaction: the one given, or one of its own, which commits it.

    Raises:
        ReadOnlyTransaction: it is read-committed.
        WriteTooOld, LostConflict, RequestTooOld, TransactionNotOpen, TransactionTimedOut
    """
    if isinstance(txn, Transaction):
        if txn.work is None:
            txn_number(txn)  # tells why not
        assert txn.work is not None, "a read-committed transaction has no number"
        return action(txn.work)
    if txn is not None:
        return action(_work(connection, coordinator, _record(connection, txn)))
    work = TableWork.begin(connection, coordinator, Begun(TRANSACTION_TIMEOUT_MS, None))
    try:
        result = action(work)
    except BaseException:
        if work.state is TransactionState.OPEN:
            work.abort("its write was refused")
        raise
    work.commit()
    return result


def check_version(work: TableWork, table: TableEntry, key: bytes, wanted: int) -> None:
    """That the newest version of a key that a transaction sees is this one; 0 for none.

    Raises:
        ConditionFailed: the transaction has read the key, and goes on.
    """
    found = work.read(table, key)
    version = 0 if found is None else found.version
    if version == wanted:
        return
    asked = f"version {wanted}" if wanted else "no value"
    has = f"version {version}" if version else "no value"
    raise ConditionFailed(
        f"key {ascii(key)[2:-1]} of table {table.name} was to have {asked}, and has {has}",
        hint="Read it again, and decide anew.",
        table=table.name,
        key=ascii(key)[2:-1],
        version=str(version) if version else None,
    )

"""Opening the work of a transaction that begins in this process, or that a caller names by number."""

from __future__ import annotations

from storage.client.work.beginning import Beginning, BeginRequest
from storage.client.work.handle import TransactionHandle
from storage.client.work.work import Work
from storage.disk.connection import Connection
from storage.txn.coordinator import Coordinator
from storage.txn.record import TransactionRecord


def begin_work(connection: Connection, coordinator: Coordinator, request: BeginRequest) -> Work:
    """Begin a transaction attached to this process, without a commit if a timestamp can be issued without one.

    Raises:
        InvalidValue, InvalidName
        StoreClosed, StoreInvalid, WriterBusy
    """
    beginning = Beginning.now(connection, coordinator, request)
    handle = TransactionHandle(connection, coordinator, beginning)
    if beginning.started is None:
        handle.materialise()
    return Work(handle, buffers=True)


def work_by_record(connection: Connection, coordinator: Coordinator, record: TransactionRecord) -> Work:
    """The work of a transaction that a caller names by number; nothing is buffered."""
    request = BeginRequest(record.timeout_ms, record.labels, attached=False)
    beginning = Beginning(connection, coordinator, request)
    return Work(TransactionHandle(connection, coordinator, beginning, record.txn_id), buffers=False)

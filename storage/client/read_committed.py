"""A read-committed transaction as an application holds it: tables are read as committed, and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.client.same_store import check_same_store
from storage.client.table_reader import ReadCommitted
from storage.client.transaction import Transaction
from storage.errors import TransactionNotOpen
from storage.txn.errors import read_only
from storage.txn.options import CheckMode
from storage.values.txn_state import TransactionState

if TYPE_CHECKING:
    from storage.client.work.beginning import BeginRequest
    from storage.client.work.work import Work
    from storage.disk.connection import Connection
    from storage.disk.view import ReadView
    from storage.table.catalogue import TableEntry
    from storage.table.read import Pick


class ReadCommittedTransaction(Transaction):
    """Reads tables as committed. Its state is of this process alone."""

    def __init__(self, connection: Connection, request: BeginRequest) -> None:
        super().__init__(connection, request)
        with connection.view() as view:
            self.start = connection.environment.read_cache.last_issued(view.superblock)
        self._state = TransactionState.OPEN
        self.is_open_reader = True

    @property
    def work(self) -> Work:
        raise read_only("(read-committed)")

    @property
    def known_id(self) -> None:
        return None

    @property
    def state(self) -> TransactionState:
        return self._state

    def table_reader(self, connection: Connection, check: CheckMode | None) -> ReadCommitted:
        check_same_store(connection, self.connection)
        self.check_readable()
        return _ReaderOf(self, connection, check or self.check or CheckMode.MINIMAL)

    def check_readable(self) -> None:
        """See that the transaction is open.

        Raises:
            TransactionNotOpen
            StoreClosed: the handle of the transaction is closed.
        """
        if self._state is not TransactionState.OPEN:
            raise _ended("used", self._state)
        if self.connection.is_closed:
            self.connection.view()

    def flush(self) -> None:
        """Nothing is buffered."""

    def commit_now(self) -> bool:
        was_open = self.is_open_reader
        self._end(TransactionState.COMMITTED, "committed")
        return was_open

    def _abort(self, reason: str | None) -> None:  # noqa: ARG002
        self._end(TransactionState.ABORTED, "aborted")

    def _end(self, asked: TransactionState, word: str) -> None:
        if self._state not in (TransactionState.OPEN, asked):
            raise _ended(word, self._state)
        self._state, self.is_open_reader = asked, False

    def __str__(self) -> str:
        return "(read-committed)"


class _ReaderOf(ReadCommitted):
    """Reads in a read-committed transaction of this process, each page only while the transaction is open."""

    def __init__(self, txn: ReadCommittedTransaction, connection: Connection, check: CheckMode) -> None:
        super().__init__(connection, check, txn.start)
        self._txn = txn

    def _pick(self, view: ReadView, table: TableEntry) -> Pick:
        self._txn.check_readable()
        return super()._pick(view, table)


def _ended(asked: str, state: TransactionState) -> TransactionNotOpen:
    return TransactionNotOpen(
        f"this read-committed transaction cannot be {asked}: it was {state.value.lower()}",
        hint="Begin a new one.",
        state=state.value,
    )

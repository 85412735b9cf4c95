"""A read-committed transaction in the hands of an application: reads of committed rows, and no writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from storage.actions import Hint, Keyword
from storage.client.same_store import check_same_store
from storage.client.table_reader import ReadCommitted
from storage.client.transaction import Transaction
from storage.errors import TransactionNotOpen, TransactionTimedOut
from storage.txn.errors import read_only
from storage.txn.options import CheckMode
from storage.values.txn_state import AbortReason, TransactionState

if TYPE_CHECKING:
    from storage.client.work.beginning import BeginRequest
    from storage.client.work.work import Work
    from storage.disk.connection import Connection
    from storage.disk.view import ReadView
    from storage.table.catalogue import TableEntry
    from storage.table.read import Pick


class ReadCommittedTransaction(Transaction):
    """Reads tables as committed. State and deadline are of this process alone."""

    def __init__(self, connection: Connection, request: BeginRequest) -> None:
        super().__init__(connection, request)
        self._timeout_ms = request.timeout_ms
        self._deadline_ns = connection.clock.boot_ns() + request.timeout_ms * 1_000_000
        self._is_late = False
        with connection.view() as view:
            self.start = connection.environment.read_cache.last_issued(view.superblock)
        self._state = TransactionState.OPEN

    @property
    def work(self) -> Work:
        raise read_only("(read-committed)")

    @property
    def known_id(self) -> None:
        return None

    @property
    def state(self) -> TransactionState:
        return self._state

    @property
    def is_readable(self) -> bool:
        is_open = self._state is TransactionState.OPEN
        return is_open and self.connection.clock.boot_ns() < self._deadline_ns

    def table_reader(self, connection: Connection, check: CheckMode | None) -> ReadCommitted:
        check_same_store(connection, self.connection)
        self.check_readable()
        return _ReaderOf(self, connection, check or self.check or CheckMode.MINIMAL)

    def check_readable(self) -> None:
        """See that the transaction is open, and in time. A late one is aborted.

        Raises:
            TransactionNotOpen, TransactionTimedOut
            StoreClosed: the handle of the transaction is closed.
        """
        if not self.is_readable:
            self._refuse("used")
        if self.connection.is_closed:
            self.connection.view()

    def flush(self) -> None:
        """Nothing is buffered."""

    def _refuse(self, asked: str) -> Never:
        """Abort a transaction after its deadline, and raise the reason why nothing more can be done in it."""
        if self._state is TransactionState.OPEN:
            self._state, self._is_late = TransactionState.ABORTED, True
        if self._is_late:
            raise _timed_out(self._timeout_ms)
        raise _ended(asked, self._state)

    def commit_now(self) -> bool:
        was_open = self._state is TransactionState.OPEN
        if was_open and not self.is_readable:
            self._refuse("committed")
        self._end(TransactionState.COMMITTED, "committed")
        return was_open

    def _abort(self, reason: str | None) -> None:  # noqa: ARG002
        self._end(TransactionState.ABORTED, "aborted")

    def _abandon(self) -> None:
        self._state = TransactionState.ABORTED if self._state is TransactionState.OPEN else self._state

    def _end(self, asked: TransactionState, word: str) -> None:
        if self._state not in (TransactionState.OPEN, asked):
            self._refuse(word)
        self._state = asked

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


def _timed_out(timeout_ms: int) -> TransactionTimedOut:
    return TransactionTimedOut(
        f"the deadline of this read-committed transaction ({timeout_ms / 1000:g} s) has passed: it is aborted",
        hint=Hint("Begin a new one, with a longer {} if the work needs it.", Keyword("timeout")),
        state=TransactionState.ABORTED.value,
        reason=AbortReason.TIMED_OUT.value,
    )


def _ended(asked: str, state: TransactionState) -> TransactionNotOpen:
    return TransactionNotOpen(
        f"this read-committed transaction cannot be {asked}: it was {state.value.lower()}",
        hint="Begin a new one.",
        state=state.value,
    )

"""A read-committed transaction as an application holds it: tables are read as committed, and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


class ReadCommittedTransaction(Transaction):
    """Reads tables as committed. Its state is of this process alone."""

    def __init__(self, connection: Connection, request: BeginRequest) -> None:
        super().__init__(request)
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
        if self._state is not TransactionState.OPEN:
            raise _ended("used", self._state)
        return ReadCommitted(connection, check or self.check or CheckMode.MINIMAL, self.start)

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


def _ended(asked: str, state: TransactionState) -> TransactionNotOpen:
    return TransactionNotOpen(
        f"this read-committed transaction cannot be {asked}: it was {state.value.lower()}",
        hint="Begin a new one.",
        state=state.value,
    )

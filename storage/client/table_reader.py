"""Reading a table without a trace: as committed now, or as committed at a version. Nothing is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from storage.actions import Hint, Keyword
from storage.disk.codec import decoded, missing
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.errors import TransactionTimedOut
from storage.limits import PAGE_ENTRIES
from storage.table import read as reading, row as rows
from storage.table.catalogue import TableEntry, check_exists
from storage.table.key_range import KeyRange
from storage.table.read import Pick
from storage.table.visibility import COMMITTED, OPEN, Row, Version
from storage.txn import record as records
from storage.txn.options import CheckMode

if TYPE_CHECKING:
    from storage.client.final_version import FinalVersion
    from storage.client.transaction import Transaction

_ALWAYS = 1 << 63
"""Later than every timestamp."""


class RowReader(ABC):
    """Reads keys, and pages of ranges, each from a view of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @abstractmethod
    def _pick(self, view: ReadView, table: TableEntry) -> Pick:
        """Pick the version of a row that this reader sees."""

    def read_version(self, table: TableEntry, key: bytes) -> Version | None:
        """The version that the reader sees under a key.

        Raises:
            TableNotFound, TransactionNotOpen, TransactionTimedOut, RequestTooOld
        """
        with self._connection.view() as view:
            check_exists(view, table)
            return reading.one(view, table.table_id, key, self._pick(view, table))

    def read_pages(self, table: TableEntry, key_range: KeyRange, limit: int | None) -> Iterator[list[Row]]:
        """The rows that the reader sees in a range, a page at a time, in the direction of the range.

        Raises:
            as `read_version`
        """
        rest: KeyRange | None = key_range
        left = 1 << 62 if limit is None else limit
        while rest is not None and left > 0:
            with self._connection.view() as view:
                check_exists(view, table)
                pick = self._pick(view, table)
                rows_seen, rest = reading.page(view, table.table_id, rest, pick, min(left, PAGE_ENTRIES))
            left -= len(rows_seen)
            yield rows_seen


class ReadCommitted(RowReader):
    """Sees the versions committed at the time of reading.

    Args:
        check: how an intent is treated.
        start: the last timestamp issued when the reader began; None if the reader begins with its first view.
        txn_id: the number of the reader's transaction; 0 for a transaction without a record.
    """

    def __init__(self, connection: Connection, check: CheckMode, start: int | None, txn_id: int = 0) -> None:
        super().__init__(connection)
        self._check = check
        self._start = start
        self._txn_id = txn_id

    def _pick(self, view: ReadView, table: TableEntry) -> Pick:  # noqa: ARG002  all tables are seen alike
        if self._txn_id:
            _check_readable(view, self._txn_id)
        if self._start is None:
            self._start = self._connection.environment.read_cache.last_issued(view.superblock)
        return reading.AsCommitted(view, self._check, self._start)


class AtVersion(RowReader):
    """Sees the versions committed at a final version, as long as these are retained."""

    def __init__(self, connection: Connection, final: FinalVersion) -> None:
        super().__init__(connection)
        self._final = final

    def _pick(self, view: ReadView, table: TableEntry) -> Pick:
        from storage.table import retention

        start = retention.window_start(view)
        if self._final.unchanged_until < start:
            from storage.client.final_version import before_retention

            raise before_retention(table.name, self._final, start)
        return reading.AtTimestamp(view, table.table_id, self._final.version, 0)


def committed_value(
    payload: bytes, record: bytes | None, txn: Transaction | None, check: CheckMode | None
) -> bytes | None:
    """The value of a row for a read-committed reader: `visibility.latest` on the bytes.

    Args:
        record: of the transaction that holds the row's intent, from the same view; None without an intent.
    """
    # Outside any transaction the reader began with this very view: every intent of the view began before.
    start = _ALWAYS if txn is None else txn.start
    mode = check or (txn.check if txn is not None else None) or CheckMode.MINIMAL
    at = rows.intent_at(payload)
    holder = rows.holder_of(payload)
    if holder is None or mode is CheckMode.NONE:
        return rows.finalized_value(payload, at)
    if record is None:
        raise missing(*holder)
    if decoded(*holder, memoryview(record), records.packed_state_code) != COMMITTED:
        return rows.finalized_value(payload, at)
    if mode is CheckMode.MINIMAL and rows.intent_version(payload, at) > start:
        return rows.finalized_value(payload, at)
    return rows.intent_value(payload, at)


def _check_readable(view: ReadView, txn_id: int) -> None:
    """See that a read-committed transaction with a record may still be read in. Nothing is written in any case.

    Raises:
        TransactionNotOpen
        TransactionTimedOut: the deadline has passed; the next writer aborts the transaction.
    """
    record = records.get(view, txn_id)
    if record.state_code != OPEN:
        from storage.txn.errors import not_open

        raise not_open(record, "used")
    if record.is_overdue(view.now_ns):
        raise TransactionTimedOut(
            f"the deadline of transaction {record.id} has passed, and it can only be aborted",
            hint=Hint("Begin a new one, with a longer {} if the work needs it.", Keyword("timeout")),
            transaction=str(record.id),
            state="OPEN",
        )

"""Reading a table without disturbing anybody: what is committed now, or what was at a version. It writes nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.errors import InvalidValue, RequestTooOld, TransactionTimedOut
from storage.limits import PAGE_ENTRIES
from storage.table import read as reading, row as rows
from storage.table.catalogue import TableEntry, check_exists
from storage.table.key_range import KeyRange
from storage.table.read import Pick
from storage.table.visibility import COMMITTED, OPEN, Version
from storage.txn import record as records
from storage.txn.options import CheckMode

if TYPE_CHECKING:
    from storage.client.transaction import Transaction

_ALWAYS = 1 << 63
"""Later than every timestamp."""


class Reader(ABC):
    """Reads keys, and pages of ranges, each from a view of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @abstractmethod
    def _pick(self, view: ReadView, table: TableEntry) -> Pick:
        """Picks the version of a row that this reader sees."""

    def read_version(self, table: TableEntry, key: bytes) -> Version | None:
        """What it sees under a key.

        Raises:
            TableNotFound, TransactionNotOpen, TransactionTimedOut, RequestTooOld
        """
        with self._connection.view() as view:
            found = reading.one(view, table.table_id, key, self._pick(view, table))
            if found is None:
                check_exists(view, table)
            return found

    def read_pages(
        self, table: TableEntry, wanted: KeyRange, limit: int | None
    ) -> Iterator[list[tuple[bytes, Version]]]:
        """The rows that it sees in a range, a page at a time, in the direction of the range.

        Raises:
            as `read_version`
        """
        rest: KeyRange | None = wanted
        left = 1 << 62 if limit is None else limit
        while rest is not None and left > 0:
            with self._connection.view() as view:
                check_exists(view, table)
                pick = self._pick(view, table)
                found, rest = reading.page(view, table.table_id, rest, pick, min(left, PAGE_ENTRIES))
            left -= len(found)
            yield found


class ReadCommitted(Reader):
    """Sees what is committed at the moment of reading.

    Args:
        check: what it does on an intent.
        start: the last timestamp issued when it began; None if it begins with its first view.
        txn_id: the number of the transaction that it belongs to; 0 if that has no record.
    """

    def __init__(self, connection: Connection, check: CheckMode, start: int | None, txn_id: int = 0) -> None:
        super().__init__(connection)
        self._check = check
        self._start = start
        self._least = txn_id

    def _pick(self, view: ReadView, table: TableEntry) -> Pick:  # noqa: ARG002  it sees all tables alike
        if self._least:
            _check_readable(view, self._least)
        if self._start is None:
            self._start = view.superblock.last_timestamp
        return reading.as_committed(view, self._check, self._start)


class AtVersion(Reader):
    """Sees what was committed at a version, as long as that is kept.

    Raises:
        InvalidValue: it is no version, or one that nothing was written at yet: the answer would change.
    """

    def __init__(self, connection: Connection, at: int) -> None:
        super().__init__(connection)
        if type(at) is not int or not 0 < at < 1 << 63:
            raise InvalidValue(f"a version is a whole number of nanoseconds since 1970, not {at!r}")
        self._at = at

    def _pick(self, view: ReadView, table: TableEntry) -> Pick:
        from storage.table import retention

        start = retention.window_start(view)
        if self._at < start:
            raise _not_kept(table.name, self._at, start)
        if self._is_to_come(view):
            raise _to_come(table.name, self._at)
        return reading.at_timestamp(view, table.table_id, self._at, 0, pushes=False)

    def _is_to_come(self, view: ReadView) -> bool:
        """Whether it is later than now, to the millisecond, and than all that was issued: clocks may be set back."""
        if self._at // 1_000_000 <= view.clock.wall_ms() or self._at <= view.superblock.last_timestamp:
            return False
        return self._at > self._connection.environment.read_cache.peek_issued(view.superblock)


def _to_come(table: str, at: int) -> InvalidValue:
    from storage.values.timestamps import rfc3339

    return InvalidValue(
        f"{rfc3339(at // 1_000_000) or at} is in the future: what table {table} will hold then is not known",
        hint="Leave out the time to read what is committed now.",
        table=table,
    )


def _not_kept(table: str, at: int, start: int) -> RequestTooOld:
    from storage.values.timestamps import rfc3339

    moment, since = (rfc3339(each // 1_000_000) for each in (at, start))
    return RequestTooOld(
        f"what table {table} held at {moment or at} is not kept any more; it can be read from {since} on",
        hint="`txnctl store config table-retention` says for how long versions are kept.",
        table=table,
        keptSince=since,
    )


def committed_value(
    payload: bytes, record: bytes | None, txn: Transaction | None, check: CheckMode | None
) -> bytes | None:
    """The value of a row for a read-committed reader, given the record of whose intent it has, from the same view.

    What `visibility.latest` says, on the bytes.
    """
    # Outside any transaction the reader began with this very view: every intent in it began before.
    start = _ALWAYS if txn is None else txn.start
    mode = check or (txn.check if txn is not None else None) or CheckMode.MINIMAL
    at = rows.intent_at(payload)
    if record is None or mode is CheckMode.NONE or records.packed_state_code(record) != COMMITTED:
        return rows.finalized_value(payload, at)
    if mode is CheckMode.MINIMAL and rows.intent_version(payload, at) > start:
        return rows.finalized_value(payload, at)
    return rows.intent_value(payload, at)


def _check_readable(view: ReadView, txn_id: int) -> None:
    """That a read-committed transaction with a record may still be read in. Nothing is written, whatever is found.

    Raises:
        TransactionNotOpen
        TransactionTimedOut: its deadline has passed; the next writer aborts it.
    """
    record = records.get(view, txn_id)
    if record.state_code != OPEN:
        from storage.txn.errors import not_open

        raise not_open(record, "used")
    if record.is_overdue(view.now_ns):
        raise TransactionTimedOut(
            f"the deadline of transaction {record.id} has passed; the next writer aborts it",
            hint="Begin a new one, with a longer --timeout if the work needs it.",
            transaction=str(record.id),
            state="OPEN",
        )

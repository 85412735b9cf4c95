"""A table as an application holds it: ordered keys, values of bytes.

    accounts = store.table("accounts")
    with store.transaction() as txn:
        balance = int(accounts.get(b"B1", txn=txn))
        accounts.put(b"B1", b"%d" % (balance - 100), txn=txn)

Without a transaction a read is read-committed, and a write is a serializable transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from storage.codec import key1
from storage.connection import Connection
from storage.errors import ConditionFailed, InvalidValue, RequestTooOld, TransactionTimedOut
from storage.lazy_transaction import Begun
from storage.limits import PAGE_ENTRIES, TABLE_KEY_BYTES_MAX, TRANSACTION_TIMEOUT_MS
from storage.moment import rfc3339
from storage.schema import ROWS
from storage.table import conflict as conflicts, reading, retention, row as rows
from storage.table.key_range import KeyRange
from storage.table.reading import Pick
from storage.table.table import TableEntry, check_exists
from storage.table.visibility import COMMITTED, OPEN, Version
from storage.table_work import TableWork
from storage.transaction import Transaction, txn_number
from storage.txn import record as records
from storage.txn.coordinator import Coordinator, not_open
from storage.txn.record import TransactionRecord
from storage.txn_id import TxnID
from storage.txn_options import CheckMode, TransactionIsolation
from storage.txn_state import TransactionState
from storage.view import ReadView

T = TypeVar("T")
Txn = Transaction | TxnID | str
_ABSENT = 0
_ALWAYS = 1 << 63
"""Later than every timestamp."""


class Row:
    """A key with the value that was seen: its version, and the transaction that wrote it (0: its own, unnumbered)."""

    __slots__ = ("key", "txn", "value", "version")

    def __init__(self, key: bytes, value: bytes, version: int, txn: int) -> None:
        self.key = key
        self.value = value
        self.version = version
        self.txn = txn

    def __repr__(self) -> str:
        return f"Row({self.key!r}, {self.value!r}, {self.version}, {self.txn})"


class _ReadCommitted:
    """How a read-committed reader reads: its check mode, when it began, the record it goes by (None: none)."""

    __slots__ = ("check", "least", "start")

    def __init__(self, check: CheckMode, start: int | None, least: int = 0) -> None:
        self.check = check
        self.start = start
        self.least = least

    def pick(self, view: ReadView) -> Pick:
        if self.least:
            check_readable(view, self.least)
        if self.start is None:
            self.start = view.head.last_timestamp
        return reading.as_committed(view, self.check, self.start)


class Table:
    """Made by `Store.table`. Of many threads each uses its own transactions."""

    def __init__(self, connection: Connection, coordinator: Coordinator, entry: TableEntry) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self._entry = entry
        self._prefix = key1(entry.table_id)
        self._fetch = connection.environment.fetch

    @property
    def name(self) -> str:
        return self._entry.name

    @property
    def table_id(self) -> int:
        """A number of its own: the same name created again is another table."""
        return self._entry.table_id

    # Reading

    def get(
        self,
        key: bytes,
        *,
        txn: Txn | None = None,
        at: int | None = None,
        check: CheckMode | None = None,
    ) -> bytes | None:
        """The value under a key, or None.

        Args:
            txn: reads as that transaction does; without one the read is read-committed.
            at: reads what was committed at that version, in nanoseconds since 1970.
            check: what a read-committed read does on an intent.

        Raises:
            InvalidValue, TableNotFound
            RequestTooOld: `at`, or the transaction, is older than what is kept.
            LostConflict, TransactionNotOpen, TransactionTimedOut: of the transaction.
        """
        is_reader = at is None and (txn is None or (type(txn) is Transaction and txn.is_open_reader))
        if is_reader and type(key) is bytes and 0 < len(key) <= TABLE_KEY_BYTES_MAX:
            payload, record = self._fetch(ROWS, self._prefix + key, rows.COMMITTED, rows.holder_of)
            # Most rows have one finalised version and nothing else: then no mode has anything to look up.
            if payload is not None:
                if payload[0] == rows.COMMITTED:
                    return payload[rows.VALUE_AT :]
                return _committed_value(payload, record, txn, check)  # type: ignore[arg-type]
        found = self._find(key, txn, at, check)
        return None if found is None else found.value

    def get_row(
        self,
        key: bytes,
        *,
        txn: Txn | None = None,
        at: int | None = None,
        check: CheckMode | None = None,
    ) -> Row | None:
        """As `get`, with the version."""
        found = self._find(key, txn, at, check)
        return None if found is None else _row(key, found)

    def _find(self, key: bytes, txn: Txn | None, at: int | None, check: CheckMode | None) -> Version | None:
        rows.check_key(key)
        reader = self._reader(txn, at, check)
        if isinstance(reader, TableWork):
            return reader.read(self._entry, key)
        with self._connection.view() as view:
            found = reading.one(view, self._entry.table_id, key, self._pick(view, reader))
            if found is None:
                check_exists(view, self._entry)
            return found

    def scan(
        self,
        *,
        prefix: bytes = b"",
        start: bytes | None = None,
        end: bytes | None = None,
        reverse: bool = False,
        limit: int | None = None,
        txn: Txn | None = None,
        at: int | None = None,
        check: CheckMode | None = None,
    ) -> Iterator[Row]:
        """The rows of a range, in order of their keys.

        Each page is one view, so pages of a read-committed scan may come from different commits; going on by key
        neither skips nor repeats. In a serializable transaction the whole range is protected, rows that are not there
        included.

        Args:
            start, end: from this key on, below that one.
            limit: rows at the most.

        Raises:
            as `get`
        """
        wanted = KeyRange.of(prefix, start, end, reverse)
        if limit is not None and limit < 0:
            raise InvalidValue(f"a limit is 0 or more, not {limit}")
        reader = self._reader(txn, at, check)
        pages = (
            reader.pages(self._entry, wanted, limit)
            if isinstance(reader, TableWork)
            else self._pages(reader, wanted, limit)
        )
        return (_row(key, version) for page in pages for key, version in page)

    def split(self, parts: int) -> list[bytes]:
        """Keys that cut the table into at most so many parts of about equal length, each the first key of a part.

        All keys are walked, in views of bounded length; rows that come and go meanwhile shift the cuts a little.

        Raises:
            TableNotFound
        """
        from storage.ops import tables

        return tables.split(self._connection, self._entry, parts)

    def _pages(
        self, reader: _ReadCommitted | int, wanted: KeyRange, limit: int | None
    ) -> Iterator[list[tuple[bytes, Version]]]:
        rest: KeyRange | None = wanted
        left = 1 << 62 if limit is None else limit
        while rest is not None and left > 0:
            with self._connection.view() as view:
                check_exists(view, self._entry)
                pick = self._pick(view, reader)
                found, rest = reading.page(view, self._entry.table_id, rest, pick, min(left, PAGE_ENTRIES))
            left -= len(found)
            yield found

    def _reader(
        self, txn: Txn | None, at: int | None, check: CheckMode | None
    ) -> TableWork | _ReadCommitted | int:
        """Who reads: a serializable transaction, a read-committed reader, or somebody at a version."""
        if at is not None:
            if txn is not None or check is not None:
                raise InvalidValue("a read at a version takes neither a transaction nor a check mode")
            if type(at) is not int or not 0 < at < 1 << 63:
                raise InvalidValue(f"a version is a whole number of nanoseconds since 1970, not {at!r}")
            return at
        if txn is None:
            return _ReadCommitted(check or CheckMode.MINIMAL, None)
        if isinstance(txn, Transaction):
            if txn.work is not None:
                if check is not None:
                    raise InvalidValue("a serializable transaction has no check mode")
                return txn.work
            if txn.state is not TransactionState.OPEN:
                raise InvalidValue("this read-committed transaction has ended")
            return _ReadCommitted(check or txn.check or CheckMode.MINIMAL, txn.start)
        least = txn_number(txn)
        with self._connection.view() as view:
            record = records.get(view, least)
        if record.isolation == TransactionIsolation.SERIALIZABLE.value:
            if check is not None:
                raise InvalidValue("a serializable transaction has no check mode")
            return self._work(record)
        mode = check or CheckMode(record.check or CheckMode.MINIMAL.value)
        return _ReadCommitted(mode, record.timestamp, least)

    def _work(self, record: TransactionRecord) -> TableWork:
        begun = Begun(record.timeout_ms, record.labels, attached=False)
        return TableWork(self._connection, self._coordinator, begun, record.least)

    def _pick(self, view: ReadView, reader: _ReadCommitted | int) -> Pick:
        if isinstance(reader, _ReadCommitted):
            return reader.pick(view)
        if reader < retention.window_start(view):
            at, since = (rfc3339(each // 1_000_000) for each in (reader, retention.window_start(view)))
            raise RequestTooOld(
                f"what table {self.name} held at {at or reader} is not kept any more; it can be read from {since} on",
                hint="`txnctl store config table-retention` says for how long versions are kept.",
                table=self.name,
                keptSince=since,
            )
        return reading.at_timestamp(view, self._entry.table_id, reader, 0, pushes=False)

    # Writing

    def put(
        self,
        key: bytes,
        value: bytes,
        *,
        txn: Txn | None = None,
        if_version: int | None = None,
        if_absent: bool = False,
    ) -> int:
        """Write a value under a key; the version it gets.

        Args:
            txn: the serializable transaction it belongs to; its own, committed at once, if None.
            if_version: only if the newest version that the transaction sees is this one; 0 for none.
            if_absent: only if it sees none.

        Raises:
            InvalidValue, TableNotFound
            ConditionFailed: the transaction stays usable, and has read the key.
            WriteTooOld, LostConflict, RequestTooOld: the transaction is aborted; run all of it again.
            ReadOnlyTransaction, TransactionNotOpen, TransactionTimedOut, WriterBusy, StoreFull
        """
        return self._write(key, rows.check_value(value), txn, _ABSENT if if_absent else if_version)

    def delete(self, key: bytes, *, txn: Txn | None = None, if_version: int | None = None) -> int:
        """Delete a key, there or not; the version of the deletion.

        Raises:
            as `put`
        """
        return self._write(key, None, txn, if_version)

    def _write(self, key: bytes, value: bytes | None, txn: Txn | None, wanted: int | None) -> int:
        rows.check_key(key)

        def write(work: TableWork) -> int:
            if wanted is not None:
                self._check_version(work, key, wanted)
            return work.write(self._entry, key, value)

        return self._in(txn, write)

    def _in(self, txn: Txn | None, action: Callable[[TableWork], T]) -> T:
        """Do something in a serializable transaction: the one given, or one of its own."""
        if isinstance(txn, Transaction):
            if txn.work is None:
                txn_number(txn)  # tells why not
            assert txn.work is not None, "a read-committed transaction has no number"
            return action(txn.work)
        if txn is not None:
            with self._connection.view() as view:
                record = records.get(view, txn_number(txn))
            return action(self._work(record))
        work = TableWork.begin(self._connection, self._coordinator, Begun(TRANSACTION_TIMEOUT_MS, None))
        try:
            result = action(work)
        except BaseException:
            if work.state is TransactionState.OPEN:
                work.abort("its write was refused")
            raise
        work.commit()
        return result

    def _check_version(self, work: TableWork, key: bytes, wanted: int) -> None:
        found = work.read(self._entry, key)
        version = _ABSENT if found is None else found.version
        if version != wanted:
            asked = f"version {wanted}" if wanted else "no value"
            has = f"version {version}" if version else "no value"
            raise ConditionFailed(
                f"key {ascii(key)[2:-1]} of table {self.name} was to have {asked}, and has {has}",
                hint="Read it again, and decide anew.",
                table=self.name,
                key=ascii(key)[2:-1],
                version=str(version) if version else None,
            )

    def import_rows(self, found: Iterable[tuple[bytes, bytes | None]], *, txn: Txn | None = None) -> int:
        """Write many keys in one transaction of ours, in store transactions of a bounded size; how many.

        Args:
            found: keys, with the value of each, or None to delete it.

        Raises:
            as `put`
        """

        def write_all(work: TableWork) -> int:
            checked = (
                (rows.check_key(key), None if value is None else rows.check_value(value))
                for key, value in found
            )
            return work.write_many(self._entry, checked)

        return self._in(txn, write_all)

    # Reports

    def versions(self, key: bytes) -> list[dict[str, Any]]:
        """All that is kept under a key, the newest first, a write intent included."""
        from storage.ops import tables

        return tables.versions(self._connection, self._entry, rows.check_key(key))

    def intents(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The write intents of the table: who holds which keys."""
        from storage.ops import tables

        return tables.intents(self._connection, self._entry.name, limit)

    def stats(self) -> dict[str, Any]:
        """Counts of the table."""
        from storage.ops import tables

        return tables.stats(self._connection, self._entry)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Recent conflicts over keys of the table, the newest first."""
        with self._connection.view() as view:
            return conflicts.rows(view, limit, self._entry.name)


def _row(key: bytes, version: Version) -> Row:
    assert version.value is not None, "what was deleted is not seen"
    return Row(key, version.value, version.version, version.txn)


def _committed_value(
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


def check_readable(view: ReadView, least: int) -> None:
    """That a read-committed transaction with a record may still be read in. Nothing is written, whatever is found.

    Raises:
        TransactionNotOpen
        TransactionTimedOut: its deadline has passed; the next writer aborts it.
    """
    record = records.get(view, least)
    if record.state_code != OPEN:
        raise not_open(record, "used")
    if view.now_ns >= record.deadline_ns:
        raise TransactionTimedOut(
            f"the deadline of transaction {record.id} has passed; the next writer aborts it",
            hint="Begin a new one, with a longer --timeout if the work needs it.",
            transaction=str(record.id),
            state="OPEN",
        )

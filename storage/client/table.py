"""A table in the hands of an application: ordered keys, values of bytes.

    accounts = store.table("accounts")
    with store.transaction() as txn:
        balance = int(accounts.get(b"B1", txn=txn))
        accounts.put(b"B1", b"%d" % (balance - 100), txn=txn)

Without a transaction a read is read-committed, and a write is a serializable transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from storage.client.table_reader import AtVersion, ReadCommitted, RowReader, committed_value
from storage.disk.codec import key1
from storage.disk.connection import Connection
from storage.disk.schema import ROWS
from storage.engine import Engine
from storage.errors import InvalidValue
from storage.limits import TABLE_KEY_BYTES_MAX, TABLE_VALUE_BYTES_MAX
from storage.table import catalogue as tables, row as rows, state as states
from storage.table.catalogue import TableEntry
from storage.table.key_range import KeyRange
from storage.table.row import COMMITTED, VALUE_AT
from storage.table.visibility import Row, Version
from storage.txn.options import CheckMode
from storage.values.arguments import check_count, check_flags
from storage.values.names import named

if TYPE_CHECKING:
    from storage.client.final_version import FinalVersion
    from storage.client.table_changes import TableChanges
    from storage.client.transaction import Transaction
    from storage.client.work.work import Work
    from storage.table.conflict import ConflictRow
    from storage.table.report import IntentRow, TableStats, VersionRow
    from storage.txn.coordinator import Coordinator
    from storage.values.txn_id import TxnID

    Txn = Transaction | TxnID | str

T = TypeVar("T")


class Table:
    """Made by `Store.table`. Threads may share a table, each with transactions of its own."""

    def __init__(
        self, connection: Connection, coordinator: Callable[[], Coordinator], entry: TableEntry
    ) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self._entry = entry
        self._prefix = bytes(8)
        self._fetch: Callable[[bytes], tuple[bytes | None, bytes | None]] = self._find_and_fetch
        if entry.table_id > 0:
            self._bind(entry)

    @classmethod
    def open(cls, engine: Engine, name: str, *, create: bool = False) -> Table:
        """Open a table by name, or with `create` one that the first write creates if the table is missing.

        Raises:
            TableNotFound, InvalidName
        """
        check_flags(create=create)
        with engine.connection.view() as view:
            entry = (tables.find(view, name) or tables.unborn(name)) if create else tables.get(view, name)
            return cls(engine.connection, lambda: engine.coordinator, entry)

    def _bind(self, entry: TableEntry) -> None:
        self._entry = entry
        self._prefix = key1(entry.table_id)
        self._fetch = self._connection.environment.fetcher(
            ROWS, states.record_of(entry.table_id), rows.COMMITTED, rows.holder_of
        )

    @property
    def _stored(self) -> TableEntry:
        """The table in the store, to be read.

        Raises:
            TableNotFound: nothing is written yet to a table that the first write creates.
        """
        if self._entry.table_id < 0:
            with self._connection.view() as view:
                self._bind(tables.get(view, self._entry.name))
        return self._entry

    def _find_and_fetch(self, stored_key: bytes) -> tuple[bytes | None, bytes | None]:
        """The first fetch from a table that was not there when this object was made."""
        prefix = key1(self._stored.table_id)
        return self._fetch(prefix + stored_key[len(prefix) :])

    @property
    def name(self) -> str:
        return self._entry.name

    @property
    def table_id(self) -> int:
        """A number of its own: the same name created again is a new table."""
        return self._stored.table_id

    # Reading

    def get(
        self,
        key: bytes,
        *,
        txn: Txn | None = None,
        at: int | FinalVersion | None = None,
        check: CheckMode | str | None = None,
    ) -> bytes | None:
        """The value under a key, or None.

        Args:
            txn: reads as that transaction does; without one the read is read-committed.
            at: reads the versions committed at that timestamp, in nanoseconds since 1970, or at the earlier one that
                `version_at` finds.
            check: the treatment of an intent by a read-committed read.

        Raises:
            InvalidValue, TableNotFound
            RequestTooOld: `at`, or the transaction, is older than the retained versions.
            LostConflict, TransactionNotOpen, TransactionTimedOut: of the transaction.
        """
        if type(key) is bytes and 0 < len(key) <= TABLE_KEY_BYTES_MAX and at is None:
            own_work = None if txn is None else self._own_work(txn)
            if own_work is not None:
                if check is None and self._entry.table_id > 0:
                    version = own_work.read_version(self._entry, key)
                    return None if version is None else version.value
            elif (
                (check is None or type(check) is CheckMode)
                # A transaction that only reads, is open and in time, and was begun through the table's connection.
                and (txn is None or self._is_readable(txn))
                and self._connection.reads_at_once
            ):
                payload, record = self._fetch(self._prefix + key)
                # Most rows have one finalised version only: then no mode has anything to look up.
                if payload is not None:
                    if payload[0] == COMMITTED:
                        return payload[VALUE_AT:]
                    return committed_value(payload, record, txn, check)  # type: ignore[arg-type]
        version = self._find(key, txn, at, check)
        return None if version is None else version.value

    def _is_readable(self, txn: Any) -> bool:
        return getattr(txn, "is_readable", False) and txn.connection is self._connection

    def _own_work(self, txn: Any) -> Work | None:
        """The work of a serializable transaction that was begun through the table's connection; else None."""
        try:
            own_work: Work | None = txn.own_work if txn.connection is self._connection else None
        except AttributeError:
            return None  # The transaction is named by its number.
        return own_work

    def get_row(
        self,
        key: bytes,
        *,
        txn: Txn | None = None,
        at: int | FinalVersion | None = None,
        check: CheckMode | str | None = None,
    ) -> Row | None:
        """As `get`, with the version."""
        version = self._find(key, txn, at, check)
        if version is None:
            return None
        assert version.value is not None, "a deleted key is not seen"
        return Row(key, version.value, version.version, version.txn)

    def _find(
        self, key: bytes, txn: Txn | None, at: int | FinalVersion | None, check: CheckMode | str | None
    ) -> Version | None:
        return self._reader(txn, at, check).read_version(self._stored, rows.check_key(key))

    def scan(
        self,
        *,
        prefix: bytes = b"",
        start: bytes | None = None,
        end: bytes | None = None,
        reverse: bool = False,
        limit: int | None = None,
        txn: Txn | None = None,
        at: int | FinalVersion | None = None,
        check: CheckMode | str | None = None,
    ) -> Iterator[Row]:
        """The rows of a range, in order of their keys.

        Each page is one view, so pages of a read-committed scan may come from different commits; going on by key
        neither skips nor repeats. In a serializable transaction the whole range is protected, rows that are not there
        included; where the limit is reached, the part up to the last row.

        Args:
            start, end: from this key on, below that one.
            limit: rows at the most.

        Raises:
            as `get`
        """
        check_flags(reverse=reverse)
        key_range = KeyRange.of(prefix, start, end, reverse)
        if limit is not None:
            check_count("a limit", limit)
        return chain.from_iterable(self._reader(txn, at, check).read_pages(self._stored, key_range, limit))

    def version_at(self, at: int | None = None) -> FinalVersion:
        """The version that a read at a timestamp uses, for several reads of one moment; without one the newest.

        A version below which an open transaction can still write has no final content, so `at` is lowered to below the
        timestamps of all open transactions, and to the last timestamp issued.

        Raises:
            InvalidValue: the timestamp is no version, or lies in the future.
            RequestTooOld: the timestamp is of another incarnation of the store, or of a former table of the name.
        """
        from storage.client.final_version import find_final

        return find_final(self._connection, self._entry, at)

    def changes(self, *, since: int | None = None, until: int | FinalVersion | None = None) -> TableChanges:
        """The changes after one version up to another, in the order of versions; iterate over the result.

        Args:
            since: a version, as of a read at that time: its own changes are left out. None for all that are kept.
            until: a version; None for the newest. Both are lowered as by `version_at`.

        Raises:
            InvalidValue, TableNotFound
            RequestTooOld: changes after `since` are not kept any more; also by the iteration. Or `since` or `until` is
                a version of another incarnation of the store, or of a former table of the name.
        """
        from storage.client.table_changes import TableChanges

        return TableChanges(self._connection, self._stored, since, until)

    def split(self, parts: int, *, start: bytes = b"", end: bytes | None = None) -> list[bytes]:
        """Keys that cut the table into at most so many parts of about equal length, each the first key of a part.

        All keys are walked, in views of bounded length; rows that come and go meanwhile shift the cuts a little. Of a
        range of keys, from `start` on and below `end`, only these are walked, and parts are as long as of the table.

        Raises:
            TableNotFound, InvalidValue
        """
        from storage.table import report

        check_count("a number of parts", parts, 1)
        return report.split(
            self._connection, self._stored, parts, KeyRange.of(b"", start, end, reverse=False)
        )

    def _reader(
        self, txn: Txn | None, at: int | FinalVersion | None, check_mode: CheckMode | str | None
    ) -> RowReader | Work:
        """Reads for a call: a serializable transaction, a read-committed reader, or a reader at a version."""
        check = None if check_mode is None else named(CheckMode, check_mode, "check mode")
        if at is not None:
            if txn is not None or check is not None:
                raise InvalidValue("a read at a version takes neither a transaction nor a check mode")
            from storage.client.final_version import FinalVersion

            final = at if isinstance(at, FinalVersion) else self.version_at(at)
            return AtVersion(self._connection, final)
        if txn is None:
            return ReadCommitted(self._connection, check or CheckMode.MINIMAL, None)
        reader_in: Callable[..., RowReader | Work] | None = getattr(txn, "table_reader", None)
        if reader_in is not None:
            return reader_in(self._connection, check)
        from storage.client import table_transaction

        return table_transaction.reader_in(self._connection, self._coordinator(), txn, check)  # type: ignore[arg-type]

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
        """Write a value under a key; the version of the write.

        Args:
            txn: the serializable transaction of the write; if None, a new one, committed at once.
            if_version: only if the newest version that the transaction sees is this one; 0 for none.
            if_absent: only if the transaction sees no value.

        Raises:
            InvalidValue, TableNotFound
            ConditionFailed: the transaction stays usable, and has read the key.
            WriteTooOld, LostConflict, RequestTooOld: the transaction is aborted; run all of it again.
            ReadOnlyTransaction, TransactionNotOpen, TransactionTimedOut, WriterBusy, StoreFull
        """
        if if_absent is not False:
            check_flags(if_absent=if_absent)
        if txn is not None and if_version is None and not if_absent and type(value) is bytes:
            own_work = self._own_work(txn)
            if own_work is not None:
                return own_work.write_key(self._entry, key, value)
        if type(value) is not bytes or len(value) > TABLE_VALUE_BYTES_MAX:
            rows.check_value(value)
        return self._write(key, value, txn, 0 if if_absent else if_version)

    def delete(self, key: bytes, *, txn: Txn | None = None, if_version: int | None = None) -> int:
        """Delete a key, there or not; the version of the deletion.

        Raises:
            as `put`
        """
        return self._write(key, None, txn, if_version)

    def _write(self, key: bytes, value: bytes | None, txn: Txn | None, expected: int | None) -> int:
        rows.check_key(key)

        def write(work: Work) -> int:
            if expected is not None:
                from storage.client.table_transaction import check_version

                check_version(work, self._stored, key, expected)
            return work.write_key(self._entry, key, value)

        return self._in(txn, write)

    def _in(self, txn: Txn | None, action: Callable[[Work], T]) -> T:
        work_in: Callable[[Connection], Work] | None = getattr(txn, "work_in", None)
        if work_in is not None:
            return action(work_in(self._connection))
        from storage.client import table_transaction

        return table_transaction.write_in(self._connection, self._coordinator(), txn, action)  # type: ignore[arg-type]

    def import_rows(self, pairs: Iterable[tuple[bytes, bytes | None]], *, txn: Txn | None = None) -> int:
        """Write many keys in one new transaction, in store transactions of a bounded size; how many.

        Args:
            pairs: keys, each with its value, or with None to delete the key.

        Raises:
            as `put`
        """

        def write_all(work: Work) -> int:
            return work.write_keys(self._entry, map(_checked_pair, pairs))

        return self._in(txn, write_all)

    # Reports

    def versions(self, key: bytes) -> list[VersionRow]:
        """All stored versions of a key, the newest first, a write intent included."""
        from storage.table import report

        return report.list_versions(self._connection, self._stored, rows.check_key(key))

    def intents(self, limit: int | None = None) -> list[IntentRow]:
        """The write intents of the table: keys and their transactions.

        Raises:
            TableNotFound
        """
        from storage.table import report

        if limit is not None:
            check_count("a limit", limit)
        return report.table_intents(self._connection, self._stored, limit)

    def stats(self) -> TableStats:
        """Counts of the table."""
        from storage.table import report

        return report.table_stats(self._connection, self._stored)

    def history(self, limit: int | None = None) -> list[ConflictRow]:
        """Recent conflicts over keys of the table, the newest first."""
        from storage.table import conflict

        if limit is not None:
            check_count("a limit", limit)
        with self._connection.view() as view:
            return conflict.list_conflicts(view, limit, self._entry.name)


def _checked_pair(pair: tuple[bytes, bytes | None]) -> tuple[bytes, bytes | None]:
    """A key with its value, or with None.

    Raises:
        InvalidValue
    """
    try:
        key, value = pair
    except (TypeError, ValueError):
        raise InvalidValue(f"a row to import is a key with its value, not {pair!r}") from None
    return rows.check_key(key), None if value is None else rows.check_value(value)

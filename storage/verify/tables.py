"""Check tables: invariants 6, 14, 16, 17, 18 and 23, recomputed from rows, versions and intents."""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.codec import U64, key1, key2, part_key, unpack
from storage.disk.schema import (
    CHANGES,
    CONFLICTS,
    HEADS,
    PART_TABLE,
    ROWS,
    TABLE_PURGES,
    TXN_KEYS,
    TXN_PARTS,
    TXNS,
    VERSIONS,
)
from storage.disk.view import ReadView
from storage.errors import CorruptStore
from storage.limits import CONFLICTS_MAX
from storage.table import catalogue as tables, change_index, row as rows, state
from storage.table.catalogue import TableEntry
from storage.table.state import TableState
from storage.table.visibility import COMMITTED, OPEN, Version
from storage.txn import record as records
from storage.txn.record import TransactionRecord
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState
from storage.verify.problem import Report


class _Tables:
    """The check of all tables in one view."""

    def __init__(self, view: ReadView, report: Report) -> None:
        self._view = view
        self._report = report
        self._records: dict[int, TransactionRecord | None] = {}
        self._intents: set[bytes] = set()
        self._changes = self._horizon = 0

    def run(self) -> None:
        view, known = self._view, set()
        for table in tables.every(view):
            known.add(table.table_id)
            self._check_table(table)
        purging = {U64.unpack(key)[0] for key in view.keys(TABLE_PURGES)}
        for table_id in known & purging:
            self._report(6, f"table {table_id}", "exists, and is being removed")
        for database in (ROWS, VERSIONS, CHANGES):
            self._check_owners(database.name, view.keys(database), known | purging)
        for key in view.keys(HEADS, start=key1(1 << 63)):
            table_id = U64.unpack(key)[0] & ~(1 << 63)
            if table_id not in known or table_id > view.superblock.last_table:
                self._report(6, f"table {table_id}", "has a state, but no name")
        self._check_keys(purging)
        self._check_parts()
        self._check_doomed()
        if view.count(CONFLICTS) > CONFLICTS_MAX:
            self._report(None, "conflicts", f"there are more than {CONFLICTS_MAX} of them")

    def _check_doomed(self) -> None:
        """The loser of a conflict is aborted (invariant 17)."""
        losers = {unpack(payload, 7)[6] for _, payload in self._view.scan(CONFLICTS)}
        for key, _ in self._view.scan(TXNS):
            txn = U64.unpack(key)[0]
            record = self._record(txn)
            is_doomed = record is not None and (txn in losers or bool(record.conflict))
            if record is not None and is_doomed and record.state is not TransactionState.ABORTED:
                self._report(17, f"transaction {record.id}", f"lost a conflict, and is {record.state.value}")

    def _check_owners(self, name: str, keys: Iterator[bytes], known: set[int]) -> None:
        last = -1
        for key in keys:
            table_id = U64.unpack(key[:8])[0]
            if table_id not in known and table_id != last:
                self._report(6, f"table {table_id}", f"does not exist, but has records in {name}")
            last = table_id

    def _record(self, txn: int) -> TransactionRecord | None:
        if txn not in self._records:
            self._records[txn] = records.find(self._view, txn)
        return self._records[txn]

    def _check_table(self, table: TableEntry) -> None:
        view, counted = self._view, TableState()
        self._changes = 0
        self._horizon = change_index.horizon(view, table.table_id)
        for stored, payload in view.scan(ROWS, key1(table.table_id)):
            try:
                row = rows.decode(stored, payload)
            except CorruptStore as error:
                self._report(18, _named(table, stored[8:]), error.message)
                continue
            counted.rows += 1
            if row.committed is not None:
                counted.keys += row.committed.value is not None
                self._check_committed(table, stored[8:], row.committed)
                self._note_written(table, stored[8:], row.committed)
            if row.intent is not None:
                counted.intents += 1
                self._intents.add(key1(row.intent.txn) + stored)
                self._check_intent(table, stored[8:], row.intent)
                self._note_written(table, stored[8:], row.intent)
        self._check_versions(table, counted)
        self._check_changes(table)
        recorded = state.find(view, table.table_id)
        if recorded is None:
            self._report(23, f"table {table.name}", "has no state")
            return
        for name in TableState.__slots__:
            stored_count, recount = getattr(recorded, name), getattr(counted, name)
            if stored_count != recount:
                self._report(23, f"table {table.name}", f"{name} is {stored_count}, recounted {recount}")

    def _check_versions(self, table: TableEntry, counted: TableState) -> None:
        """Superseded versions are older than the version in the row, which exists."""
        key, above = b"", 0
        for stored, payload in self._view.scan(VERSIONS, key1(table.table_id)):
            counted.versions += 1
            old = rows.decode_old(stored, payload)
            if rows.key_of(stored) != key:
                key = rows.key_of(stored)
                row = self._view.get(ROWS, key1(table.table_id) + key)
                committed = None if row is None else rows.decode(stored, row).committed
                above = 0 if committed is None else committed.version
            if old.version >= above:
                self._report(
                    18, _named(table, key), f"superseded version {old.version} is not older than its row"
                )
            self._check_committed(table, key, old)
            self._note_written(table, key, old)

    def _note_written(self, table: TableEntry, key: bytes, version: Version) -> None:
        """Each version above the horizon, intents included, is in the index of changes."""
        if version.version > self._horizon:
            self._changes += 1
            if not self._view.has(CHANGES, key2(table.table_id, version.version) + key):
                self._report(18, _named(table, key), f"has version {version.version}, which its changes lack")
                self._changes -= 1

    def _check_changes(self, table: TableEntry) -> None:
        """The index of changes has no further entries."""
        if self._horizon > self._view.superblock.last_timestamp:
            self._report(
                18, f"table {table.name}", f"keeps changes from version {self._horizon} on, never issued"
            )
        start = key2(table.table_id, self._horizon + 1)
        kept = sum(1 for _ in self._view.keys(CHANGES, key1(table.table_id), start))
        if kept != self._changes:
            why = f"has {kept} changes kept, of which {self._changes} have a version"
            self._report(18, f"table {table.name}", why)

    def _check_committed(self, table: TableEntry, key: bytes, version: Version) -> None:
        record = self._record(version.txn)
        label = _named(table, key)
        if version.version > self._view.superblock.last_timestamp:
            self._report(16, label, f"version {version.version} was never issued")
        if record is not None and (record.state_code != COMMITTED or record.timestamp != version.version):
            self._report(14, label, f"version {version.version} is not one that {record.id} committed")

    def _check_intent(self, table: TableEntry, key: bytes, intent: Version) -> None:
        record = self._record(intent.txn)
        if record is None:
            self._report(18, _named(table, key), f"has an intent of transaction {TxnID(intent.txn)}, unknown")
        elif record.timestamp != intent.version:
            self._report(18, _named(table, key), f"has an intent that is not of {record.id}'s timestamp")

    def _check_keys(self, purging: set[int]) -> None:
        """Intents are found both by key and by transaction."""
        for stored in self._view.keys(TXN_KEYS):
            if stored in self._intents:
                self._intents.discard(stored)
            elif U64.unpack(stored[8:16])[0] not in purging:
                txn = TxnID(U64.unpack(stored[:8])[0])
                self._report(18, f"transaction {txn}", f"has key {stored[16:]!r} without an intent")
        for stored in self._intents:
            txn = TxnID(U64.unpack(stored[:8])[0])
            self._report(18, f"transaction {txn}", f"has an intent on {stored[16:]!r}, found one way only")

    def _check_parts(self) -> None:
        """An open transaction counts as many keys as it has intents; a decided transaction may have fewer intents."""
        counts: dict[bytes, int] = {}
        for stored in self._view.keys(TXN_KEYS):
            counts[stored[:16]] = counts.get(stored[:16], 0) + 1
        for stored, payload in self._view.scan(TXN_PARTS):
            if stored[8] != PART_TABLE:
                continue
            txn, table_id = U64.unpack(stored[:8])[0], stored[9:17]
            count, record = unpack(payload, 1)[0], self._record(txn)
            recounted = counts.pop(stored[:8] + table_id, 0)
            is_open = record is not None and record.state_code == OPEN
            if recounted > count or (is_open and recounted != count):
                self._report(
                    23, f"transaction {TxnID(txn)}", f"has {count} keys in a table, recounted {recounted}"
                )
        for stored in counts:
            part = part_key(U64.unpack(stored[:8])[0], PART_TABLE, U64.unpack(stored[8:])[0])
            self._report(6, f"transaction {TxnID(U64.unpack(stored[:8])[0])}", f"lacks part {part.hex()}")


def _named(table: TableEntry, key: bytes) -> str:
    return f"key {key!r} of table {table.name}"


def check_tables(view: ReadView, report: Report) -> None:
    """Rows, versions, intents, counters and parts of all tables agree with each other and with transactions."""
    _Tables(view, report).run()

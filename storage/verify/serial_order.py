"""Check that committed table writes are serializable in the order of timestamps: invariant 12.

Reads leave no trace on disk, so cycles over reads cannot be found here; tests judge whole histories. Writes do: each
timestamp has one writer, versions are decided in their order, and conflicts are decided by the rules.
"""

from __future__ import annotations

from itertools import pairwise

from storage.disk.codec import key1, unpack_first
from storage.disk.schema import CONFLICTS, ROWS, TXNS, VERSIONS
from storage.disk.view import ReadView
from storage.errors import CorruptStore
from storage.table import catalogue as tables, conflict as conflicts, row as rows, state
from storage.table.catalogue import TableEntry
from storage.table.visibility import ABORTED, COMMITTED, StoredRow, Version
from storage.txn import record as records
from storage.txn.options import TransactionIsolation
from storage.txn.record import TransactionRecord
from storage.values.named_tuple import NamedTuple
from storage.values.txn_id import TxnID
from storage.verify.problem import Report


class _Conflict(NamedTuple):
    """A recorded conflict; versions are the timestamps of the transactions."""

    kind: str
    winner: int
    winner_version: int
    table: str
    loser: int
    loser_version: int


class _Order:
    """The check of all tables in one view."""

    def __init__(self, view: ReadView, report: Report) -> None:
        self._view = view
        self._report = report
        self._records: dict[int, TransactionRecord | None] = {}
        self._writers: dict[int, int] = {}
        self._versions: dict[int, int] = {}

    def run(self) -> None:
        for table in tables.every(self._view):
            counters = state.find(self._view, table.table_id)
            has_older = counters is None or counters.versions > 0
            for stored, payload in self._view.scan(ROWS, key1(table.table_id)):
                try:
                    row = rows.decode(stored, payload)
                except CorruptStore:
                    continue  # an intent below the newest version: tables.py reports it
                self._check_row(table, stored[8:], row, has_older)
        for key in self._view.keys(TXNS):
            self._check_transaction(records.get(self._view, int.from_bytes(key, "big")))
        for _, payload in self._view.scan(CONFLICTS):
            kind, winner, winner_version, table_name, _, loser, loser_version = unpack_first(payload, 8)[1:]
            self._check_conflict(_Conflict(kind, winner, winner_version, table_name, loser, loser_version))
        superblock = self._view.superblock
        if superblock.read_watermark > superblock.last_timestamp:
            self._report(12, "store", f"the watermark of reads {superblock.read_watermark} was never issued")

    def _record(self, txn: int) -> TransactionRecord | None:
        if txn not in self._records:
            self._records[txn] = records.find(self._view, txn)
        return self._records[txn]

    # Versions

    def _check_row(self, table: TableEntry, key: bytes, row: StoredRow, has_older: bool) -> None:
        chain = [] if row.committed is None else [row.committed]
        if row.intent is not None:
            self._check_writer(table, key, row.intent)
            record = self._record(row.intent.txn)
            if record is not None and record.state_code == COMMITTED:
                chain.insert(0, row.intent)
        if has_older:
            superseded = self._view.scan(VERSIONS, rows.old_prefix(table.table_id, key))
            chain += [rows.decode_old(stored, payload) for stored, payload in superseded]
        for version in chain:
            self._check_writer(table, key, version)
        for younger, older in pairwise(chain):
            self._check_decided(table, key, older, younger)

    def _check_writer(self, table: TableEntry, key: bytes, version: Version) -> None:
        """A timestamp belongs to one transaction in all tables, even after the transaction's record is gone."""
        writer = self._writers.setdefault(version.version, version.txn)
        first_version = self._versions.setdefault(version.txn, version.version)
        label = f"key {key!r} of table {table.name}"
        if writer != version.txn:
            both = f"{TxnID(writer)} and {TxnID(version.txn)}"
            self._report(12, label, f"version {version.version} is of two transactions, {both}")
        elif first_version != version.version:
            both = f"{first_version} and {version.version}"
            self._report(12, label, f"transaction {TxnID(version.txn)} wrote two versions, {both}")

    def _check_decided(self, table: TableEntry, key: bytes, older: Version, younger: Version) -> None:
        """The writer of the older version committed before the writer of the younger: no update is lost."""
        first, second = self._record(older.txn), self._record(younger.txn)
        if first is None or second is None or first is second:
            return
        if first.ended_timestamp is None or second.ended_timestamp is None:
            return
        if first.ended_timestamp >= second.ended_timestamp:
            self._report(
                12,
                f"key {key!r} of table {table.name}",
                f"version {older.version} of {first.id} was committed after version {younger.version} of {second.id}",
            )

    # Transactions and conflicts

    def _check_transaction(self, record: TransactionRecord) -> None:
        label = f"transaction {record.id}"
        if record.ended_timestamp is not None and record.ended_timestamp <= record.timestamp:
            self._report(12, label, "was decided before it began")
        if record.state_code != COMMITTED:
            return
        if record.uses_tables and record.consumed > record.timestamp:
            self._report(
                12, label, "used tables, consumed messages newer than its timestamp, and is COMMITTED"
            )
        is_reader = record.isolation == TransactionIsolation.READ_COMMITTED.value
        if is_reader and (record.written or record.txn_id in self._versions):
            self._report(12, label, "is read-committed, and wrote a table")

    def _check_conflict(self, conflict: _Conflict) -> None:
        """The loser is the transaction that the rules name, and both transactions have the recorded timestamps."""
        kind, winner = conflict.kind, conflict.winner
        over = f" over table {conflict.table}" if conflict.table else ""
        label = f"conflict of transaction {TxnID(conflict.loser)}{over}"
        for txn, version in ((winner, conflict.winner_version), (conflict.loser, conflict.loser_version)):
            record = self._record(txn) if txn and version else None
            if record is not None and record.timestamp != version:
                message = f"names {record.id} with timestamp {version}; it has {record.timestamp}"
                self._report(12, label, message)
        is_older = 0 < conflict.winner_version <= conflict.loser_version
        if kind in (conflicts.READ, conflicts.VERSION) and is_older:
            self._report(12, label, f"was lost to {TxnID(winner)}, which is older")
        record = self._record(winner) if winner else None
        if kind == conflicts.VERSION and record is not None and record.state_code == ABORTED:
            self._report(12, label, f"was lost to a version of {record.id}, which is aborted")


def check_order(view: ReadView, report: Report) -> None:
    """Versions, decisions, conflicts and the watermark agree with one order of transactions."""
    _Order(view, report).run()

"""Reports about tables: lists, counts, versions, write intents and their holders."""

from __future__ import annotations

from itertools import islice, takewhile

from storage.disk.codec import U64, corrupt, key1
from storage.disk.connection import Connection
from storage.disk.schema import ROWS, TXN_KEYS, VERSIONS
from storage.disk.view import ReadView
from storage.json_form import Flat
from storage.limits import SPLIT_KEYS, TABLE_HOLDERS_MAX
from storage.process.identity import ProcessIdentity
from storage.process.locks import Locks
from storage.table import catalogue as tables, intent as intents_of, row as rows, state as table_states
from storage.table.catalogue import TableEntry, check_exists
from storage.table.key_range import KeyRange
from storage.table.state import TableState
from storage.table.visibility import StoredRow, Version
from storage.txn import record as records
from storage.txn.owner_state import users_of
from storage.txn.record import TransactionRecord
from storage.values.named_tuple import NamedTuple
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState

_NS_PER_MS = 1_000_000


class TableRow(NamedTuple):
    """Counts of a table."""

    as_of_at_ms: int
    table: str
    table_id: int
    created_at_ms: int
    keys: int
    rows: int
    versions: int
    intents: int
    retention_ms: int


class OwnerFacts(NamedTuple):
    """The priority, processes and age of a transaction that holds keys."""

    priority: str
    owner: ProcessIdentity
    owner_state: str
    last_user: ProcessIdentity
    last_user_state: str
    age_ms: int


class TableHolder(NamedTuple):
    """An open transaction with intents in a table."""

    txn_id: TxnID
    intents: int
    facts: Flat[OwnerFacts]


class TableStats(NamedTuple):
    """Counts of a table, and the open transactions that hold keys of it, the oldest first."""

    counts: Flat[TableRow]
    held_intents: int
    ongoing_txn_count: int
    holders: list[TableHolder]


class VersionRow(NamedTuple):
    """A version of a row: committed, or the intent of a transaction; a deletion has no value."""

    version_ns: int
    version_at_ms: int
    txn_id: TxnID
    state: str
    deleted: bool
    value: bytes | None
    intent: bool


class IntentOwner(NamedTuple):
    """The transaction of an intent."""

    version_ns: int
    txn_id: TxnID
    state: TransactionState
    facts: Flat[OwnerFacts]


class IntentRow(NamedTuple):
    """A write intent."""

    table: str
    key: bytes
    deleted: bool
    owner: Flat[IntentOwner]


def list_tables(connection: Connection) -> list[TableRow]:
    """Every table, by name."""
    with connection.view() as view:
        return [_counts(view, table) for table in tables.every(view)]


def table_stats(connection: Connection, table: TableEntry) -> TableStats:
    """One table.

    Raises:
        TableNotFound: the table was deleted.
    """
    with connection.view() as view:
        check_exists(view, table)
        held = _held(view, table.table_id)
        locks = connection.environment.locks
        return TableStats(
            _counts(view, table), sum(count for _, count in held), len(held),
            [
                TableHolder(record.id, count, _owner_facts(view, locks, record))
                for record, count in held[:TABLE_HOLDERS_MAX]
            ],
        )  # fmt: skip


def _held(view: ReadView, table_id: int) -> list[tuple[TransactionRecord, int]]:
    """The open transactions with intents in a table, and the counts from their parts: no row is read."""
    counts = ((txn, intents_of.count_of(view, txn, table_id)) for txn in tables.holders(view, table_id))
    held = [(records.get(view, txn), count) for txn, count in counts if count]
    return sorted(held, key=lambda holder: holder[0].timestamp)


def _owner_facts(view: ReadView, locks: Locks, record: TransactionRecord) -> OwnerFacts:
    age_ms = record.age_ms(view.clock.wall_ms())
    return OwnerFacts(record.priority, *users_of(view, locks, record), age_ms)


def _counts(view: ReadView, table: TableEntry) -> TableRow:
    table_state = table_states.find(view, table.table_id) or TableState()
    return TableRow(
        view.clock.wall_ms(), table.name, table.table_id, table.created_ms,
        table_state.keys, table_state.rows, table_state.versions, table_state.intents,
        view.superblock.table_retention_ms,
    )  # fmt: skip


def split(connection: Connection, table: TableEntry, parts: int, key_range: KeyRange) -> list[bytes]:
    """Keys that cut a range into parts of about the length that so many parts of the table have.

    Raises:
        TableNotFound
    """
    prefix, cuts, walked = key1(table.table_id), list[bytes](), 0
    start, step = prefix + key_range.start, -(-table_stats(connection, table).counts.rows // parts)
    end = None if key_range.end is None else prefix + key_range.end
    while step and len(cuts) < parts - 1:
        with connection.view() as view:
            check_exists(view, table)
            keys = islice(view.keys(ROWS, prefix, start), SPLIT_KEYS)
            page = list(keys if end is None else takewhile(lambda key: key < end, keys))
        if not page:
            break
        cuts += [
            key[len(prefix) :] for number, key in enumerate(page, walked) if number and not number % step
        ]
        walked, start = walked + len(page), page[-1] + b"\0"
    return cuts[: parts - 1]


def list_versions(connection: Connection, table: TableEntry, key: bytes) -> list[VersionRow]:
    """All versions of a key, the newest first."""
    with connection.view() as view:
        check_exists(view, table)
        stored = key1(table.table_id) + key
        payload = view.get(ROWS, stored)
        row = StoredRow(None, None) if payload is None else rows.decode(stored, payload)
        versions = []
        if row.intent is not None:
            versions.append(_version(row.intent, records.state_of(view, row.intent.txn).value, True))
        if row.committed is not None:
            versions.append(_version(row.committed, "COMMITTED", False))
        for old, data in view.scan(VERSIONS, rows.old_prefix(table.table_id, key)):
            versions.append(_version(rows.decode_old(old, data), "COMMITTED", False))
        return versions


def _version(version: Version, state: str, is_intent: bool) -> VersionRow:
    return VersionRow(
        version.version, version.version // _NS_PER_MS, TxnID(version.txn), state, version.value is None,
        version.value, is_intent,
    )  # fmt: skip


def list_intents(
    connection: Connection, table: str | None = None, limit: int | None = None
) -> list[IntentRow]:
    """Write intents that are not finalised, by transaction."""
    with connection.view() as view:
        names = {number: name for number, name in table_names(view).items() if table in (None, name)}
        return _intents(view, connection.environment.locks, names, limit)


def table_intents(connection: Connection, table: TableEntry, limit: int | None = None) -> list[IntentRow]:
    """Write intents of one table that are not finalised, by transaction.

    Raises:
        TableNotFound: the table was deleted.
    """
    with connection.view() as view:
        check_exists(view, table)
        return _intents(view, connection.environment.locks, {table.table_id: table.name}, limit)


def _intents(view: ReadView, locks: Locks, names: dict[int, str], limit: int | None) -> list[IntentRow]:
    """Write intents of tables, given by id with their names."""
    intents: list[IntentRow] = []
    owners: dict[int, IntentOwner] = {}
    for stored in view.keys(TXN_KEYS):
        if limit is not None and len(intents) >= limit:
            break
        txn, table_id = U64.unpack(stored[:8])[0], U64.unpack(stored[8:16])[0]
        if table_id not in names:
            continue
        if txn not in owners:
            record = records.get(view, txn)
            facts = _owner_facts(view, locks, record)
            owners[txn] = IntentOwner(record.timestamp, record.id, record.state, facts)
        payload = view.get(ROWS, stored[8:])
        intent = rows.decode(stored[8:], payload).intent if payload is not None else None
        if intent is None:
            raise corrupt(ROWS, stored[8:], f"it has no intent of transaction {TxnID(txn)}, which names it")
        intents.append(IntentRow(names[table_id], stored[16:], intent.value is None, owners[txn]))
    return intents


def table_names(view: ReadView) -> dict[int, str]:
    """Names of all tables by id."""
    return {table.table_id: table.name for table in tables.every(view)}

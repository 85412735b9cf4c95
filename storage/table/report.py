"""Tables for people: lists, counts, versions, who holds which keys."""

from __future__ import annotations

from itertools import islice
from typing import Any

from storage.disk.codec import U64, key1
from storage.disk.connection import Connection
from storage.disk.schema import ROWS, TXN_KEYS, VERSIONS
from storage.disk.view import ReadView
from storage.limits import SPLIT_KEYS, TABLE_HOLDERS_MAX
from storage.process.locks import LockFile
from storage.table import catalogue as tables, intent as intents_of, row as rows, state as table_head
from storage.table.catalogue import TableEntry, check_exists
from storage.table.state import TableState
from storage.table.visibility import Row, Version
from storage.txn import record as records
from storage.txn.liveness import owner_state
from storage.txn.record import TransactionRecord
from storage.values.timestamps import both
from storage.values.txn_id import TxnID

_NS_PER_MS = 1_000_000


def table_rows(connection: Connection) -> list[dict[str, Any]]:
    """Every table, by name."""
    with connection.view() as view:
        return [_stats(view, each) for each in tables.every(view)]


def stats(connection: Connection, table: TableEntry) -> dict[str, Any]:
    """Counts of one table, and the open transactions that hold keys of it, the oldest first.

    Raises:
        TableNotFound: it was deleted.
    """
    with connection.view() as view:
        check_exists(view, table)
        held = _held(view, table.table_id)
        locks = connection.environment.lock_file
        return {
            **_stats(view, table), "heldIntents": sum(count for _, count in held), "ongoingTxnCount": len(held),
            "holders": [_holder(view, locks, each, count) for each, count in held[:TABLE_HOLDERS_MAX]],
        }  # fmt: skip


def _held(view: ReadView, table_id: int) -> list[tuple[TransactionRecord, int]]:
    """The open transactions with intents in a table, and how many: their parts count them, no row is looked at."""
    counts = ((txn, intents_of.count_of(view, txn, table_id)) for txn in tables.holders(view, table_id))
    held = [(records.get(view, txn), count) for txn, count in counts if count]
    return sorted(held, key=lambda each: each[0].timestamp)


def _holder(view: ReadView, locks: LockFile, record: TransactionRecord, count: int) -> dict[str, Any]:
    return {"txnId": str(record.id), "intents": count, **_whose(view, locks, record)}


def _whose(view: ReadView, locks: LockFile, record: TransactionRecord) -> dict[str, Any]:
    """What tells how much a holder of keys stands in the way, and whom to ask."""
    return {
        "priority": record.priority, "owner": str(record.owner), "ownerState": owner_state(view, locks, record),
        "ageMs": max(0, view.clock.wall_ms() - record.begun_ms),
    }  # fmt: skip


def _stats(view: ReadView, table: TableEntry) -> dict[str, Any]:
    head = table_head.find(view, table.table_id) or TableState()
    return {
        **both("asOf", view.clock.wall_ms()), "table": table.name, "tableId": table.table_id,
        **both("created", table.created_ms), "keys": head.keys, "rows": head.rows, "versions": head.versions,
        "intents": head.intents, "retentionMs": view.superblock.table_retention_ms,
    }  # fmt: skip


def split(connection: Connection, table: TableEntry, parts: int) -> list[bytes]:
    """Keys that cut a table into at most so many parts of about equal length.

    Raises:
        TableNotFound
    """
    prefix, cuts, walked = key1(table.table_id), list[bytes](), 0
    start, step = prefix, -(-stats(connection, table)["rows"] // parts)
    while step and len(cuts) < parts - 1:
        with connection.view() as view:
            page = list(islice(view.keys(ROWS, prefix, start), SPLIT_KEYS))
        if not page:
            break
        cuts += [
            key[len(prefix) :] for number, key in enumerate(page, walked) if number and not number % step
        ]
        walked, start = walked + len(page), page[-1] + b"\0"
    return cuts[: parts - 1]


def versions(connection: Connection, table: TableEntry, key: bytes) -> list[dict[str, Any]]:
    """All that is kept under a key, the newest first."""
    with connection.view() as view:
        check_exists(view, table)
        stored = key1(table.table_id) + key
        payload = view.get(ROWS, stored)
        row = Row(None, None) if payload is None else rows.decode(stored, payload)
        found = []
        if row.intent is not None:
            found.append(_version(row.intent, records.state_of(view, row.intent.txn).value, True))
        if row.committed is not None:
            found.append(_version(row.committed, "COMMITTED", False))
        for old, data in view.scan(VERSIONS, rows.old_prefix(table.table_id, key)):
            found.append(_version(rows.decode_old(old, data), "COMMITTED", False))
        return found


def _version(version: Version, state: str, is_intent: bool) -> dict[str, Any]:
    return {
        "version": str(version.version), **both("version", version.version // _NS_PER_MS),
        "txnId": str(TxnID(version.txn)), "state": state, "deleted": version.value is None,
        "value": version.value, "intent": is_intent,
    }  # fmt: skip


def intents(
    connection: Connection, table: str | None = None, limit: int | None = None
) -> list[dict[str, Any]]:
    """Write intents that are not finalised, by transaction: who holds which keys."""
    locks = connection.environment.lock_file
    found: list[dict[str, Any]] = []
    with connection.view() as view:
        names = {each.table_id: each.name for each in tables.every(view)}
        owners: dict[int, dict[str, Any]] = {}
        for stored in view.keys(TXN_KEYS):
            if limit is not None and len(found) >= limit:
                break
            txn, table_id = U64.unpack(stored[:8])[0], U64.unpack(stored[8:16])[0]
            name = names.get(table_id)
            if name is None or table not in (None, name):
                continue
            if txn not in owners:
                record = records.get(view, txn)
                owners[txn] = {
                    "version": str(record.timestamp), "txnId": str(record.id), "state": record.state.value,
                    **_whose(view, locks, record),
                }  # fmt: skip
            payload = view.get(ROWS, stored[8:])
            assert payload is not None, "an intent is found both ways"
            intent = rows.decode(stored[8:], payload).intent
            assert intent is not None, "an intent is found both ways"
            row = {"table": name, "key": stored[16:], "deleted": intent.value is None}
            found.append({**row, **owners[txn]})
    return found


def table_names(view: ReadView) -> dict[int, str]:
    """Names of all tables by id."""
    return {each.table_id: each.name for each in tables.every(view)}

"""The catalogue of tables: create, find, list, delete.

A table's id is new with every creation. Deleting removes the name at once; rows and versions are purged afterwards in
bounded steps, which any process may finish.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count as count_from

from storage import faults
from storage.actions import Action, Hint
from storage.disk.codec import U64, corrupt, key1, key2, missing, pack, unpack_first
from storage.disk.schema import (
    CHANGES,
    PART_TABLE,
    ROWS,
    TABLE_PURGES,
    TABLES,
    TXN_DEADLINES,
    TXN_KEYS,
    TXN_PARTS,
    VERSIONS,
    Database,
)
from storage.disk.view import ReadView, WriteBatch
from storage.errors import AlreadyExists, TableNotFound
from storage.limits import GC_STEP_RECORDS, WRITE_BYTES_TARGET
from storage.table import other_lives, row as rows, state as states
from storage.values.names import check_name
from storage.values.txn_id import TxnID

_unborn = count_from(1)


class TableEntry:
    """A table in the catalogue; with a negative number one that the first write creates.

    Attributes:
        prefix: of the keys of the table's records; not of a table that is not there yet.
        state: database and key of the table's state, which exists as long as the table does.
    """

    __slots__ = ("created_ms", "name", "prefix", "properties", "state", "table_id")

    def __init__(self, name: str, table_id: int, created_ms: int, properties: dict[str, str]) -> None:
        self.name = name
        self.table_id = table_id
        self.created_ms = created_ms
        self.properties = properties
        self.prefix = key1(table_id) if table_id > 0 else b""
        self.state = states.record_of(table_id) if table_id > 0 else None


def find(view: ReadView, name: str) -> TableEntry | None:
    """Find the table of a name, or None.

    Raises:
        InvalidName
    """
    payload = view.get(TABLES, check_name("table name", name).encode("ascii"))
    return None if payload is None else TableEntry(name, *unpack_first(payload, 3))


def get(view: ReadView, name: str) -> TableEntry:
    """Find the table of a name.

    Raises:
        TableNotFound: with near names if there are any.
        InvalidName
    """
    table = find(view, name)
    if table is None:
        raise _not_found(view, name)
    return table


def check_exists(view: ReadView, table: TableEntry) -> None:
    """Raises:
    TableNotFound: the table was deleted since the handle was made.
    CorruptStore: the table exists, and its state is missing.
    """
    if table.state is None or not view.holds(*table.state):
        if table.state is not None and any(entry.table_id == table.table_id for entry in every(view)):
            raise missing(*table.state)
        raise TableNotFound(f"table {table.name} was deleted", table=table.name)


def _not_found(view: ReadView, name: str) -> TableNotFound:
    from difflib import get_close_matches

    near = get_close_matches(name, [table.name for table in every(view)], 3)
    create = Hint("Create it with `{}`.", Action("store.create_table", name))
    hint = f"Did you mean {', '.join(near)}?" if near else create
    return TableNotFound(f"there is no table {name}", hint=hint, table=name)


def every(view: ReadView) -> Iterator[TableEntry]:
    """Yield all tables by name."""
    for key, payload in view.scan(TABLES):
        yield TableEntry(key.decode("ascii"), *unpack_first(payload, 3))


def create(batch: WriteBatch, name: str, properties: dict[str, str] | None = None) -> TableEntry:
    """Create an empty table.

    Raises:
        AlreadyExists, InvalidName
    """
    if find(batch, name) is not None:
        raise AlreadyExists(f"there is a table {name} already", table=name)
    batch.superblock.last_table += 1
    table = TableEntry(name, batch.superblock.last_table, batch.now_ms, properties or {})
    fields = [table.table_id, table.created_ms, table.properties]
    batch.put(TABLES, name.encode("ascii"), pack(fields))
    states.create(batch, table.table_id)
    return table


def unborn(name: str) -> TableEntry:
    """A table to be created by the first write; the number, a negative one, is of this process alone.

    Raises:
        InvalidName
    """
    return TableEntry(check_name("table name", name), -next(_unborn), 0, {})


def by_number(table_id: int) -> TableEntry:
    """A table known by its number alone, for changes of its records."""
    return TableEntry("", table_id, 0, {})


def find_or_create(batch: WriteBatch, name: str) -> TableEntry:
    """Find the table of a name, or create one, which a refusal of the batch undoes.

    Raises:
        InvalidName
    """
    table = find(batch, name)
    if table is None:
        table = create(batch, name)
        batch.undo_if_refused(partial(_take_back, batch, table))
    return table


def _take_back(batch: WriteBatch, table: TableEntry) -> None:
    """Undo the creation of a table in the batch that has created the table, and nothing in it."""
    assert table.table_id == batch.superblock.last_table, "no table was created since"
    batch.delete(TABLES, table.name.encode("ascii"))
    states.delete(batch, table.table_id)
    batch.superblock.last_table -= 1


def holders(view: ReadView, table_id: int) -> list[int]:
    """The open transactions with write intents in a table."""
    open_txns = (int.from_bytes(key[8:], "big") for key in view.keys(TXN_DEADLINES))
    return sorted(txn for txn in open_txns if _has_intents(view, txn, table_id))


def _has_intents(view: ReadView, txn: int, table_id: int) -> bool:
    return view.has(TXN_PARTS, key1(txn) + bytes((PART_TABLE,)) + key1(table_id))


def delete(batch: WriteBatch, table: TableEntry) -> None:
    """Remove name and state; `purge_step` removes the rest. No open transaction may hold intents any more."""
    for txn in holders(batch, table.table_id):
        why = f"transaction {TxnID(txn)} is found as open, and has ended"
        raise corrupt(TXN_DEADLINES, key1(txn), why)
    batch.delete(TABLES, table.name.encode("ascii"))
    states.delete(batch, table.table_id)
    other_lives.note_deleted(batch, table.name, table.created_ms)
    batch.put(TABLE_PURGES, key1(table.table_id), b"")


def purge_step(batch: WriteBatch) -> bool:
    """Remove some records of deleted tables; whether more are left to remove."""
    purge = batch.first(TABLE_PURGES, b"", b"\0")
    if purge is None:
        return False
    prefix, room = purge[0], GC_STEP_RECORDS
    table_id = U64.unpack(prefix)[0]
    purged_rows = list(_step_records(batch, ROWS, prefix, room))
    for key, payload in purged_rows:
        intent = rows.decode(key, payload).intent
        if intent is not None:
            batch.delete(TXN_KEYS, key2(intent.txn, table_id) + key[8:])
        batch.delete(ROWS, key)
    if not purged_rows:
        removed = batch.delete_prefix(CHANGES, prefix, room)
        versions = [key for key, _ in _step_records(batch, VERSIONS, prefix, room)]
        for key in versions:
            batch.delete(VERSIONS, key)
        if not versions and not removed:
            batch.delete(TABLE_PURGES, prefix)
    faults.reach("table.between_purge_steps")
    return True


def _step_records(
    view: ReadView, database: Database, prefix: bytes, limit: int
) -> Iterator[tuple[bytes, memoryview]]:
    """Yield records of a table, as many as one store transaction removes."""
    room = WRITE_BYTES_TARGET
    for count, record in enumerate(view.scan(database, prefix)):
        if count == limit or room <= 0:
            return
        room -= len(record[1])
        yield record

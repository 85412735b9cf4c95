"""A table's head: the counters that change with its records. Every one equals a recount (invariant 23)."""

from __future__ import annotations

from struct import Struct

from storage.disk.codec import key1
from storage.disk.schema import HEADS
from storage.disk.view import ReadView, WriteBatch

_HEAD = Struct(">QQQQ")
_TABLE = 1 << 63


class TableState:
    """See the module.

    Attributes:
        keys: rows whose finalised version is a value.
        rows: records, those of deleted keys and of mere intents included.
        versions: superseded versions that are kept.
        intents: write intents that are not finalised, whatever became of their transactions.
    """

    __slots__ = ("intents", "keys", "rows", "versions")

    def __init__(self, keys: int = 0, rows: int = 0, versions: int = 0, intents: int = 0) -> None:
        self.keys = keys
        self.rows = rows
        self.versions = versions
        self.intents = intents

    def fields(self) -> tuple[int, int, int, int]:
        return (self.keys, self.rows, self.versions, self.intents)


def key_of(table_id: int) -> bytes:
    """Where a table's head is among those of topics."""
    return key1(_TABLE | table_id)


def find(view: ReadView, table_id: int) -> TableState | None:
    """The head of a table, or None if it was deleted."""
    payload = view.get(HEADS, key_of(table_id))
    return None if payload is None else TableState(*_HEAD.unpack(payload))


def save(batch: WriteBatch, table_id: int, head: TableState) -> None:
    """Write the head of a table."""
    assert min(head.fields()) >= 0 and head.keys <= head.rows, "counters count what is there"
    batch.put(HEADS, key_of(table_id), _HEAD.pack(*head.fields()))

"""The state of a table: the counters that change with the table's records. Each equals a recount (invariant 23)."""

from __future__ import annotations

from struct import Struct

from storage.disk.codec import key1
from storage.disk.schema import HEADS, Database
from storage.disk.view import ReadView, WriteBatch
from storage.errors import CorruptStore

_STATE = Struct(">QQQQ")
_TABLE = 1 << 63


class TableState:
    """See the module.

    Attributes:
        keys: rows whose finalised version is a value.
        rows: records, including rows of deleted keys and of mere intents.
        versions: superseded versions that are kept.
        intents: write intents that are not finalised, whether or not their transactions have ended.
    """

    __slots__ = ("intents", "keys", "rows", "versions")

    def __init__(self, keys: int = 0, rows: int = 0, versions: int = 0, intents: int = 0) -> None:
        self.keys = keys
        self.rows = rows
        self.versions = versions
        self.intents = intents

    def fields(self) -> tuple[int, int, int, int]:
        return (self.keys, self.rows, self.versions, self.intents)

    def encode(self) -> bytes:
        fields = self.keys, self.rows, self.versions, self.intents
        if not (0 <= self.keys <= self.rows and self.versions >= 0 and self.intents >= 0):
            raise CorruptStore(f"its counters {fields} count what is not there")
        return _STATE.pack(*fields)

    @classmethod
    def decode(cls, payload: memoryview) -> TableState:
        return cls(*_STATE.unpack(payload))


def key_of(table_id: int) -> bytes:
    """The key of a table's state among the states of topics."""
    return key1(_TABLE | table_id)


def record_of(table_id: int) -> tuple[Database, bytes]:
    """Database and key of a table's state, which exists as long as the table does: the rows are purged later."""
    return HEADS, key_of(table_id)


def find(view: ReadView, table_id: int) -> TableState | None:
    """Find the state of a table, None if the table was deleted. A batch shares one object and writes its changes."""
    return view.open(HEADS, key1(_TABLE | table_id), TableState.decode)


def create(batch: WriteBatch, table_id: int) -> None:
    """Write the state of a new table."""
    batch.put(HEADS, key_of(table_id), TableState().encode())


def delete(batch: WriteBatch, table_id: int) -> None:
    """Remove the state of a table."""
    batch.remove(HEADS, key_of(table_id))

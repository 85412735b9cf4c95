"""Fields of tables and rows, and rows of the engine as output."""

from __future__ import annotations

from typing import NamedTuple

from storage.values.txn_id import TxnID
from txnctl.output.field import Help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.table.visibility import Row

NAME = {"table": Help("The table.", kind="id")}

CREATED = {"created_at_ms": Help("When the table was created.", heading="CREATED", rank=2)}
RETENTION = {
    "retention_ms": Help(
        "How long older versions are kept; the same for all tables of a store.",
        heading="VERSIONS KEPT",
        rank=3,
    )
}

TABLE = {
    **NAME,
    "table_id": Help("Its number: a table created again under the name has another.", heading=""),
    "keys": Help("Keys that have a value; write intents that wait to be finalised are not in it."),
    "rows": Help("Rows stored: keys with a value, deleted ones and new ones.", heading=""),
    "versions": Help("Older versions kept for reads in the past.", heading="OLD VERSIONS"),
    "intents": Help("Write intents: of open transactions, and of ended ones that wait to be finalised."),
    **CREATED,
    **RETENTION,
    "as_of_at_ms": Help("The moment of which the report speaks.", heading=""),
}
"""A table in a list."""

KEY = {
    "key": Help(
        "The key as text; absent where it is not UTF-8.",
        base64="The key where it is not UTF-8; absent elsewhere.",
    )
}
VALUE = {
    "value": Help(
        "The value as text; absent where it is not UTF-8.",
        base64="The value where it is not UTF-8; absent elsewhere.",
    )
}
VERSION_TIME = {
    "version_at_ms": Help("The version as a time: when its transaction began.", heading="WRITTEN")
}
VERSION = {
    "version_ns": Help("Its version, in nanoseconds since 1970: for --if-version and --at."),
    **VERSION_TIME,
    "txn_id": Help("The transaction that wrote it.", heading="TXN"),
}
ROW = {**KEY, **VALUE, **VERSION}
"""A row of a table as `get` and `scan` read it."""

_NS_PER_MS = 1_000_000


class ReadRow(NamedTuple):
    """A row that was read; without a transaction where the reading transaction itself wrote it."""

    key: bytes
    value: bytes
    version_ns: int
    version_at_ms: int
    txn_id: TxnID | None


class KeyName(NamedTuple):
    """A key for `-o name`: one line each, for any bytes."""

    key: bytes


def row_of(row: Row) -> ReadRow:
    """A row that was read, with the fields of `ROW`."""
    txn_id = TxnID(row.txn) if row.txn else None
    return ReadRow(row.key, row.value, row.version, version_ms(row.version), txn_id)


def name_of(key: bytes) -> KeyName:
    """The key alone."""
    return KeyName(key)


def version_ms(version_ns: int) -> int:
    """A version as a time."""
    return version_ns // _NS_PER_MS

"""Fields of tables and rows, and rows of the engine as output."""

from __future__ import annotations

from storage.json_form import bytes_field
from txnctl.output.escape import printable_bytes
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.client.table import Row as TableRow
    from txnctl.output.row import Row

NAME = Field("table", "id", "The table.")

COUNTS = (
    Field(
        "keys", "integer", "Keys that have a value; write intents that wait to be finalised are not in it."
    ),
    Field("rows", "integer", "Rows stored: keys with a value, deleted ones and new ones.", heading=""),
    Field("versions", "integer", "Older versions kept for reads in the past.", heading="OLD VERSIONS"),
    Field(
        "intents",
        "integer",
        "Write intents: of open transactions, and of ended ones that wait to be finalised.",
    ),
)

CREATED = (
    Field("createdAt", "time", "When the table was created.", heading="CREATED"),
    Field("createdMs", "timeMs", "The same as an integer.", heading=""),
)

RETENTION = Field(
    "retentionMs",
    "duration",
    "How long older versions are kept; the same for all tables of a store.",
    heading="VERSIONS KEPT",
)

AS_OF = (
    Field("asOfAt", "time", "The moment of which the report speaks.", heading="AS OF"),
    Field("asOfMs", "timeMs", "The same as an integer.", heading=""),
)

TABLE = (
    NAME,
    Field("tableId", "integer", "Its number: a table created again under the name has another.", heading=""),
    *COUNTS,
    *CREATED,
    RETENTION,
    Field("asOfAt", "time", "The moment of which the report speaks.", heading=""),
    AS_OF[1],
)
"""A table in a list."""

KEY = (
    Field("key", "text", "The key as text; absent where it is not UTF-8."),
    Field("keyBase64", "text", "The key where it is not UTF-8; absent elsewhere.", heading=""),
)

VALUE = (
    Field("value", "text", "The value as text; absent where it is not UTF-8."),
    Field("valueBase64", "text", "The value where it is not UTF-8; absent elsewhere.", heading=""),
)

VERSION = (
    Field("version", "id", "Its version, in nanoseconds since 1970: for --if-version and --at."),
    Field("versionAt", "time", "The version as a time: when its transaction began.", heading="WRITTEN"),
    Field("versionMs", "timeMs", "The same as an integer.", heading=""),
    Field("txnId", "id", "The transaction that wrote it.", heading="TXN"),
)

ROW = (*KEY, *VALUE, *VERSION)
"""A row of a table as `get` and `scan` read it."""

_NS_PER_MS = 1_000_000


def row_of(row: TableRow) -> Row:
    """A row that was read, with the fields of `ROW`."""
    from storage.values.txn_id import TxnID

    return {
        **bytes_field("key", row.key),
        **bytes_field("value", row.value),
        **version_of(row.version),
        "txnId": str(TxnID(row.txn)) if row.txn else None,
    }


def name_of(key: bytes) -> Row:
    """A key for `-o name`: one line each, for any bytes."""
    return {"key": printable_bytes(key)}


def version_of(version: int) -> Row:
    """A version as text and as a time."""
    from storage.values.timestamps import both

    return {"version": str(version), **both("version", version // _NS_PER_MS)}

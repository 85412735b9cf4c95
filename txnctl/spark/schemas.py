"""The columns of messages and of table rows, as Spark types and as Arrow types.

Spark does not tell a data source which columns a query uses. Spark hands over the schema that `.schema(...)` gave: that
schema selects columns, in any order, with `key` and `value` as binary or as string.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from storage.errors import InvalidValue

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

MESSAGE_TYPES: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "ledgerId": "bigint",
    "entryId": "bigint",
    "batchIndex": "int",
    "publishTime": "timestamp",
    "eventTime": "timestamp",
    "deliveryTime": "timestamp",
    "properties": "map<string,string>",
    "txnId": "string",
    "txnState": "string",
}
"""The columns of a message; `batchIndex` is -1 in an entry of a single message, as in Pulsar."""

ROW_TYPES: Final = {"key": "binary", "value": "binary", "timestamp": "bigint"}
"""The columns of a table row; `timestamp` is its version, in nanoseconds since 1970."""

CHANGE_TYPES: Final = {
    "kind": "string",
    "key": "binary",
    "value": "binary",
    "previousValue": "binary",
    "timestamp": "bigint",
    "txnId": "string",
}
"""The columns of a change of a table; `timestamp` is its version, as of a row."""

TABLE_COLUMNS: Final = tuple(ROW_TYPES)
_EITHER: Final = ("binary", "string")
NEVER_NULL: Final = {"topic", "ledgerId", "entryId", "batchIndex", "publishTime", "timestamp", "kind"}
"""Columns of messages, rows and changes that have a value everywhere."""


def message_columns(has_properties: bool) -> tuple[str, ...]:
    """Return the columns of a message, with or without its properties."""
    return tuple(name for name in MESSAGE_TYPES if has_properties or name != "properties")


def ddl(columns: Iterable[str]) -> str:
    """Return the schema of some columns in Spark's DDL."""
    types = MESSAGE_TYPES | ROW_TYPES | CHANGE_TYPES
    return ", ".join(f"{name} {types[name]}" for name in columns)


def chosen(text: str, known: Iterable[str]) -> str:
    """Return the schema of the columns that the option `columns` names, in Spark's DDL.

    Args:
        text: names with commas between them; `key` and `value` may be followed by `string` or `binary`.
        known: the available columns.

    Raises:
        InvalidValue: a column is unknown, is named twice, or is followed by a different word.
    """
    types = {name: (MESSAGE_TYPES | ROW_TYPES)[name] for name in known}
    columns: dict[str, str] = {}
    for part in text.split(","):
        name, kind = [*part.split(), "", ""][:2]
        if name not in types:
            raise InvalidValue(f"columns names an unknown column {name!r}", hint=_near(name, types))
        kind = kind.lower() or types[name]
        if kind != types[name] and not (name in ("key", "value") and kind in _EITHER):
            raise InvalidValue(f"column {name} is {types[name]}; columns asks for {kind}")
        if name in columns or len(part.split()) > 2:
            raise InvalidValue(
                f"columns names {part.strip()!r}", hint="Write each column once: key string, value."
            )
        columns[name] = kind
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def arrow_schema(requested: StructType, known: Mapping[str, str]) -> pa.Schema:
    """Return the Arrow schema that batches must have for Spark to accept them: exactly the requested one.

    Args:
        known: the available columns, with their types.

    Raises:
        InvalidValue: a requested column is unknown, or has another type.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    if not requested.fields:
        raise InvalidValue("the schema asks for no column", hint=f"There are {ddl(known)}.")
    for field in requested.fields:
        requested_type, known_type = field.dataType.simpleString(), known.get(field.name)
        if known_type is None:
            raise InvalidValue(
                f"the schema asks for an unknown column {field.name}",
                hint=_near(field.name, known),
            )
        if requested_type != known_type and not (
            field.name in ("key", "value", "previousValue") and requested_type in _EITHER
        ):
            raise InvalidValue(f"column {field.name} is {known_type}; the schema asks for {requested_type}")
        if not field.nullable and (field.name not in NEVER_NULL):
            raise InvalidValue(f"column {field.name} may be null; the schema asks for NOT NULL")
    return to_arrow_schema(requested, timezone="UTC")


def arrow_columns(types: Mapping[str, str]) -> pa.Schema:
    """Return the Arrow schema of `MESSAGE_TYPES` or `ROW_TYPES`; PySpark is not needed."""
    import pyarrow as pa

    kinds = {
        "binary": pa.binary(),
        "string": pa.string(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
    }
    return pa.schema([(name, kinds[kind]) for name, kind in types.items()])


def _near(name: str, known: Mapping[str, str]) -> str:
    from difflib import get_close_matches

    by_lower_case = {column.lower(): column for column in known}
    near = get_close_matches(name.lower(), list(by_lower_case), 1)
    listed = f"The columns are {', '.join(known)}."
    return f"Did you mean {by_lower_case[near[0]]}? {listed}" if near else listed

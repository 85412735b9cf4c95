"""The columns of messages and of table rows, in Spark's words and in Arrow's.

Spark does not tell a data source which columns a query uses. It hands over the schema that `.schema(...)` gave, so that
is how to read only some columns: any of them, in any order; `key` and `value` as binary or as string.
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
    "properties": "map<string,string>",
    "txnId": "string",
    "txnState": "string",
}
"""A message; `batchIndex` is -1 where its entry holds no other, as in Pulsar."""

ROW_TYPES: Final = {"key": "binary", "value": "binary", "timestamp": "bigint"}
"""A row of a table; `timestamp` is its version, in nanoseconds since 1970."""

TABLE_COLUMNS: Final = tuple(ROW_TYPES)
_EITHER: Final = ("binary", "string")
_NEVER_NULL: Final = {"topic", "ledgerId", "entryId", "batchIndex", "publishTime", "timestamp"}


def message_columns(has_properties: bool) -> tuple[str, ...]:
    """The columns of a message, with or without its properties."""
    return tuple(name for name in MESSAGE_TYPES if has_properties or name != "properties")


def ddl(columns: Iterable[str]) -> str:
    """The schema of these columns as Spark writes it."""
    types = MESSAGE_TYPES | ROW_TYPES
    return ", ".join(f"{name} {types[name]}" for name in columns)


def arrow_schema(asked: StructType, known: Mapping[str, str]) -> pa.Schema:
    """The Arrow schema that batches must have for Spark to take them: exactly what was asked for.

    Args:
        known: the columns that there are, with their types.

    Raises:
        InvalidValue: a column is not among them, or has another type.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    if not asked.fields:
        raise InvalidValue("the schema asks for no column", hint=f"There are {ddl(known)}.")
    for field in asked.fields:
        wanted, has = field.dataType.simpleString(), known.get(field.name)
        if has is None:
            raise InvalidValue(
                f"the schema asks for a column {field.name}, which there is not",
                hint=_near(field.name, known),
            )
        if wanted != has and not (field.name in ("key", "value") and wanted in _EITHER):
            raise InvalidValue(f"column {field.name} is {has}; the schema asks for {wanted}")
        if not field.nullable and (field.name not in _NEVER_NULL):
            raise InvalidValue(f"column {field.name} may be null; the schema asks for NOT NULL")
    return to_arrow_schema(asked, timezone="UTC")


def arrow_columns(types: Mapping[str, str]) -> pa.Schema:
    """Arrow's schema of these columns, given as `MESSAGE_TYPES` and `ROW_TYPES` give them; PySpark is not needed."""
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

    low = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), list(low), 1)
    return f"Did you mean {low[near[0]]}?" if near else f"There are {ddl(known)}."

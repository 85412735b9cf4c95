"""Schemas as Spark hands them over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from txnctl.spark import schemas

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES: dict[str, DataType] = {
    "binary": BinaryType(),
    "string": StringType(),
    "bigint": LongType(),
    "int": IntegerType(),
    "timestamp": TimestampType(),
    "map<string,string>": MapType(StringType(), StringType()),
}


def struct(*columns: str) -> StructType:
    """A schema of these columns, each a name, or a name and another type: `value string`."""
    known = schemas.MESSAGE_TYPES | schemas.ROW_TYPES | schemas.CHANGE_TYPES
    pairs = (each.split(" ") if " " in each else (each, known[each]) for each in columns)
    return StructType([StructField(name, _TYPES[kind]) for name, kind in pairs])


def of_messages(*columns: str) -> pa.Schema:
    """The Arrow schema of columns of messages; of all of them where none is named."""
    return schemas.arrow_schema(struct(*(columns or schemas.MESSAGE_TYPES)), schemas.MESSAGE_TYPES)


def of_rows(*columns: str) -> pa.Schema:
    """The Arrow schema of columns of table rows."""
    return schemas.arrow_schema(struct(*(columns or schemas.ROW_TYPES)), schemas.ROW_TYPES)

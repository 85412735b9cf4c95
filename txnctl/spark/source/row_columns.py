"""Rows of a table as an Arrow batch of the requested columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from txnctl.spark.bytes_column import bytes_column

if TYPE_CHECKING:
    from storage import Row


def record_batch(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Build a batch of exactly this schema.

    Raises:
        InvalidValue: the schema requests a key or value as text, and the bytes are not UTF-8.
    """
    return pa.RecordBatch.from_arrays([_column(rows, field) for field in schema], schema=schema)


def _column(rows: Sequence[Row], field: pa.Field) -> pa.Array:
    if field.name == "timestamp":
        return pa.array([row.version for row in rows], field.type)
    values = [row.value for row in rows] if field.name == "value" else [row.key for row in rows]
    return bytes_column(values, field, f"keys {rows[0].key!r} to {rows[-1].key!r}")

"""Changes of a table as an Arrow batch of the requested columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from txnctl.spark.bytes_column import bytes_column

if TYPE_CHECKING:
    from storage.table.changes import Change

_BYTES: Final[dict[str, Callable[[Change], bytes | None]]] = {
    "key": lambda change: change.key,
    "value": lambda change: change.value,
    "previousValue": lambda change: change.previous_value,
}
_OTHERS: Final[dict[str, Callable[[Change], object]]] = {
    "kind": lambda change: change.kind,
    "timestamp": lambda change: change.version_ns,
    "txnId": lambda change: str(change.txn_id),
}


def record_batch(changes: Sequence[Change], schema: pa.Schema) -> pa.RecordBatch:
    """Build a batch of exactly this schema.

    Raises:
        InvalidValue: the schema requests bytes as text, and the bytes are not UTF-8.
    """
    return pa.RecordBatch.from_arrays([_column(changes, field) for field in schema], schema=schema)


def _column(changes: Sequence[Change], field: pa.Field) -> pa.Array:
    read_bytes = _BYTES.get(field.name)
    if read_bytes is None:
        return pa.array([_OTHERS[field.name](change) for change in changes], field.type)
    place = f"versions {changes[0].version_ns} to {changes[-1].version_ns}"
    return bytes_column([read_bytes(change) for change in changes], field, place)

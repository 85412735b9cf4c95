"""The columns of an upsert, and the conversion of its rows: a deletion is a null value, the order an event time.

No lmdb: tasks import this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from storage.errors import InvalidValue

if TYPE_CHECKING:
    import pyarrow as pa

    from txnctl.spark.upsert_options import UpsertOptions

VALUE, KEY, DELETE, ORDER = "value", "key", "deleteColumn", "orderColumn"
_TEXT: Final = ("binary", "string")
_TYPES: Final = {
    KEY: _TEXT,
    VALUE: _TEXT,
    DELETE: ("boolean",),
    ORDER: ("tinyint", "smallint", "int", "bigint", "timestamp", "date"),
}


def upsert_indexes(fields: Iterable[tuple[str, str]], upsert: UpsertOptions) -> dict[str, int]:
    """Check names and types of the columns, and return the index of each by its part in the upsert.

    Raises:
        InvalidValue: a column is missing, unknown, duplicate, or of a wrong type.
    """
    parts = {upsert.key: KEY, "value": VALUE}
    parts |= {name: part for name, part in ((upsert.delete, DELETE), (upsert.order, ORDER)) if name}
    index_of: dict[str, int] = {}
    for index, (name, type_) in enumerate(fields):
        part = parts.get(name)
        if part is None:
            raise InvalidValue(
                f"this upsert takes no column {name}",
                hint=f"Select the columns to store: {', '.join(parts)}; or name it by key, deleteColumn, orderColumn.",
                column=name,
            )
        if part in index_of:
            raise InvalidValue(
                f"column {name} is selected twice", hint="Select the column once.", column=name
            )
        if type_ not in _TYPES[part]:
            raise InvalidValue(
                f"column {name} is {type_}; an upsert takes {' or '.join(_TYPES[part])} there",
                hint=f'Cast the column: col("{name}").cast("{_TYPES[part][-1]}").',
                column=name,
            )
        index_of[part] = index
    for name, part in parts.items():
        if part not in index_of:
            raise InvalidValue(
                f"there is no column {name}, which the upsert needs",
                hint="Select it, or name another column by key, deleteColumn or orderColumn.",
                column=name,
            )
    return index_of


def deleted_or_kept(
    values: list[bytes | None], batch: pa.RecordBatch, index_of: dict[str, int], row_name: str, before: int
) -> list[bytes | None]:
    """The values, null where the row deletes its key.

    Args:
        row_name: names the partition in errors.
        before: rows of the partition before this batch.

    Raises:
        InvalidValue: a row has neither a value nor the mark of a deletion.
    """
    index = index_of.get(DELETE)
    if index is None:
        return values
    flags: list[bool | None] = batch.column(index).to_pylist()
    for row, (value, is_deleted) in enumerate(zip(values, flags, strict=True), before + 1):
        if value is None and not is_deleted:
            raise InvalidValue(
                f"row {row:,} of {row_name} cannot be stored: its value is null, and it does not delete its key",
                hint="Set the column of deleteColumn in rows that delete; an empty value is a value.",
                row=row,
            )
    return [None if is_deleted else value for value, is_deleted in zip(values, flags, strict=True)]


def orders(
    batch: pa.RecordBatch, index_of: dict[str, int], row_name: str, before: int
) -> list[int | None] | None:
    """The order of each row as a number; None without a column of it.

    Raises:
        InvalidValue: the order of a row is null, or negative.
    """
    import pyarrow as pa

    index = index_of.get(ORDER)
    if index is None:
        return None
    column: Any = batch.column(index)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz=column.type.tz))
    elif pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    numbers: list[int | None] = column.cast(pa.int64()).to_pylist()
    for row, number in enumerate(numbers, before + 1):
        if number is None or number < 0:
            shown = "null" if number is None else "below 0"
            raise InvalidValue(
                f"row {row:,} of {row_name} cannot be stored: its order is {shown}",
                hint="orderColumn is a number of 0 or more, or a time since 1970, in every row.",
                row=row,
            )
    return numbers

"""Entries of a topic as Arrow batches of the requested columns.

An entry stores its messages in columns, so whole columns are copied and no message object is made. Values common to all
messages of an entry are repeated by arithmetic on arrays.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

import pyarrow as pa

from storage.topic.entry import Entry
from txnctl.spark.bytes_column import bytes_column
from txnctl.spark.source.entry_slice import EntrySlice

ROWS_MAX: Final = 65_536
BYTES_MAX: Final = 4 * 1024 * 1024
"""About the size of one batch."""

_TIME_MS_MAX: Final = (1 << 63) // 1000 - 1
"""Larger times do not fit Spark's timestamps, which count microseconds."""

T = TypeVar("T")


Column = Callable[[list[EntrySlice], pa.Field], pa.Array]


def record_batches(slices: Iterable[EntrySlice], topic: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Build batches of exactly this schema, in the order of the slices.

    Args:
        topic: the name to show.

    Raises:
        InvalidValue: the schema requests a key or value as text, and the bytes are not UTF-8.
    """
    pending: list[EntrySlice] = []
    rows = size = 0
    for entry_slice in slices:
        pending.append(entry_slice)
        rows, size = rows + entry_slice.stop - entry_slice.start, size + entry_slice.entry.size
        if rows >= ROWS_MAX or size >= BYTES_MAX:
            yield _batch(pending, rows, topic, schema)
            pending, rows, size = [], 0, 0
    if pending:
        yield _batch(pending, rows, topic, schema)


def _batch(slices: list[EntrySlice], rows: int, topic: str, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.repeat(pa.scalar(topic, field.type), rows)
        if field.name == "topic"
        else _COLUMNS[field.name](slices, field)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _taken(
    slices: list[EntrySlice], column_of: Callable[[Entry], list[T | None] | None]
) -> list[T | None] | None:
    """Concatenate a column of all entries; None if no entry has the column."""
    taken: list[T | None] = []
    has_values = False
    for entry, start, stop in slices:
        column = column_of(entry)
        if column is None:
            taken += [None] * (stop - start)
        else:
            has_values = True
            taken += column if stop - start == len(column) else column[start:stop]
    return taken if has_values else None


def _bytes(column_of: Callable[[Entry], list[bytes | None] | None]) -> Column:
    def column(slices: list[EntrySlice], field: pa.Field) -> pa.Array:
        taken = _taken(slices, column_of)
        if taken is None:
            return pa.nulls(_rows(slices), field.type)
        return bytes_column(
            taken, field, f"messages {slices[0].entry.position} to {slices[-1].entry.position}"
        )

    return column


def _repeated(code: str, value_of: Callable[[Entry], int]) -> Column:
    """Return a column of numbers that are equal for all messages of an entry."""

    def column(slices: list[EntrySlice], field: pa.Field) -> pa.Array:
        numbers = array(code)
        for entry, start, stop in slices:
            numbers += array(code, (value_of(entry),)) * (stop - start)
        return _plain(numbers, field.type)

    return column


def _plain(numbers: array[int], kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def _batch_indexes(slices: list[EntrySlice], field: pa.Field) -> pa.Array:
    numbers = array("i")
    for entry, start, stop in slices:
        numbers.extend(entry.batch_indexes_of(start, stop))
    return _plain(numbers, field.type)


def _times(times_of: Callable[[Entry], list[int | None] | None]) -> Column:
    def column(slices: list[EntrySlice], field: pa.Field) -> pa.Array:
        taken = _taken(slices, times_of)
        if taken is None:
            return pa.nulls(_rows(slices), field.type)
        times = [None if time is None or time > _TIME_MS_MAX else time * 1000 for time in taken]
        return pa.array(times, pa.int64()).cast(field.type)

    return column


def _properties(slices: list[EntrySlice], field: pa.Field) -> pa.Array:
    taken = _taken(slices, lambda entry: entry.properties)
    if taken is None:
        rows, kind = _rows(slices), field.type
        no_offsets = pa.repeat(pa.scalar(0, pa.int32()), rows + 1)
        return pa.MapArray.from_arrays(
            no_offsets, pa.array([], kind.key_type), pa.array([], kind.item_type), kind
        )
    return pa.array([tuple(properties.items()) if properties else () for properties in taken], field.type)


def _of_transaction(
    text_of: Callable[[Entry], str | None],
) -> Column:
    def column(slices: list[EntrySlice], field: pa.Field) -> pa.Array:
        if not any(entry_slice.entry.txn for entry_slice in slices):
            return pa.nulls(_rows(slices), field.type)
        texts: list[str | None] = []
        for entry, start, stop in slices:
            texts += [text_of(entry)] * (stop - start)
        return pa.array(texts, field.type)

    return column


def _rows(slices: list[EntrySlice]) -> int:
    return sum(entry_slice.stop - entry_slice.start for entry_slice in slices)


_COLUMNS: Final[dict[str, Column]] = {
    "key": _bytes(lambda entry: entry.keys),
    "value": _bytes(lambda entry: entry.values),
    "ledgerId": _repeated("q", lambda entry: entry.ledger_id),
    "entryId": _repeated("q", lambda entry: entry.entry_id),
    "batchIndex": _batch_indexes,
    "publishTime": _repeated("q", lambda entry: entry.publish_time * 1000),
    "eventTime": _times(lambda entry: entry.event_times),
    "deliveryTime": _times(lambda entry: entry.delivery_times),
    "properties": _properties,
    "txnId": _of_transaction(lambda entry: str(entry.txn_id) if entry.txn else None),
    "txnState": _of_transaction(lambda entry: entry.txn_state.value if entry.txn_state else None),
}

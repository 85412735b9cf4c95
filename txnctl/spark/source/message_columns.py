"""Entries of a topic as Arrow batches, only the columns that are asked for.

An entry holds its messages in columns already, so whole columns are taken and no message is made. What all messages of
an entry share is repeated by arithmetic on arrays.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

from storage.topic.entry import Entry
from txnctl.spark.bytes_column import bytes_column

ROWS_MAX: Final = 65_536
BYTES_MAX: Final = 4 * 1024 * 1024
"""About how much one batch holds."""

_EVENT_TIME_MS_MAX: Final = (1 << 63) // 1000 - 1
"""Beyond it Spark's timestamps, in microseconds, have no value."""


class Piece(NamedTuple):
    """Messages `start` to `stop` of an entry, stop excluded."""

    entry: Entry
    start: int
    stop: int


Column = Callable[[list[Piece], pa.Field], pa.Array]


def record_batches(pieces: Iterable[Piece], topic: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches of exactly this schema, in the order of the pieces.

    Args:
        topic: the name to show.

    Raises:
        InvalidValue: a key or value is asked for as text, and is not UTF-8.
    """
    held: list[Piece] = []
    rows = size = 0
    for piece in pieces:
        held.append(piece)
        rows, size = rows + piece.stop - piece.start, size + piece.entry.size
        if rows >= ROWS_MAX or size >= BYTES_MAX:
            yield _batch(held, rows, topic, schema)
            held, rows, size = [], 0, 0
    if held:
        yield _batch(held, rows, topic, schema)


def _batch(pieces: list[Piece], rows: int, topic: str, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.repeat(pa.scalar(topic, field.type), rows)
        if field.name == "topic"
        else _COLUMNS[field.name](pieces, field)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _taken(pieces: list[Piece], column_of: Callable[[Entry], list[Any] | None]) -> list[Any] | None:
    """A column of all entries together; None where no entry has it."""
    taken: list[Any] = []
    is_there = False
    for entry, start, stop in pieces:
        column = column_of(entry)
        if column is None:
            taken += [None] * (stop - start)
        else:
            is_there = True
            taken += column if stop - start == len(column) else column[start:stop]
    return taken if is_there else None


def _bytes(column_of: Callable[[Entry], list[Any] | None]) -> Column:
    def column(pieces: list[Piece], field: pa.Field) -> pa.Array:
        taken = _taken(pieces, column_of)
        if taken is None:
            return pa.nulls(_rows(pieces), field.type)
        return bytes_column(
            taken, field, f"messages {pieces[0].entry.position} to {pieces[-1].entry.position}"
        )

    return column


def _repeated(code: str, value_of: Callable[[Entry], int]) -> Column:
    """A column of numbers that are the same for all messages of an entry."""

    def column(pieces: list[Piece], field: pa.Field) -> pa.Array:
        numbers = array(code)
        for entry, start, stop in pieces:
            numbers += array(code, (value_of(entry),)) * (stop - start)
        return _plain(numbers, field.type)

    return column


def _plain(numbers: array[int], kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def _batch_indexes(pieces: list[Piece], field: pa.Field) -> pa.Array:
    numbers = array("i")
    for entry, start, stop in pieces:
        numbers.extend(range(start, stop) if entry.count > 1 else (-1,))
    return _plain(numbers, field.type)


def _event_times(pieces: list[Piece], field: pa.Field) -> pa.Array:
    taken = _taken(pieces, lambda entry: entry.event_times)
    if taken is None:
        return pa.nulls(_rows(pieces), field.type)
    times = [None if time is None or time > _EVENT_TIME_MS_MAX else time * 1000 for time in taken]
    return pa.array(times, pa.int64()).cast(field.type)


def _properties(pieces: list[Piece], field: pa.Field) -> pa.Array:
    taken = _taken(pieces, lambda entry: entry.properties)
    if taken is None:
        rows, kind = _rows(pieces), field.type
        no_offsets = pa.repeat(pa.scalar(0, pa.int32()), rows + 1)
        return pa.MapArray.from_arrays(
            no_offsets, pa.array([], kind.key_type), pa.array([], kind.item_type), kind
        )
    return pa.array([tuple(each.items()) if each else () for each in taken], field.type)


def _of_transaction(
    text_of: Callable[[Entry], str | None],
) -> Column:
    def column(pieces: list[Piece], field: pa.Field) -> pa.Array:
        if not any(piece.entry.txn for piece in pieces):
            return pa.nulls(_rows(pieces), field.type)
        texts: list[str | None] = []
        for entry, start, stop in pieces:
            texts += [text_of(entry)] * (stop - start)
        return pa.array(texts, field.type)

    return column


def _rows(pieces: list[Piece]) -> int:
    return sum(piece.stop - piece.start for piece in pieces)


_COLUMNS: Final[dict[str, Column]] = {
    "key": _bytes(lambda entry: entry.keys),
    "value": _bytes(lambda entry: entry.values),
    "ledgerId": _repeated("q", lambda entry: entry.ledger_id),
    "entryId": _repeated("q", lambda entry: entry.entry_id),
    "batchIndex": _batch_indexes,
    "publishTime": _repeated("q", lambda entry: entry.publish_time * 1000),
    "eventTime": _event_times,
    "properties": _properties,
    "txnId": _of_transaction(lambda entry: str(entry.txn_id) if entry.txn else None),
    "txnState": _of_transaction(lambda entry: entry.txn_state.value if entry.txn_state else None),
}

"""The columns of a write, and the conversion of record batches into columns of messages. No lmdb: tasks import this.

A topic takes `value`, and `key`, `topic`, `properties`, `eventTime`; a table takes `key` and `value`. Columns go by
name. A null value is a tombstone in a topic and deletes its key in a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from storage.errors import BadInput, InvalidValue
from storage.limits import MESSAGE_BYTES_MAX, TABLE_KEY_BYTES_MAX
from storage.topic.batching import columns_of, sizes_of
from storage.topic.entry import Columns
from storage.values.names import full_topic_name
from txnctl.input.names_once import named_once
from txnctl.spark.sink.upsert_columns import deleted_or_kept, orders, upsert_indexes

if TYPE_CHECKING:
    import pyarrow as pa

    from txnctl.spark.upsert_options import UpsertOptions

TEXT: Final = ("binary", "string")
TOPIC_COLUMNS: Final = {
    "value": TEXT,
    "key": TEXT,
    "topic": ("string",),
    "properties": ("map<string,string>",),
    "eventTime": ("timestamp",),
}
TABLE_COLUMNS: Final = {"key": TEXT, "value": TEXT}


@dataclass(frozen=True)
class SinkColumns:
    """The indexes of the columns of a write, and the target of its rows.

    Attributes:
        index_of: index of each column in a record batch.
        topic: the target of rows that name no topic; None if each row has to name its topic.
        table: the table that takes the rows; None for topics.
        is_upsert: the indexes are those of an upsert (`upsert_columns.py`).
    """

    index_of: dict[str, int]
    topic: str | None
    table: str | None
    is_upsert: bool = False


def sink_columns(
    fields: Iterable[tuple[str, str]],
    topic: str | None,
    table: str | None,
    upsert: UpsertOptions | None = None,
) -> SinkColumns:
    """Check names and types of the written columns, and return their indexes.

    Raises:
        InvalidValue: a column is missing, unknown, duplicate, or of a wrong type.
    """
    if upsert is not None:
        return SinkColumns(upsert_indexes(fields, upsert), topic, table, is_upsert=True)
    known = TOPIC_COLUMNS if table is None else TABLE_COLUMNS
    target_kind = "a topic" if table is None else "a table"
    index_of: dict[str, int] = {}
    for index, (name, type_) in enumerate(fields):
        if name not in known:
            raise InvalidValue(
                f"{target_kind} takes no column {name}",
                hint=f"Select the columns to store: {', '.join(known)}.",
                column=name,
            )
        if name in index_of:
            raise InvalidValue(
                f"column {name} is selected twice", hint="Select the column once.", column=name
            )
        if type_ not in known[name]:
            raise InvalidValue(
                f"column {name} is {type_}; {target_kind} takes {' or '.join(known[name])}",
                hint=f'Cast the column: col("{name}").cast("{known[name][-1]}").',
                column=name,
            )
        index_of[name] = index
    for name in ("value",) if table is None else ("key", "value"):
        if name not in index_of:
            raise InvalidValue(
                f"there is no column {name}, which {target_kind} needs",
                hint=f'Name the column: select(to_json(struct("*")).alias("{name}")), for example.',
                column=name,
            )
    if table is None and topic is None and "topic" not in index_of:
        raise InvalidValue(
            "the write has no target", hint="Give the option topic or table, or a column topic."
        )
    return SinkColumns(index_of, topic, table)


def messages_of(batch: pa.RecordBatch, sink: SinkColumns, where: str, before: int) -> Columns:
    """Convert and check the rows of a batch.

    Args:
        where: names the partition in errors.
        before: rows of the partition before this batch.

    Raises:
        BadInput: a row cannot be stored; its number in the partition counts from 1.
    """
    fields: list[Any] = [
        _bytes(batch, sink.index_of["value"]),
        _bytes(batch, sink.index_of.get("key")),
        _properties(batch, sink.index_of.get("properties")),
        _times(batch, sink.index_of.get("eventTime")),
    ]
    if sink.is_upsert:
        fields[0] = deleted_or_kept(fields[0] or [], batch, sink.index_of, where, before)
        fields[3] = orders(batch, sink.index_of, where, before)
    # A small batch cannot contain an over-long message: the check of each message is skipped.
    has_large = batch.nbytes > MESSAGE_BYTES_MAX
    try:
        return _checked(fields, sink, has_large)
    except BadInput as whole:
        for row in range(batch.num_rows):
            try:
                _checked(
                    [None if column is None else column[row : row + 1] for column in fields], sink, has_large
                )
            except BadInput as error:
                size = error.details.get("bytes")
                problem = (
                    error.message
                    if size is None
                    else f"the row has {size:,} bytes, more than a message may have"
                )
                raise type(error)(
                    f"row {before + row + 1:,} of {where} cannot be stored: {problem}",
                    hint=error.hint, row=before + row + 1, **error.details,
                ) from None  # fmt: skip
        raise whole


def _checked(fields: list[Any], sink: SinkColumns, has_large: bool) -> Columns:
    columns = columns_of(*fields)
    if has_large:
        sizes_of(columns)
    if sink.table is not None:
        for key in fields[1]:
            if not key or len(key) > TABLE_KEY_BYTES_MAX:
                size = "none" if key is None else f"{len(key):,}"
                raise InvalidValue(f"a table's key has 1 to {TABLE_KEY_BYTES_MAX} bytes, not {size}")
    return columns


def _bytes(batch: pa.RecordBatch, index: int | None) -> list[bytes | None] | None:
    import pyarrow as pa

    if index is None:
        return None
    column = batch.column(index)
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    values: list[bytes | None] = column.to_pylist()
    return values


def _properties(batch: pa.RecordBatch, index: int | None) -> list[dict[str, str] | None] | None:
    if index is None:
        return None
    return [
        None if pairs is None else named_once(pairs, "properties: ")
        for pairs in batch.column(index).to_pylist()
    ]


def _times(batch: pa.RecordBatch, index: int | None) -> list[int | None] | None:
    import pyarrow as pa

    if index is None:
        return None
    column = batch.column(index).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    return [None if time_us is None else time_us // 1000 for time_us in column.to_pylist()]


def split_by_target(
    batch: pa.RecordBatch, messages: Columns, sink: SinkColumns, where: str, before: int
) -> Iterator[tuple[str, Columns]]:
    """Split the messages of a batch by target, in order.

    Raises:
        InvalidValue, InvalidName: a row names no topic, or an invalid name.
    """
    if sink.table is not None:
        yield sink.table, messages
    elif "topic" not in sink.index_of:
        assert sink.topic is not None, "sink_columns checks that rows have a target"
        yield sink.topic, messages
    else:
        full_names: dict[str | None, str] = {}
        rows: dict[str, list[int]] = {}
        for index, name in enumerate(batch.column(sink.index_of["topic"]).to_pylist()):
            if name not in full_names:
                full_names[name] = _target_of(name, sink, f"row {before + index + 1:,} of {where}")
            rows.setdefault(full_names[name], []).append(index)
        for target, indexes in rows.items():
            yield target, messages if len(rows) == 1 else messages.pick(indexes)


def _target_of(name: str | None, sink: SinkColumns, row_name: str) -> str:
    if name is None:
        if sink.topic is None:
            raise InvalidValue(
                f"{row_name} names no topic", hint="Fill the column topic, or give the option topic."
            )
        return sink.topic
    try:
        return full_topic_name(name)
    except BadInput as error:
        raise type(error)(f"{row_name}: {error.message}", hint=error.hint) from None

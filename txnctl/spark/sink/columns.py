"""The columns that a write takes, and a record batch of them as columns of messages. No lmdb: tasks import it.

A topic takes `value`, and `key`, `topic`, `properties`, `eventTime`; a table `key` and `value`. They go by name. A null
value is a tombstone in a topic and deletes its key in a table.
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

if TYPE_CHECKING:
    import pyarrow as pa

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
    """Where each column of a write stands, and where its rows go.

    Attributes:
        at: index of each column in a record batch.
        topic: where rows go that name no topic; None if each has to name one.
        table: the table that rows go to; None for topics.
    """

    at: dict[str, int]
    topic: str | None
    table: str | None


def sink_columns(fields: Iterable[tuple[str, str]], topic: str | None, table: str | None) -> SinkColumns:
    """The columns of a write, given names and types of what is written.

    Raises:
        InvalidValue: one is missing, unknown, there twice, or of another type.
    """
    known = TOPIC_COLUMNS if table is None else TABLE_COLUMNS
    what = "a topic" if table is None else "a table"
    at: dict[str, int] = {}
    for index, (name, type_) in enumerate(fields):
        if name not in known:
            raise InvalidValue(
                f"{what} takes no column {name}",
                hint=f"Select what is to be stored: {', '.join(known)}.",
                column=name,
            )
        if name in at:
            raise InvalidValue(f"column {name} is there twice", hint="Select one of them.", column=name)
        if type_ not in known[name]:
            raise InvalidValue(
                f"column {name} is {type_}; {what} takes {' or '.join(known[name])}",
                hint=f'Cast it: col("{name}").cast("{known[name][-1]}").',
                column=name,
            )
        at[name] = index
    for name in ("value",) if table is None else ("key", "value"):
        if name not in at:
            raise InvalidValue(
                f"there is no column {name}, which {what} needs",
                hint=f'Name it: select(to_json(struct("*")).alias("{name}")), for example.',
                column=name,
            )
    if table is None and topic is None and "topic" not in at:
        raise InvalidValue(
            "it is not said where the rows go", hint="Give the option topic or table, or a column topic."
        )
    return SinkColumns(at, topic, table)


def messages_of(batch: pa.RecordBatch, sink: SinkColumns, where: str, before: int) -> Columns:
    """The rows of a batch as columns of messages, checked.

    Args:
        where: names the partition in errors.
        before: rows of the partition before this batch.

    Raises:
        BadInput: a row cannot be stored; it is named by its number in the partition, from 1.
    """
    fields = [
        _bytes(batch, sink.at["value"]),
        _bytes(batch, sink.at.get("key")),
        _properties(batch, sink.at.get("properties")),
        _times(batch, sink.at.get("eventTime")),
    ]
    # A message cannot be larger than all of them.
    sizes = batch.nbytes > MESSAGE_BYTES_MAX
    try:
        return _checked(fields, sink, sizes)
    except BadInput as whole:
        for row in range(batch.num_rows):
            try:
                _checked([None if each is None else each[row : row + 1] for each in fields], sink, sizes)
            except BadInput as error:
                size = error.details.get("bytes")
                said = (
                    error.message if size is None else f"it has {size:,} bytes, more than a message may have"
                )
                raise type(error)(
                    f"row {before + row + 1:,} of {where} cannot be stored: {said}",
                    hint=error.hint, row=before + row + 1, **error.details,
                ) from None  # fmt: skip
        raise whole


def _checked(fields: list[Any], sink: SinkColumns, sizes: bool) -> Columns:
    columns = columns_of(*fields)
    if sizes:
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
    found: list[bytes | None] = column.to_pylist()
    return found


def _properties(batch: pa.RecordBatch, index: int | None) -> list[dict[str, str] | None] | None:
    if index is None:
        return None
    return [None if each is None else dict(each) for each in batch.column(index).to_pylist()]


def _times(batch: pa.RecordBatch, index: int | None) -> list[int | None] | None:
    import pyarrow as pa

    if index is None:
        return None
    column = batch.column(index).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    return [None if each is None else each // 1000 for each in column.to_pylist()]


def routed(
    batch: pa.RecordBatch, messages: Columns, sink: SinkColumns, where: str, before: int
) -> Iterator[tuple[str, Columns]]:
    """The messages of a batch by where they go, in order.

    Raises:
        InvalidValue, InvalidName: a row names no topic, or no name of one.
    """
    if sink.table is not None:
        yield sink.table, messages
    elif "topic" not in sink.at:
        assert sink.topic is not None, "sink_columns sees to it"
        yield sink.topic, messages
    else:
        full: dict[str | None, str] = {}
        rows: dict[str, list[int]] = {}
        for index, name in enumerate(batch.column(sink.at["topic"]).to_pylist()):
            if name not in full:
                full[name] = _full(name, sink, f"row {before + index + 1:,} of {where}")
            rows.setdefault(full[name], []).append(index)
        for target, indexes in rows.items():
            yield target, messages if len(rows) == 1 else messages.pick(indexes)


def _full(name: str | None, sink: SinkColumns, row: str) -> str:
    if name is None:
        if sink.topic is None:
            raise InvalidValue(
                f"{row} names no topic", hint="Fill the column topic, or give the option topic."
            )
        return sink.topic
    try:
        return full_topic_name(name)
    except BadInput as error:
        raise type(error)(f"{row}: {error.message}", hint=error.hint) from None

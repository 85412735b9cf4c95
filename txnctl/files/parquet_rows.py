"""Parquet as rows and messages: every type has a text that loses nothing, or is refused. No Spark: tasks import this.

Times are RFC 3339: in UTC with a `Z`, or without a zone where the file has none; nanoseconds have nine digits, coarser
units six. INT96, which old writers have for timestamps, is in UTC, to the microsecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set as AbstractSet
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.errors import InvalidValue
from txnctl.files.cells import BadCell, Number, Pairs, TimeText, json_form, json_text
from txnctl.files.csv_rows import same_columns
from txnctl.files.listing import open_input, read_errors
from txnctl.files.message_rows import FileMessage, MessageColumns, message_row
from txnctl.input.names_once import check_once
from txnctl.spark.file_systems import without_secrets

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS: Final = 1024
_TICKS: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY_S: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  a time without a zone has the text of one in UTC
_KINDS: Final = (
    ("is_boolean",),
    ("is_integer", "is_floating", "is_decimal"),
    ("is_string", "is_large_string", "is_string_view"),
    ("is_binary", "is_large_binary", "is_fixed_size_binary", "is_binary_view"),
    ("is_date",),
    ("is_time",),
)
"""Types of one row are widened: their values have one form in JSON."""

_LISTS: Final = ("is_list", "is_large_list", "is_fixed_size_list")


class ParquetHead(NamedTuple):
    """The columns of a file, and the rows and bytes of each group of rows."""

    schema: pa.Schema
    rows: list[int]
    sizes: list[int]


def read_head(path: str) -> ParquetHead:
    """Read the columns and groups of a file.

    Raises:
        InvalidValue: no Parquet, a name twice, or a type that has no form.
    """
    with read_errors(path), _file(path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        schema = file.schema_arrow
        check_once(schema.names, f"{without_secrets(path)}: the schema: ", "Name the columns differently.")
        for field in schema:
            _check_type(path, field.name, field.type)
        return ParquetHead(
            schema, [group.num_rows for group in groups], [group.total_byte_size for group in groups]
        )


def _file(path: str) -> Any:
    from pyarrow import parquet

    return parquet.ParquetFile(open_input(path, is_plain=True), coerce_int96_timestamp_unit="us")


def _int96(file: Any) -> set[str]:
    """The columns of INT96, which PyArrow shows without their zone."""
    leaves = [file.schema.column(number) for number in range(len(file.schema.names))]
    return {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}


def widened(paths: Sequence[str], schemas: Sequence[pa.Schema]) -> list[str]:
    """The names of the columns of all files, in the order of the first one; types may differ as far as they widen.

    Raises:
        InvalidValue: a file has other columns, or a type that does not widen.
    """
    names = same_columns(paths, [schema.names for schema in schemas])
    known: dict[str, tuple[str, pa.DataType]] = {}
    for path, schema in zip(paths, schemas, strict=True):
        for name in names:
            kind = schema.field(name).type
            first, first_kind = known.setdefault(name, (path, kind))
            if not _widen(kind, first_kind):
                shown, other = without_secrets(path), without_secrets(first)
                raise InvalidValue(
                    f"{shown}: column {name} is {kind}, and {first_kind} in {other}",
                    hint="Files of one directory or pattern have types that widen, such as int32 and int64.",
                    path=shown,
                    column=name,
                )
            if str(first_kind) == "null":
                known[name] = (path, kind)
    return names


def _is(kind: pa.DataType, names: Sequence[str]) -> bool:
    from pyarrow import types

    return any(getattr(types, name)(kind) for name in names)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a dictionary or of an extension."""
    while _is(kind, ("is_dictionary",)) or hasattr(kind, "storage_type"):
        kind = kind.value_type if _is(kind, ("is_dictionary",)) else kind.storage_type
    return kind


def _widen(one: pa.DataType, two: pa.DataType) -> bool:
    one, two = _plain(one), _plain(two)
    if "null" in (str(one), str(two)):
        return True
    if _is(one, ("is_timestamp",)) and _is(two, ("is_timestamp",)):
        return (one.tz is None) == (two.tz is None)
    if _is(one, _LISTS) and _is(two, _LISTS):
        return _widen(one.value_type, two.value_type)
    if _is(one, ("is_struct",)) and _is(two, ("is_struct",)):
        fields = {field.name: field.type for field in two}
        return {field.name for field in one} == set(fields) and all(
            _widen(field.type, fields[field.name]) for field in one
        )
    if _is(one, ("is_map",)) and _is(two, ("is_map",)):
        return _widen(one.key_type, two.key_type) and _widen(one.item_type, two.item_type)
    return any(_is(one, kinds) and _is(two, kinds) for kinds in _KINDS)


def _check_type(path: str, name: str, kind: pa.DataType) -> None:
    """Check that values of a type have a form.

    Raises:
        InvalidValue
    """
    kind = _plain(kind)
    if _is(kind, _LISTS):
        _check_type(path, name, kind.value_type)
    elif _is(kind, ("is_struct",)):
        for field in kind:
            _check_type(path, f"{name}.{field.name}", field.type)
    elif _is(kind, ("is_map",)):
        _check_type(path, name, kind.key_type)
        _check_type(path, name, kind.item_type)
    elif not _is(kind, ("is_null", "is_timestamp")) and not any(_is(kind, kinds) for kinds in _KINDS):
        shown = without_secrets(path)
        raise InvalidValue(
            f"{shown}: column {name} has the type {kind}, which has no form in JSON", path=shown, column=name
        )


def read_messages(
    path: str, start: int, end: int, names: Sequence[str], columns: MessageColumns
) -> Iterator[tuple[int, FileMessage]]:
    """Yield the number and the message of each row of the groups from `start` on, below `end`.

    Args:
        names: the columns of the value, in order.

    Raises:
        InvalidValue: the file cannot be read.
    """
    form = json_form(names)
    with read_errors(path), _file(path) as file:
        needed = list(names) if columns.value is None else columns.distinct_names()
        int96 = _int96(file)
        number = 1 + sum(file.metadata.row_group(group).num_rows for group in range(start))
        for batch in file.iter_batches(_BATCH_ROWS, row_groups=list(range(start, end)), columns=needed):
            cells = {name: cells_of(batch.column(name), name, int96) for name in needed}
            for index in range(batch.num_rows):
                yield number, _message(cells, index, form, names, columns)
                number += 1


def _message(
    cells: dict[str, list[object]], index: int, form: str, names: Sequence[str], columns: MessageColumns
) -> FileMessage:
    return message_row(
        columns,
        lambda: form % tuple(json_text(cells[name][index]) for name in names),
        lambda name: cells[name][index],
    )


def cells_of(array: Any, path: str = "", int96: AbstractSet[str] = frozenset()) -> list[object]:
    """Return the values of an array of Arrow as cells.

    Args:
        path: of the column in the file, for the columns of INT96.
    """
    kind = array.type
    if hasattr(kind, "storage_type"):
        return cells_of(array.storage, path, int96)
    if _is(kind, ("is_dictionary",)):
        return cells_of(array.dictionary_decode(), path, int96)
    if _is(kind, ("is_timestamp",)):
        is_utc = kind.tz is not None or path in int96
        return [_time(ticks, kind.unit, is_utc) for ticks in array.view("int64").to_pylist()]
    if _is(kind, ("is_date",)):
        days = array.view("int32" if kind.bit_width == 32 else "int64").to_pylist()
        per_day = 1 if kind.bit_width == 32 else _DAY_S * 1000
        return [None if day is None else _date(day // per_day) for day in days]
    if _is(kind, ("is_time",)):
        return [_time_of_day(ticks, kind.unit) for ticks in array.view(f"int{kind.bit_width}").to_pylist()]
    if _is(kind, ("is_float16", "is_float32")):
        return [
            None if text is None else Number(text) for text in array.cast("float").cast("string").to_pylist()
        ]
    if _is(kind, _KINDS[2]):
        return [None if data is None else _text(data) for data in array.cast("large_binary").to_pylist()]
    return _nested(array, path, int96) if kind.num_fields else array.to_pylist()


def _nested(array: Any, path: str, int96: AbstractSet[str]) -> list[object]:
    """The cells of an array of lists, maps or structs."""
    import pyarrow as pa

    kind, valid = array.type, array.is_valid().to_pylist()
    if _is(kind, ("is_struct",)):
        parts = [
            cells_of(part, f"{path}.{field.name}", int96)
            for field, part in zip(kind, array.flatten(), strict=True)
        ]
        keys = [field.name for field in kind]
        return [
            Pairs(zip(keys, (part[index] for part in parts), strict=True)) if is_there else None
            for index, is_there in enumerate(valid)
        ]
    if _is(kind, ("is_map",)):
        keys = cells_of(array.keys, f"{path}.key_value.key", int96)
        items = cells_of(array.items, f"{path}.key_value.value", int96)
        values: list[object] = list(zip(keys, items, strict=True))
    else:
        if _is(kind, ("is_fixed_size_list",)):
            array = array.cast(pa.list_(kind.value_type))
        values = cells_of(array.values, f"{path}.list.element", int96)
    offsets = array.offsets.to_pylist()
    rows = [values[first:last] for first, last in pairwise(offsets)]
    form: Any = Pairs if _is(kind, ("is_map",)) else list
    return [form(row) if is_there else None for row, is_there in zip(rows, valid, strict=True)]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return BadCell(f"not UTF-8 at byte {error.start}")


def _date(day: int) -> str:
    try:
        return TimeText((_EPOCH + timedelta(days=day)).date().isoformat())
    except OverflowError:
        return BadCell("a date outside of the years 1 to 9999")


def _time(ticks: int | None, unit: str, is_utc: bool) -> str | None:
    """The text of a time in ticks since 1970: `2024-05-01T10:00:00.123456Z`."""
    if ticks is None:
        return None
    second, rest = divmod(ticks, _TICKS[unit])
    try:
        text = (_EPOCH + timedelta(seconds=second)).isoformat()
    except OverflowError:
        return BadCell("a time outside of the years 1 to 9999")
    return TimeText(f"{text}.{_fraction(rest, unit)}{'Z' if is_utc else ''}")


def _time_of_day(ticks: int | None, unit: str) -> str | None:
    if ticks is None:
        return None
    second, rest = divmod(ticks, _TICKS[unit])
    return TimeText(f"{(_EPOCH + timedelta(seconds=second)).time().isoformat()}.{_fraction(rest, unit)}")


def _fraction(rest: int, unit: str) -> str:
    digits = 9 if unit == "ns" else 6
    return f"{rest * 10**digits // _TICKS[unit]:0{digits}}"

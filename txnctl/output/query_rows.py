"""Rows of a query whose columns are known at run time, as JSON and as cells of a table."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from storage.errors import InvalidValue
from storage.json_form import bytes_field
from txnctl.output.bytes_field import bytes_cell
from txnctl.output.field import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
"""Types of Spark whose values stand on the right of a column."""


def check_columns(names: Sequence[str]) -> None:
    """Check that no name stands for two columns, as the fields of JSON need.

    Raises:
        InvalidValue
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidValue(
            f"two columns of the result are named {twice[0]}",
            hint="Name one of them: SELECT a.key AS account, ...",
        )


def json_row(names: Sequence[str], values: Sequence[object]) -> dict[str, object]:
    """Return a row as a JSON object: bytes as text, or as Base64 under `nameBase64` where no UTF-8 decodes."""
    row: dict[str, object] = {}
    for name, value in zip(names, values, strict=True):
        if isinstance(value, bytes | bytearray):
            row |= bytes_field(name, bytes(value))
        else:
            row[name] = json_value(value)
    return row


def json_value(value: object) -> object:
    """Return a value of Spark as JSON has it: times as RFC 3339, decimals as text, structs and maps as objects."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray):
        return b64encode(bytes(value)).decode() if _decoded(bytes(value)) is None else _decoded(bytes(value))
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta | Decimal):
        return str(value)
    as_dict = getattr(value, "asDict", None)
    if as_dict is not None:
        value = as_dict()
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return str(value)


def cell(value: object) -> str:
    """Return a value as the cell of a table, harmless on a terminal."""
    if isinstance(value, bytes | bytearray):
        return bytes_cell(bytes(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return shown(json_value(value), "text")


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _time(value: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond or, if given, the microsecond; a time without a zone stays without one."""
    zone = "Z" if value.tzinfo is not None else ""
    at = value.astimezone(UTC) if value.tzinfo is not None else value
    digits = "microseconds" if at.microsecond % 1000 else "milliseconds"
    return at.replace(tzinfo=None).isoformat(timespec=digits) + zone

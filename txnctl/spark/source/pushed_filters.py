"""Filters that Spark pushes to a read, as selections of keys, positions and publish times.

A filter that a selection expresses exactly is taken; all further filters are returned to Spark for evaluation. Spark
keeps the plan with the filters for a DataFrame, and gives it to later queries of that DataFrame too: so filters are
pushed where the option `pushFilters` says that a DataFrame or view serves one query (docs/decisions/0055).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from storage.table.key_range import after_prefix
from txnctl.spark.schemas import NEVER_NULL, ROW_TYPES
from txnctl.spark.source.key_selection import KeySelection
from txnctl.spark.source.message_selection import MessageSelection, microseconds

_NUMBERS: Final = ("ledgerId", "entryId", "publishTime")


def select_messages(
    filters: Iterable[Filter], selection: MessageSelection
) -> tuple[MessageSelection, list[Filter]]:
    """Return the messages of a selection that pass the filters, and the filters that Spark has to evaluate."""
    rest: list[Filter] = []
    for pushed in filters:
        name = _column(pushed)
        if name == "key":
            keys = _keys(pushed, selection.keys)
            taken = None if keys is None else replace(selection, keys=keys)
        elif name in _NUMBERS:
            taken = _between(pushed, selection, name)
        else:
            taken = selection if isinstance(pushed, IsNotNull) and name in NEVER_NULL else None
        if taken is None:
            rest.append(pushed)
        else:
            selection = taken
    return selection, rest


def select_rows(filters: Iterable[Filter], keys: KeySelection) -> tuple[KeySelection, list[Filter]]:
    """Return the keys of a table that pass the filters, and the filters that Spark has to evaluate."""
    rest: list[Filter] = []
    for pushed in filters:
        name = _column(pushed)
        if isinstance(pushed, IsNotNull) and name in ROW_TYPES:
            continue  # No column of a row is ever null.
        taken = _keys(pushed, keys) if name == "key" else None
        if taken is None:
            rest.append(pushed)
        else:
            keys = taken
    return keys, rest


def _column(pushed: Filter) -> str | None:
    """Return the column of a filter on one whole column."""
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    return path[0] if len(path) == 1 else None


def _keys(pushed: Filter, keys: KeySelection) -> KeySelection | None:
    """Return the keys that pass a filter; None where a selection cannot express it."""
    if isinstance(pushed, IsNotNull):
        return keys.within(b"", None)
    if isinstance(pushed, In):
        values = [_bytes(value) for value in pushed.value if value is not None]
        known = [value for value in values if value is not None]
        return keys.one_of(frozenset(known)) if len(known) == len(values) else None
    value = _bytes(getattr(pushed, "value", None))
    if value is None:
        return None
    if isinstance(pushed, EqualTo | EqualNullSafe):
        return keys.one_of(frozenset((value,)))
    bounds: dict[type[Filter], tuple[bytes, bytes | None]] = {
        GreaterThan: (value + b"\0", None),
        GreaterThanOrEqual: (value, None),
        LessThan: (b"", value),
        LessThanOrEqual: (b"", value + b"\0"),
        StringStartsWith: (value, after_prefix(value)),
    }
    bound = bounds.get(type(pushed))
    return None if bound is None else keys.within(*bound)


def _bytes(value: object) -> bytes | None:
    """Return a key of bytes or text as stored."""
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    return bytes(value) if isinstance(value, bytes | bytearray) else None


def _between(pushed: Filter, selection: MessageSelection, column: str) -> MessageSelection | None:
    """Return the messages that pass a filter on a number or a time; None where a selection cannot express it."""
    if isinstance(pushed, IsNotNull):
        return selection
    number = _number(getattr(pushed, "value", None))
    if number is None:
        return None
    bounds: dict[type[Filter], tuple[int | None, int | None]] = {
        EqualTo: (number, number),
        EqualNullSafe: (number, number),
        GreaterThan: (number + 1, None),
        GreaterThanOrEqual: (number, None),
        LessThan: (None, number - 1),
        LessThanOrEqual: (None, number),
    }
    bound = bounds.get(type(pushed))
    return None if bound is None else selection.between(column, *bound)


def _number(value: object) -> int | None:
    """Return a whole number, or a time with a zone in microseconds since 1970."""
    if isinstance(value, datetime):
        return None if value.tzinfo is None else microseconds(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None

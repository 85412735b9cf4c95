"""Rows in the format that was asked for. Table and JSON come from the same rows: the same facts in both."""

from __future__ import annotations

from txnctl.output import json_text
from txnctl.output.escape import printable, printable_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from txnctl.output.field import Field
    from txnctl.output.row import Row


def one(
    row: Row,
    output: str,
    fields: tuple[Field, ...],
    name_field: str,
    table: Callable[[Row], str | Iterable[str]] | None,
) -> str:
    """One named thing: an object in JSON."""
    if output == "json":
        return json_text.indented(row) + "\n"
    if output == "ndjson":
        return json_text.one_line(row) + "\n"
    if output == "name":
        return _name(row, name_field)
    if table is None:
        from txnctl.output.table import object_table

        return _ended(object_table(row, fields))
    return _ended(table(printable_row(row)))  # type: ignore[arg-type]


def many(
    rows: Iterable[Row],
    output: str,
    fields: tuple[Field, ...],
    name_field: str,
    table: Callable[[Sequence[Row]], str | Iterable[str]] | None,
    width: int | None = None,
) -> Iterator[str]:
    """A list: an array in JSON, which is written whole or not at all.

    Args:
        width: of the terminal, in columns, for tables.
    """
    if output == "json":
        yield json_text.indented(list(rows)) + "\n"
    elif output == "ndjson":
        for row in rows:
            yield json_text.one_line(row) + "\n"
    elif output == "name":
        for row in rows:
            yield _name(row, name_field)
    elif table is None:
        from txnctl.output.table import list_table

        yield _ended(list_table(list(rows), fields, width))
    else:
        yield _ended(table([printable_row(row) for row in rows]))  # type: ignore[misc]


def _name(row: Row, name_field: str) -> str:
    value = row.get(name_field)
    return "" if value is None else f"{printable(str(value))}\n"


def _ended(text: str | Iterable[str]) -> str:
    """The text with one newline at the end; nothing stays nothing."""
    if not isinstance(text, str):
        text = "\n".join(text)
    return f"{text}\n" if text and not text.endswith("\n") else text

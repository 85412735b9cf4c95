"""Rows in the format that was asked for. Table and JSON come from the same rows: the same facts in both."""

from __future__ import annotations

from base64 import b64decode
from typing import NamedTuple, TypeVar

from storage.errors import InvalidValue
from storage.json_form import to_json
from txnctl.output import json_text
from txnctl.output.escape import printable, printable_bytes, printable_row
from txnctl.output.shell import spell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from txnctl.output.field import Field

R = TypeVar("R")


class RowForm(NamedTuple):
    """The form of rows.

    Attributes:
        name_field: the field that stands for a row in `-o name`.
        terminal: whether names go to a terminal.
        width: of the terminal, in columns, for people.
        table_width: that of tables.
    """

    fields: Iterable[Field]
    name_field: str
    terminal: bool = False
    width: int | None = None
    table_width: int | None = None


def one(
    row: R,
    output: str,
    form: RowForm,
    table: Callable[[R], str | Iterable[str]] | None,
) -> str:
    """One named thing: an object in JSON.

    Args:
        table: gets a copy of the row with harmless texts.
    """
    if output == "table" and table is not None:
        return _ended(table(printable_row(row)), form.width)
    shown = to_json(row, spell)
    if output == "json":
        return json_text.indented(shown) + "\n"
    if output == "ndjson":
        return json_text.one_line(shown) + "\n"
    if output == "name":
        return _name(shown, form)
    from txnctl.output.table import object_table

    return _ended(object_table(shown, form.fields, form.table_width), form.width)


def many(
    rows: Iterable[R],
    output: str,
    form: RowForm,
    table: Callable[[Sequence[R]], str | Iterable[str]] | None,
) -> Iterator[str]:
    """A list: an array in JSON, which is written whole or not at all."""
    if output == "json":
        yield json_text.indented([to_json(row, spell) for row in rows]) + "\n"
    elif output == "ndjson":
        for row in rows:
            yield json_text.one_line(to_json(row, spell)) + "\n"
    elif output == "name":
        for row in rows:
            yield _name(to_json(row, spell), form)
    elif table is None:
        from txnctl.output.table import list_table

        listed = list_table([to_json(row, spell) for row in rows], form.fields, form.table_width)
        yield _ended(listed, form.width)
    else:
        yield _ended(table([printable_row(row) for row in rows]), form.width)


def _name(row: Mapping[str, object], form: RowForm) -> str:
    """The name of a row on a line: harmless on a terminal, else the very bytes, which an argument takes again.

    Raises:
        InvalidValue: the name has a line end, so that a line cannot be told from two names.
    """
    name_field = form.name_field
    value, encoded = row.get(name_field), row.get(f"{name_field}Base64")
    if isinstance(encoded, str):
        value = b64decode(encoded).decode("utf-8", "surrogateescape")
    if value is None:
        return ""
    name = str(value)
    if form.terminal:
        return f"{printable_bytes(name.encode('utf-8', 'surrogateescape'))}\n"
    if "\n" in name:
        raise InvalidValue(
            f"{name_field} {printable(name)} has a line end: it is no line of -o name",
            hint="Use -o ndjson, which has every name whole.",
        )
    return f"{name}\n"


def _ended(text: str | Iterable[str], width: int | None) -> str:
    """The text in lines of the width, with one newline at the end; nothing stays nothing."""
    from txnctl.output.prose import fitted

    text = "\n".join(fitted(text, width))
    return f"{text}\n" if text and not text.endswith("\n") else text

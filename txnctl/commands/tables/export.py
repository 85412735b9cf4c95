"""`txnctl tables export`: rows as NDJSON or CSV, which `tables import` reads back to the very bytes.

A key or value that is not UTF-8 stands as Base64 in a separate field or column.
"""

from __future__ import annotations

from binascii import b2a_base64
from itertools import islice
from typing import NamedTuple

from storage.json_form import bytes_field
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TABLE
from txnctl.commands.tables.reader import opened, reads_table
from txnctl.commands.tables.scan import rows_of, takes_range
from txnctl.fields.table import KEY, VALUE
from txnctl.output import json_text
from txnctl.output.escape import printable
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.table.visibility import Row
    from txnctl.cli.context import Context
    from txnctl.commands.tables.reader import Reading
    from txnctl.commands.tables.scan import KeyBounds


class ExportedRow(NamedTuple):
    """A key and the value."""

    key: bytes
    value: bytes


EXPORTED = fields_of(ExportedRow, {**KEY, **VALUE})

CSV_COLUMNS = ("key", "value", "keyBase64", "valueBase64")

_PAGE_ROWS = 1000
_TO_QUOTE = frozenset(',"\r\n')
_SETUP = (
    "txnctl tables create accounts",
    "txnctl tables put accounts B1 100",
    "txnctl tables create copy",
)


@argument("table", type=TABLE, help="The table.")
@takes_range
@reads_table
@reads_store
@output(EXPORTED, name_field="key", formats=("ndjson", "csv"), default="ndjson")
@example("txnctl tables export accounts > accounts.ndjson", setup=_SETUP)
@example("txnctl tables export accounts -o csv | txnctl tables import copy --input csv", setup=_SETUP)
def export(context: Context, table: str, key_range: KeyBounds, reading: Reading) -> None:
    r"""Print a table as NDJSON or CSV, to be imported again.

    \b
    ndjson  An object a row: key or keyBase64, value or valueBase64.
    csv     RFC 4180 with the columns key, value, keyBase64 and valueBase64:
            of the first and third, and of the second and fourth, one is empty.

    Rows are read as by `tables scan`. An export comes from a single moment in a serializable transaction, or at a time
    (--at): `--at now` is the newest moment that no open transaction can change.
    """
    lines = _csv if context.output == "csv" else _ndjson
    with opened(context, table, reading) as source:
        rows = rows_of(source, key_range, reading)
        total = None if key_range.bounds() else source.stats().counts.rows
        with context.progress("Export", total=total, unit="rows") as bar:
            if context.output == "csv":
                context.out.write(",".join(CSV_COLUMNS) + "\n")
            while page := list(islice(rows, _PAGE_ROWS)):
                context.out.write(lines(page, context.out.terminal))
                if not context.out.terminal:
                    bar.advance(len(page))


def _ndjson(rows: Iterable[Row], _terminal: bool) -> str:
    one_line = json_text.one_line
    return "".join(
        [f"{one_line({**bytes_field('key', row.key), **bytes_field('value', row.value)})}\n" for row in rows]
    )


def _csv(rows: Iterable[Row], terminal: bool) -> str:
    lines = []
    for row in rows:
        key, key_base64 = _columns(row.key)
        value, value_base64 = _columns(row.value)
        lines.append(f"{key},{value},{key_base64},{value_base64}\n")
    if not terminal:
        return "".join(lines)
    return "".join([f"{printable(line[:-1])}\n" for line in lines])


def _columns(data: bytes) -> tuple[str, str]:
    """Bytes in the column for text, or in that for Base64."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "", b2a_base64(data, newline=False).decode()
    if _TO_QUOTE.isdisjoint(text):
        return text, ""
    return '"' + text.replace('"', '""') + '"', ""

"""Rows with a key in bytes, for every output format."""

from __future__ import annotations

from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row


def show_key_rows(
    context: Context, key_rows: Sequence[Row], fields: Sequence[Field], *, named_by_key: bool = False
) -> None:
    """Print rows of the engine. With `named_by_key`, `-o name` prints the keys."""
    from txnctl.fields.table import name_of, with_bytes

    rows = [with_bytes(row, "key") for row in key_rows]
    if named_by_key and context.output == "name":
        rows = [name_of(row["key"]) for row in key_rows]
    context.show_list(rows, table=lambda shown: _table(context, shown, fields))


def _table(context: Context, rows: Sequence[Row], fields: Sequence[Field]) -> str:
    from txnctl.output.bytes_field import bytes_cell

    cells = [{**row, "key": bytes_cell(row, "key")} for row in rows]
    return context.table_of(cells, fields)

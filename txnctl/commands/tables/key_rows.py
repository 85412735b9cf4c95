"""Rows with a key in bytes, for every output format."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol, TypeVar

    from txnctl.cli.context import Context

    class KeyRow(Protocol):
        """A row of the engine with the key of a table."""

        @property
        def key(self) -> bytes | None:
            """The key, where the row has one."""

    K = TypeVar("K", bound=KeyRow)


def show_key_rows(
    context: Context, rows: Sequence[K], fields: Sequence[Field], *, named_by_key: bool = False
) -> None:
    """Print rows of the engine. With `named_by_key`, `-o name` prints the keys."""
    if named_by_key and context.output == "name":
        from txnctl.fields.table import name_of

        context.show_list(name_of(row.key or b"") for row in rows)
    else:
        context.show_list(rows, table=lambda shown: _table(context, shown, fields))


def _table(context: Context, rows: Sequence[K], fields: Sequence[Field]) -> str:
    from txnctl.output.bytes_field import shown_bytes

    cells = [{**to_json(row), "key": None if row.key is None else shown_bytes(row.key)} for row in rows]
    return context.table_of(cells, fields)

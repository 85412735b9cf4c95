"""Rows about processes in columns."""

from __future__ import annotations

from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

_HOLDER_MAX = 60
"""Characters of a process in words that the tables show; JSON has all of it."""


def process_table(context: Context, rows: Sequence[Row], fields: Sequence[Field]) -> str:
    """The rows in columns. A process id is a name, not a quantity: 48211, not 48,211."""
    cells = [
        {**row, "pid": None if row["pid"] is None else str(row["pid"]), "holder": _shortened(row["holder"])}
        for row in rows
    ]
    return context.table_of(cells, fields)


def _shortened(holder: str | None) -> str | None:
    """A long command line up to the word that still fits: `process 48211 (python load.py --from ...)`."""
    if holder is None or len(holder) <= _HOLDER_MAX:
        return holder
    words, closed = holder[: _HOLDER_MAX - 5].rpartition(" ")[0], ")" if "(" in holder else ""
    return f"{words} ...{closed}"

"""Rows as a table for people: headings, columns in line, numbers to the right, no frame.

On a narrow terminal `table_layout` decides which columns are shown, and how; elsewhere a row is a line.
"""

from __future__ import annotations

from typing import TypeVar

from txnctl.output.prose import Laid
from txnctl.output.shell import worded_at
from txnctl.output.table_layout import LaidColumn, TextTable, fold, laid_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from txnctl.output.column import Column
    from txnctl.output.field import Field


R = TypeVar("R")


def list_table(rows: Sequence[R], fields: Iterable[Column[R] | Field], width: int | None = None) -> TextTable:
    """The rows under a line of headings; nothing at all where there are no rows.

    Columns read typed rows; fields read the JSON form of rows.

    Args:
        width: of the terminal, in columns; None leaves each row on one line.
    """
    columns = [
        LaidColumn(
            field.heading,
            field.kind,
            [field.cell(row) for row in rows],  # type: ignore[arg-type]
            field.rank,
            field.short,
        )
        for field in fields
        if field.heading
    ]
    return laid_out(columns, width)


def object_table(row: R, fields: Iterable[Column[R] | Field], width: int | None = None) -> Iterator[str]:
    """One line a field: the heading in small letters, then the value; a word that is too wide is folded.

    Columns read a typed row; fields read the JSON form of a row.

    Args:
        width: of the terminal, in columns; None leaves each field on one line.
    """
    shown = [field for field in fields if field.heading]
    label = max(len(field.heading) for field in shown)
    for field in shown:
        name, cell = field.heading.lower(), field.cell(row)  # type: ignore[arg-type]
        line = f"{name:{label}}  {cell}".rstrip()
        room = None if width is None else max(1, width - label - 2)
        if room is None:
            yield Laid(line)
        elif worded_at(cell, 0) or max(map(len, cell.split()), default=0) <= room:
            yield line
        else:
            for number, part in enumerate(fold(cell, room, "text").split("\n")):
                yield Laid(f"{'' if number else name:{label}}  {part}")


def aligned(headings: Sequence[str], cells: Sequence[Sequence[str]], alignment: Sequence[str]) -> str:
    """Columns in line, two spaces apart. Cells are text already made harmless."""
    if not cells:
        return ""
    import tabulate

    # tabulate puts two more spaces after a heading than after a column.
    tabulate.MIN_PADDING = 0
    table = tabulate.tabulate(
        cells, headers=headings, tablefmt="plain", colalign=alignment, disable_numparse=True
    )
    # Content is harmless: no further character ends a line.
    return "\n".join([line.rstrip() for line in table.split("\n")])

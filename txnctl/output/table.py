"""Rows as a table for people: headings, columns in line, numbers to the right, no frame.

On a narrower terminal long texts are folded within a column; elsewhere a row is a line.
"""

from __future__ import annotations

from typing import TypeVar

from txnctl.output.field import NUMERIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txnctl.output.column import Column
    from txnctl.output.field import Field

FOLDED = frozenset({"text", "list", "map"})
"""The kinds of fields whose cells may be folded: ids, positions and times are copied from tables."""

_FOLDED_MIN = 20
"""A column is not folded narrower than this, or its heading."""


R = TypeVar("R")


def list_table(rows: Sequence[R], fields: Iterable[Column[R] | Field], width: int | None = None) -> str:
    """One line a row under a line of headings; nothing at all where there are no rows.

    Columns read typed rows; fields read the JSON form of rows.

    Args:
        width: of the terminal, in columns; None folds nothing.
    """
    columns = [field for field in fields if field.heading]
    headings = [field.heading for field in columns]
    cells = [[field.cell(row) for field in columns] for row in rows]  # type: ignore[arg-type]
    if width is not None:
        cells = folded(headings, cells, [field.kind in FOLDED for field in columns], width)
    return aligned(
        headings,
        cells,
        ["right" if field.kind in NUMERIC else "left" for field in columns],
    )


def object_table(row: R, fields: Iterable[Column[R] | Field]) -> str:
    """One line a field: the heading in small letters, then the value.

    Columns read a typed row; fields read the JSON form of a row.
    """
    shown = [field for field in fields if field.heading]
    width = max(len(field.heading) for field in shown)
    lines = [(field.heading.lower(), field.cell(row)) for field in shown]  # type: ignore[arg-type]
    return "\n".join([f"{name:{width}}  {cell}".rstrip() for name, cell in lines])


def folded(
    headings: Sequence[str], cells: list[list[str]], may_fold: Sequence[bool], width: int
) -> list[list[str]]:
    """The cells with line ends inside, so that the table is at most `width` wide, if possible."""
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    over = sum(widths) + 2 * (len(widths) - 1) - width
    whole = list(widths)
    while over > 0:
        spare = [
            (now, at)
            for at, now in enumerate(widths)
            if may_fold[at] and now > max(_FOLDED_MIN, len(headings[at]))
        ]
        if not spare:
            break
        widths[max(spare)[1]] -= 1
        over -= 1
    if widths == whole:
        return cells
    from textwrap import wrap

    return [
        ["\n".join(wrap(cell, wide, break_on_hyphens=False)) for cell, wide in zip(row, widths, strict=True)]
        for row in cells
    ]


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
    return "\n".join([line.rstrip() for line in table.splitlines()])

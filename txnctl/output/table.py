"""Rows as a table for people: headings, columns in line, numbers to the right, no frame."""

from __future__ import annotations

from txnctl.output.field import NUMERIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnctl.output.field import Field


def list_table(rows: Sequence[Mapping[str, object]], fields: Sequence[Field]) -> str:
    """One line a row under a line of headings; nothing at all where there are no rows."""
    columns = [field for field in fields if field.heading]
    return aligned(
        [field.heading for field in columns],
        [[field.cell(row) for field in columns] for row in rows],
        ["right" if field.kind in NUMERIC else "left" for field in columns],
    )


def object_table(row: Mapping[str, object], fields: Sequence[Field]) -> str:
    """One line a field: its heading in small letters, then its value."""
    shown = [field for field in fields if field.heading]
    width = max(len(field.heading) for field in shown)
    return "\n".join([f"{field.heading.lower():{width}}  {field.cell(row)}".rstrip() for field in shown])


def aligned(headings: Sequence[str], cells: Sequence[Sequence[str]], alignment: Sequence[str]) -> str:
    """Columns in line, two spaces apart. Cells are text already made harmless."""
    if not cells:
        return ""
    import tabulate

    # Two more spaces after each heading than after its column are its habit.
    tabulate.MIN_PADDING = 0
    table = tabulate.tabulate(
        cells, headers=headings, tablefmt="plain", colalign=alignment, disable_numparse=True
    )
    return "\n".join([line.rstrip() for line in table.splitlines()])

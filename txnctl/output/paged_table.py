"""A table that comes in pages, as the rows come: columns in line with earlier pages, as far as known."""

from __future__ import annotations

from txnctl.output.human import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE_ROWS = 500
"""Rows to gather before a page is laid out, where nobody waits for them."""


class PagedTable:
    """A column is shown if among `always`, or once a row has a value there; the last one is not aligned."""

    def __init__(self, always: Sequence[str]) -> None:
        self._always = set(always)
        self._shown: list[str] = []
        self._widths: dict[str, int] = {}

    def page(self, rows: Sequence[dict[str, str]]) -> str:
        """Text of the next rows: cells by heading, in order, harmless already; "" is nothing."""
        if not rows:
            return ""
        known = set(self._shown) | self._always
        columns = [name for name in rows[0] if name in known or any(row[name] for row in rows)]
        lines = list(rows)
        if columns != self._shown:
            self._shown = columns
            lines.insert(0, {name: name for name in columns})
        for name in self._shown:
            self._widths[name] = max(self._widths.get(name, 0), *[len(line[name]) for line in lines])
        return "".join([self._line(line) for line in lines])

    def _line(self, cells: dict[str, str]) -> str:
        padded = [(cells[name] or UNKNOWN).ljust(self._widths[name]) for name in self._shown[:-1]]
        return "  ".join([*padded, cells[self._shown[-1]]]).rstrip() + "\n"

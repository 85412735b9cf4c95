"""A table that comes in pages, as the rows come: columns in line with earlier pages, as far as known."""

from __future__ import annotations

from txnctl.output.human import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE_ROWS = 500
"""Rows to gather before a page is laid out, where nobody waits for them."""

_CONTENT_MIN = 20
"""Columns for a value beside the others; a narrower one begins on a line of its own."""
_FURTHER = "    "


class PagedTable:
    """A column is shown if among `always`, or once a row has a value there; the last one is not aligned.

    Args:
        width: of the terminal, in columns: values continue below themselves, and columns that do not fit on further
            lines of the row; None leaves each row on one line.
    """

    def __init__(self, always: Sequence[str], width: int | None = None) -> None:
        self._always = set(always)
        self._width = width
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
        return "".join([f"{line.rstrip()}\n" for row in lines for line in self._lines(row)])

    def _lines(self, cells: dict[str, str]) -> Iterator[str]:
        padded = [(cells[name] or UNKNOWN).ljust(self._widths[name]) for name in self._shown[:-1]]
        content = cells[self._shown[-1]]
        if self._width is None:
            yield "  ".join([*padded, content])
            return
        now = ""
        for cell in padded:
            joined = f"{now}  {cell}" if now else cell
            if now and len(joined.rstrip()) > self._width:
                yield now
                joined = _FURTHER + cell
            now = joined
            while len(now.rstrip()) > self._width:
                yield now[: self._width]
                now = _FURTHER + now.rstrip()[self._width :]
        if len(now) + 2 + min(self._widths[self._shown[-1]], _CONTENT_MIN) > self._width:
            yield now
            now = _FURTHER[2:]
        room = max(1, self._width - len(now) - 2)
        yield f"{now}  {content[:room]}"
        for at in range(room, len(content), room):
            yield f"{' ' * len(now)}  {content[at : at + room]}"

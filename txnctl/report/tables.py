"""Tables of the page, with the words and columns of the tables that the commands print.

On a narrow screen a row becomes a card, so each cell carries its heading.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from txnctl.output.field import NUMERIC
from txnctl.output.human import UNKNOWN, plural
from txnctl.report.markup import Markup, foreign, join, tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.output.column import Column
    from txnctl.output.field import Field

R = TypeVar("R")

SHOWN = 20
"""Rows of a table that are not folded."""
TABLE_BYTES_MAX = 128 << 10
"""The most bytes of a table's rows on the page."""
SMALL_BYTES_MAX = 12 << 10
"""The same, of a table that stands beside others of its kind."""

_NARROW_COLUMNS = 3
"""A table of so many columns has room on a narrow screen too, where others become cards."""

_LONG = 24
"""Longer texts wrap within their column."""

_CODE = frozenset({"id", "position", "time"})


class TableLayout(NamedTuple):
    """The layout of a table.

    Attributes:
        shown: how many rows are not folded.
        anchors: the heading of the column whose value links to the explanation of a row elsewhere on the page.
        titled: whether the caption is visible.
        bytes_max: the most bytes of the rows.
    """

    shown: int = SHOWN
    anchors: str = ""
    titled: bool = False
    bytes_max: int = TABLE_BYTES_MAX


_LAYOUT = TableLayout()
TITLED = TableLayout(titled=True)
SMALL = TableLayout(5, titled=True, bytes_max=SMALL_BYTES_MAX)


def table(
    caption: str,
    rows: Sequence[R],
    columns: Sequence[Column[R] | Field],
    *,
    more: str,
    layout: TableLayout = _LAYOUT,
) -> Markup:
    """Return a table; rows beyond the layout's limit are folded, rows beyond its bytes counted.

    A column without a value in any row is left out.

    Args:
        caption: its title; without `titled` for screen readers alone.
        more: the command that lists the rows missing on the page.
    """
    columns = [column for column in columns if any(_text(row, column) != UNKNOWN for row in rows)]
    lines = list(_rows(rows, columns, layout))
    first, rest, left = lines[: layout.shown], lines[layout.shown :], len(rows) - len(lines)
    parts = [_table(caption, first, columns, layout)] if first else []
    if rest:
        folded = f"{plural(len(rest), 'more row')}" if first else caption
        parts.append(
            tag(
                "details",
                tag("summary", folded),
                _table(caption, rest, columns, layout._replace(titled=False)),
            )
        )
    if left > 0:
        parts.append(tag("p", f"{left:,} more: ", tag("code", more), class_="more"))
    return join(parts)


def _rows(rows: Sequence[R], columns: Sequence[Column[R] | Field], layout: TableLayout) -> Iterator[Markup]:
    """Yield the rows that have room."""
    room = layout.bytes_max
    for row in rows:
        written = tag("tr", [_cell(row, column, layout.anchors) for column in columns])
        room -= len(written)
        if room < 0:
            return
        yield written


def _table(
    caption: str, rows: Sequence[Markup], columns: Sequence[Column[R] | Field], layout: TableLayout
) -> Markup:
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption, class_=None if layout.titled else "unseen"),
            tag("thead", tag("tr", [_heading(column) for column in columns])),
            tag("tbody", rows),
        ),
        class_="scroll cards" if len(columns) > _NARROW_COLUMNS else "scroll",
        tabindex=0, role="region", aria_label=caption,
    )  # fmt: skip


def _text(row: R, column: Column[R] | Field) -> str:
    return str(column.cell(row))  # type: ignore[arg-type]


def _heading(column: Column[R] | Field) -> Markup:
    return tag("th", column.heading, scope="col", class_=_align(column.kind))


def keys_elsewhere(command: str) -> Markup:
    """Return the note in place of keys, which are not on the page: the command that shows the keys."""
    return tag("p", "Keys are not on this page: ", tag("code", command), class_="more")


def _align(kind: str) -> str | None:
    return "number" if kind in NUMERIC else None


def _cell(row: R, column: Column[R] | Field, anchors: str) -> Markup:
    text = _text(row, column)
    content = foreign(text, code=column.kind in _CODE and text != "-")
    if column.heading == anchors:
        content = tag("a", content, href=f"#{anchor(text)}")
    kind = word(text) if column.heading in _WORDS else None
    if kind:
        content = tag("span", content, class_=f"word {kind}")
    unknown = "none" if text in (UNKNOWN, "0") else None
    classes = [name for name in (_align(column.kind), "long" if len(text) > _LONG else unknown) if name]
    return tag("td", content, data_label=column.heading, class_=" ".join(classes) or None)


_WORDS = frozenset({"VERDICT", "ALIVE", "DEADLINE", "STATE"})
"""Headings of columns whose values are coloured as an alarm or as calm."""
_ALARMS = ("ORPHANED", "OVERDUE", "DEAD", "EXPIRED", "blocked", "mixed", "stopped", "no-consumer")
_CALM = ("ok", "yes", "alive")


def word(text: str) -> str | None:
    """Return the class of a value: `alarm`, `calm`, or neither."""
    if text.startswith(_ALARMS):
        return "alarm"
    return "calm" if text in _CALM else None


def anchor(txn: str) -> str:
    """Return the anchor of a transaction on the page: `0:7` is at `txn-0-7`."""
    return f"txn-{txn.replace(':', '-')}"


def facts(pairs: Sequence[tuple[str, str | Markup]]) -> Markup:
    """Return names and values as a list of definitions."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs])


def section(name: str, title: str, *parts: Markup | None) -> Markup:
    """Return a part of the page, with a title that links can target."""
    heading = tag("h2", title, id=name)
    return tag("section", heading, [part for part in parts if part is not None], aria_labelledby=name)


def folded(name: str, title: str, gist: str, *parts: Markup | None) -> Markup:
    """Return a part of the page that is folded behind the title and a few words about the content."""
    summary = tag("summary", tag("h2", title, id=name), " ", tag("span", gist, class_="gist"))
    inner = tag("details", summary, [part for part in parts if part is not None], class_="part")
    return tag("section", inner, aria_labelledby=name)


class Room:
    """The bytes that are left for the parts of one kind."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max

    def take(self, part: Markup) -> bool:
        """Return whether there is room for a part, and use the room."""
        fits = len(part) <= self._left
        self._left -= len(part) if fits else 0
        return fits

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
    from collections.abc import Callable, Sequence

    from txnctl.output.column import Column
    from txnctl.output.field import Field

R = TypeVar("R")

SHOWN = 20
"""Rows of a table that are not folded."""
ROWS_MAX = 1000
"""The most rows of a table on the page."""

_LONG = 24
"""Longer texts wrap within their column."""

_CODE = frozenset({"id", "position", "time"})


class TableLayout(NamedTuple):
    """The layout of a table.

    Attributes:
        shown: how many rows are not folded.
        anchors: the heading of the column whose value links to the explanation of a row elsewhere on the page.
        titled: whether the caption is visible.
    """

    shown: int = SHOWN
    anchors: str = ""
    titled: bool = False


_LAYOUT = TableLayout()
TITLED = TableLayout(titled=True)


def table(
    caption: str,
    rows: Sequence[R],
    columns: Sequence[Column[R] | Field],
    *,
    more: str,
    layout: TableLayout = _LAYOUT,
) -> Markup:
    """Return a table; rows beyond the layout's limit are folded, rows beyond `ROWS_MAX` counted.

    Args:
        caption: its title; without `titled` for screen readers alone.
        more: the command that lists the rows missing on the page.
    """
    first, rest, left = rows[: layout.shown], rows[layout.shown : ROWS_MAX], len(rows) - ROWS_MAX
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


def _table(
    caption: str, rows: Sequence[R], columns: Sequence[Column[R] | Field], layout: TableLayout
) -> Markup:
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption, class_=None if layout.titled else "unseen"),
            tag("thead", tag("tr", [_heading(column) for column in columns])),
            tag("tbody", [tag("tr", [_cell(row, column, layout.anchors) for column in columns]) for row in rows]),
        ),
        class_="scroll", tabindex=0, role="region", aria_label=caption,
    )  # fmt: skip


def _heading(column: Column[R] | Field) -> Markup:
    return tag("th", column.heading, scope="col", class_=_align(column.kind))


def keys_elsewhere(command: str) -> Markup:
    """Return the note in place of keys, which are not on the page: the command that shows the keys."""
    return tag("p", "Keys are not on this page: ", tag("code", command), class_="more")


def _align(kind: str) -> str | None:
    return "number" if kind in NUMERIC else None


def _cell(row: R, column: Column[R] | Field, anchors: str) -> Markup:
    text = column.cell(row)  # type: ignore[arg-type]
    content = foreign(text, code=column.kind in _CODE and text != "-")
    if column.heading == anchors:
        content = tag("a", content, href=f"#{anchor(text)}")
    kind = word(text) if column.heading in _WORDS else None
    if kind:
        content = tag("span", content, class_=f"word {kind}")
    unknown = "none" if text == UNKNOWN else None
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


def section(name: str, title: str, *parts: Callable[[], Markup] | Markup | None) -> Markup:
    """Return a part of the page, with a title that links can target."""
    return tag(
        "section",
        tag("h2", title, id=name),
        [part() if callable(part) else part for part in parts if part is not None],
        aria_labelledby=name,
    )

"""Tables of the page: the fields that the commands declare, the same words in the cells.

On a narrow screen a row becomes a card, so each cell carries its heading.
"""

from __future__ import annotations

from txnctl.output.field import NUMERIC
from txnctl.output.human import UNKNOWN, plural
from txnctl.report.markup import Markup, foreign, join, tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from txnctl.output.field import Field

    Row = dict[str, Any]

SHOWN = 20
"""Rows that stand open on the page."""
ROWS_MAX = 1000
"""Rows that are on the page at all."""

_LONG = 24
"""Texts of more letters than this are folded within their column."""

_CODE = frozenset({"id", "position", "time"})


def table(
    caption: str,
    rows: Sequence[Row],
    fields: Sequence[Field],
    *,
    more: str,
    shown: int = SHOWN,
    anchors: str = "",
    titled: bool = False,
) -> Markup:
    """A table; what is too long for the page is folded, and then counted and pointed at.

    Args:
        caption: what it lists; seen only where it is `titled`, heard always.
        more: the command that lists the rows which are not on the page.
        anchors: the field whose value makes the link to what is told of a row elsewhere on the page.
    """
    first, rest, left = rows[:shown], rows[shown:ROWS_MAX], len(rows) - ROWS_MAX
    parts = [_table(caption, first, fields, anchors, titled)] if first else []
    if rest:
        folded = f"{plural(len(rest), 'more row')}" if first else caption
        parts.append(
            tag("details", tag("summary", folded), _table(caption, rest, fields, anchors, titled=False))
        )
    if left > 0:
        parts.append(tag("p", f"{left:,} more: ", tag("code", more), class_="more"))
    return join(parts)


def _table(caption: str, rows: Sequence[Row], fields: Sequence[Field], anchors: str, titled: bool) -> Markup:
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption, class_=None if titled else "unseen"),
            tag("thead", tag("tr", [tag("th", each.heading, scope="col", class_=_align(each)) for each in fields])),
            tag("tbody", [tag("tr", [_cell(row, each, anchors) for each in fields]) for row in rows]),
        ),
        class_="scroll", tabindex=0, role="region", aria_label=caption,
    )  # fmt: skip


def keys_elsewhere(command: str) -> Markup:
    """Where a key would stand: that there is none on the page, and the command that tells it."""
    return tag("p", "Keys are not on this page: ", tag("code", command), class_="more")


def _align(field: Field) -> str | None:
    return "number" if field.kind in NUMERIC else None


def _cell(row: Row, field: Field, anchors: str) -> Markup:
    text = field.cell(row)
    told = foreign(text, code=field.kind in _CODE and text != "-")
    if field.name == anchors:
        told = tag("a", told, href=f"#{anchor(text)}")
    kind = word(text) if field.name in _WORDS else None
    if kind:
        told = tag("span", told, class_=f"word {kind}")
    unknown = "none" if text == UNKNOWN else None
    classes = [each for each in (_align(field), "long" if len(text) > _LONG else unknown) if each]
    return tag("td", told, data_label=field.heading, class_=" ".join(classes) or None)


_WORDS = frozenset({"verdict", "alive", "deadline", "state"})
"""Fields whose words stand out where they ask for attention."""
_ALARMS = ("ORPHANED", "OVERDUE", "DEAD", "EXPIRED", "blocked", "mixed", "stopped", "no-consumer")
_CALM = ("ok", "yes", "alive")


def word(text: str) -> str | None:
    """How loud a word is: `alarm`, `calm`, or neither."""
    if text.startswith(_ALARMS):
        return "alarm"
    return "calm" if text in _CALM else None


def anchor(txn: str) -> str:
    """The place on the page where a transaction is told of: `0:7` is at `txn-0-7`."""
    return f"txn-{txn.replace(':', '-')}"


def facts(pairs: Sequence[tuple[str, str | Markup]]) -> Markup:
    """Names and what is to be said of each, as a list of definitions."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", told)) for name, told in pairs])


def section(name: str, title: str, *parts: Callable[[], Markup] | Markup | None) -> Markup:
    """A part of the page, with its title, that its contents can point at."""
    return tag(
        "section",
        tag("h2", title, id=name),
        [each() if callable(each) else each for each in parts if each is not None],
        aria_labelledby=name,
    )

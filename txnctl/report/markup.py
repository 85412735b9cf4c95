"""Elements of HTML and SVG as text. What is not markup already is escaped: names, labels and reasons are foreign.

Every element is closed, so the page is well-formed XML too, which is how tests read it. Blocks, rows and shapes each
end their line, which is how grep reads it.
"""

from __future__ import annotations

from html import escape

from txnctl.output.escape import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    Attribute: TypeAlias = str | int | float | bool | None
    Child: TypeAlias = str | Iterable[str] | None


class Markup(str):
    """Text that is markup, and goes into an element as it is."""

    __slots__ = ()


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """An element; `class_` is its class, `stroke_width` is written `stroke-width`.

    Args:
        children: text, which is escaped; markup; several of them; None is left out.
        attributes: None and False leave one out, True gives it its own name as value.
    """
    inner = "".join([_child(each) for each in children])
    opening = f"<{name}{''.join([_attribute(*each) for each in attributes.items()])}"
    closing = "\n" if name in _ENDS_LINE else ""
    written = f"{opening}>{inner}</{name}>" if inner or name not in _EMPTY else f"{opening}/>"
    return Markup(written + closing)


_EMPTY = frozenset({"meta", "br", "hr", "rect", "line", "path", "circle", "polygon"})
"""Elements without content; HTML knows no short form of the others."""

_ENDS_LINE = frozenset({
    "head", "meta", "title", "style", "body", "header", "nav", "main", "section", "article", "footer", "h1", "h2", "h3",
    "p", "ul", "li", "dl", "div", "table", "caption", "thead", "tbody", "tr", "details", "summary", "figure", "svg",
    "desc", "g", "rect", "line", "polygon", "text",
})  # fmt: skip
"""Elements that end their line, so that the page can be searched line by line: where a space shows nothing."""


def foreign(text: object, *, code: bool = False, **attributes: Attribute) -> Markup:
    """Text of a user on the page: whatever direction it runs in, it stays within its place."""
    inner = tag("bdi", str(text), **({} if code else attributes))
    return tag("code", inner, **attributes) if code else inner


def join(parts: Iterable[str]) -> Markup:
    """Several pieces as one."""
    return Markup("".join([_child(each) for each in parts]))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return escape(printable(child), quote=False)
    return "".join([_child(each) for each in child])


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    return f' {written}="{_value(written if value is True else value)}"'


def _value(value: str | int | float) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return escape(printable(str(value)))

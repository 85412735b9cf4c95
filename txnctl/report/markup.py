"""Elements of HTML and SVG as text. All text but `Markup` is escaped: names, labels and reasons come from users.

Every element is closed, so the page is well-formed XML too, and tests parse it as XML. Blocks, rows and shapes each end
their line, so that grep shows single elements.
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
    """Text that is markup already, and is not escaped."""

    __slots__ = ()


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element; `class_` is its class, `stroke_width` is written `stroke-width`.

    Args:
        children: text, which is escaped; markup; an iterable of children; None for nothing.
        attributes: None and False omit an attribute, True repeats the name as value.
    """
    inner = "".join([_child(child) for child in children])
    opening = f"<{name}{''.join([_attribute(*child) for child in attributes.items()])}"
    closing = "\n" if name in _ENDS_LINE else ""
    written = f"{opening}>{inner}</{name}>" if inner or name not in _EMPTY else f"{opening}/>"
    return Markup(written + closing)


_EMPTY = frozenset({"meta", "br", "hr", "rect", "line", "path", "circle", "polygon"})
"""Elements without content; HTML has no short form of other elements."""

_ENDS_LINE = frozenset({
    "head", "meta", "title", "style", "body", "header", "nav", "main", "section", "article", "footer", "h1", "h2", "h3",
    "p", "ul", "li", "dl", "div", "table", "caption", "thead", "tbody", "tr", "details", "summary", "figure", "svg",
    "desc", "g", "rect", "line", "polygon", "text",
})  # fmt: skip
"""Elements followed by a line end, where white space is not rendered, so that grep can search the page."""


def foreign(text: object, *, code: bool = False, **attributes: Attribute) -> Markup:
    """Return a user's text, isolated so that the direction of the text does not affect the page."""
    inner = tag("bdi", str(text), **({} if code else attributes))
    return tag("code", inner, **attributes) if code else inner


def prose(text: str) -> Markup:
    """Return a text whose commands in backquotes are elements, so that a copied command has no backquote."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return join([text])
    return join([tag("code", part) if number % 2 else part for number, part in enumerate(parts)])


def join(parts: Iterable[str]) -> Markup:
    """Concatenate pieces."""
    return Markup("".join([_child(part) for part in parts]))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return escape(printable(child), quote=False)
    return "".join([_child(item) for item in child])


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    return f' {written}="{_value(written if value is True else value)}"'


def _value(value: str | int | float) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return escape(printable(str(value)))

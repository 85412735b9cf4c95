"""Drawings as inline SVG, coloured by the style sheet of the page (`style.py`)."""

from __future__ import annotations

from txnctl.report.markup import Markup, tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.report.shapes import DrawingRow, Label, PageDrawing, Shape


def svg(drawing: PageDrawing, name: str, class_: str) -> Markup:
    """Return the picture.

    Args:
        name: an id, unique on the page.
    """
    return tag(
        "svg",
        tag("title", drawing.title, id=f"{name}-title"),
        tag("desc", drawing.description, id=f"{name}-desc"),
        [_row(row) for row in drawing.rows],
        class_=class_, viewBox=f"0 0 {drawing.width:g} {drawing.height:g}", role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )  # fmt: skip


def sample(*shapes: Shape, width: int = 24, height: int = 14) -> Markup:
    """Return a few shapes for a legend."""
    return tag(
        "svg",
        [_shape(shape) for shape in shapes],
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        aria_hidden="true",
    )


def _row(row: DrawingRow) -> Markup:
    return tag(
        "g",
        tag("title", row.note) if row.note else None,
        [_shape(figure) for figure in row.shapes],
        [_label(figure) for figure in row.labels],
    )


def _label(label: Label) -> Markup:
    squeezed = None if label.text.isascii() else label.width
    return tag(
        "text", label.text, class_=label.kind, x=label.x, y=label.baseline,
        text_anchor="end" if label.ends else None, textLength=squeezed,
        lengthAdjust="spacingAndGlyphs" if squeezed else None,
    )  # fmt: skip


def _shape(shape: Shape) -> Markup:
    return _FORMS[shape.form](shape)


def _rect(shape: Shape) -> Markup:
    return tag(
        "rect", class_=shape.kind, x=shape.x, y=shape.y, width=shape.width, height=shape.height
    )  # fmt: skip


def _stripes(shape: Shape) -> Markup:
    """Draw a box with upright stripes: a line as thick as the box is high, with short dashes."""
    middle = shape.y + shape.height / 2
    return Markup(
        _rect(shape)
        + tag(
            "line", class_=f"{shape.kind} stripes", x1=shape.x, y1=middle, x2=shape.x + shape.width, y2=middle,
            stroke_width=shape.height,
        )
    )  # fmt: skip


def _line(shape: Shape) -> Markup:
    left, top, right, bottom = shape.box
    return tag("line", class_=shape.kind, x1=left, y1=top, x2=right, y2=bottom)


def _down(shape: Shape) -> Markup:
    left, top, right, bottom = shape.box
    return _polygon(shape, (left, top), (right, top), ((left + right) / 2, bottom))


def _diamond(shape: Shape) -> Markup:
    left, top, right, bottom = shape.box
    across, down = (left + right) / 2, (top + bottom) / 2
    return _polygon(shape, (across, top), (right, down), (across, bottom), (left, down))


def _break(shape: Shape) -> Markup:
    """Draw two slanted strokes through the track."""
    left, top, right, bottom = shape.box
    middle = (left + right) / 2
    return _polygon(shape, (left, bottom), (middle, top), (right, top), (middle, bottom))


def _polygon(shape: Shape, *points: tuple[float, float]) -> Markup:
    written = " ".join([f"{x:g},{y:g}" for x, y in points])
    return tag("polygon", class_=f"{shape.kind} {shape.form}", points=written)


_FORMS = {
    "rect": _rect, "stripes": _stripes, "line": _line, "down": _down, "diamond": _diamond, "break": _break,
}  # fmt: skip

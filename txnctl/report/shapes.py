"""Parts of a drawing: boxes and labels in the units of the picture, without colours. Values only.

Labels use a fixed-width font, so that their width is known without a browser; letters missing in the font are squeezed
to the expected width.
"""

from __future__ import annotations

from dataclasses import dataclass

from txnctl.output.escape import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Box = tuple[float, float, float, float]

FONT = 12
"""The height of letters, in units."""
CELL = 7.25
"""The width of a letter. Fixed-width fonts have 0.6 of their height, and none of the named fonts has more."""
LINE = 15
_ASCENT, _DESCENT = 11, 3
ELLIPSIS = "…"


@dataclass(slots=True)
class Shape:
    """A figure that fills a box.

    Attributes:
        form: rect, stripes, line (one edge of the box), down (a triangle that points downwards), diamond, break.
        kind: the meaning, which selects the colours.
    """

    form: str
    kind: str
    x: float
    y: float
    width: float
    height: float

    @property
    def box(self) -> Box:
        """Left, top, right, bottom."""
        return self.x, self.y, self.x + self.width, self.y + self.height


class Label:
    """A line of text.

    Attributes:
        x: the start; with `ends` the end.
        baseline: the line under the letters.
    """

    __slots__ = ("baseline", "ends", "kind", "text", "x")

    def __init__(self, text: str, kind: str, x: float, baseline: float, *, ends: bool = False) -> None:
        self.text = printable(text)
        self.kind = kind
        self.x = x
        self.baseline = baseline
        self.ends = ends

    @property
    def width(self) -> float:
        return cells(self.text) * CELL

    @property
    def box(self) -> Box:
        """Left, top, right, bottom."""
        left = self.x - self.width if self.ends else self.x
        return left, self.baseline - _ASCENT, left + self.width, self.baseline + _DESCENT


class DrawingRow:
    """Shapes and labels of one track, and its tooltip."""

    __slots__ = ("labels", "note", "shapes")

    def __init__(self, note: str) -> None:
        self.note = note
        self.shapes: list[Shape] = []
        self.labels: list[Label] = []


class PageDrawing:
    """A picture: size, rows, title, and description in words."""

    __slots__ = ("description", "height", "rows", "title", "width")

    def __init__(self, title: str, description: str, width: float) -> None:
        self.title = title
        self.description = description
        self.width = width
        self.height = 0.0
        self.rows: list[DrawingRow] = []

    def labels(self) -> Iterator[Label]:
        """Yield the labels of all rows."""
        for row in self.rows:
            yield from row.labels

    def shapes(self) -> Iterator[Shape]:
        """Yield the shapes of all rows."""
        for row in self.rows:
            yield from row.shapes


def cells(text: str) -> int:
    """Return the width of a text in letters; East Asian letters count as two."""
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def fitted(text: str, room: int) -> str:
    """Truncate a text to so many cells, with an ellipsis; control characters are escaped."""
    text = printable(text)
    if cells(text) <= room:
        return text
    while text and cells(text) + 1 > room:
        text = text[:-1]
    return f"{text}{ELLIPSIS}" if room > 0 else ""


def in_lines(text: str, room: int, lines_max: int) -> list[str]:
    """Break a text into lines of so many cells, at a space where there is one.

    The last line ends in an ellipsis where the text is longer.

    Args:
        room: at least 2 cells.
    """
    text, lines = printable(text), list[str]()
    while cells(text) > room and len(lines) < lines_max - 1:
        at = len(text)
        while cells(text[:at]) > room:
            at -= 1
        space = text.rfind(" ", 1, at + 1)
        at = space if space > at // 2 else at
        lines.append(text[:at])
        text = text[at:].lstrip(" ")
    return [*lines, fitted(text, room)]


def lanes(labels: list[tuple[float, float]], left: float, right: float) -> list[tuple[float, int]]:
    """Place labels, given the wished start and width of each: return start and lane.

    The first label is in lane 0, and each further label in the first lane without a collision; all within left and
    right.
    """
    taken: list[list[tuple[float, float]]] = []
    places = []
    for x, width in labels:
        start = max(left, min(x, right - width))
        lane = next(
            (
                number
                for number, extents in enumerate(taken)
                if all(start + width + CELL <= a or b + CELL <= start for a, b in extents)
            ),
            len(taken),
        )
        if lane == len(taken):
            taken.append([])
        taken[lane].append((start, start + width))
        places.append((start, lane))
    return places

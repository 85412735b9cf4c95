"""What a drawing is made of: boxes and labels in the units of its picture, without colours. Values only.

Labels are set in a type of fixed width, so that how wide one is can be told without a browser; what falls out of
that (a script for which the type has no letters) is squeezed to the width that was reckoned with.
"""

from __future__ import annotations

from txnctl.output.escape import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Box = tuple[float, float, float, float]

FONT = 12
"""The height of letters, in units."""
CELL = 7.25
"""The width of one. Types of fixed width have 0.6 of their height, and none we name has more."""
LINE = 15
_ASCENT, _DESCENT = 11, 3
ELLIPSIS = "…"


class Shape:
    """A figure that fills a box.

    Attributes:
        form: rect, stripes, line (one edge of the box), down (a triangle that points downwards), diamond, break.
        kind: what it stands for; its colours come from there.
    """

    __slots__ = ("form", "height", "kind", "width", "x", "y")

    def __init__(self, form: str, kind: str, x: float, y: float, width: float, height: float) -> None:
        self.form = form
        self.kind = kind
        self.x = x
        self.y = y
        self.width = width
        self.height = height

    @property
    def box(self) -> Box:
        """Left, top, right, bottom."""
        return self.x, self.y, self.x + self.width, self.y + self.height


class Label:
    """A line of text.

    Attributes:
        x: where it starts; with `ends` where it ends.
        baseline: what its letters stand on.
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


class Row:
    """Shapes and labels that belong together, and what is said of them in full."""

    __slots__ = ("labels", "note", "shapes")

    def __init__(self, note: str) -> None:
        self.note = note
        self.shapes: list[Shape] = []
        self.labels: list[Label] = []


class Drawing:
    """A picture: its size, its rows, what it is called, and what it shows in words."""

    __slots__ = ("description", "height", "rows", "title", "width")

    def __init__(self, title: str, description: str, width: float) -> None:
        self.title = title
        self.description = description
        self.width = width
        self.height = 0.0
        self.rows: list[Row] = []

    def labels(self) -> Iterator[Label]:
        """All of them."""
        for row in self.rows:
            yield from row.labels

    def shapes(self) -> Iterator[Shape]:
        """All of them."""
        for row in self.rows:
            yield from row.shapes


def cells(text: str) -> int:
    """How many letters' room a text takes: those of East Asia take two."""
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def fitted(text: str, room: int) -> str:
    """The text, harmless, in so many cells: what is too long ends in an ellipsis."""
    text = printable(text)
    if cells(text) <= room:
        return text
    while text and cells(text) + 1 > room:
        text = text[:-1]
    return f"{text}{ELLIPSIS}" if room > 0 else ""


def lanes(wanted: list[tuple[float, float]], left: float, right: float) -> list[tuple[float, int]]:
    """Places for labels that would like to start at x and are so wide: where each starts, and in which lane.

    The first comes into lane 0, and each into the first lane in which it touches none; all within left and right.
    """
    taken: list[list[tuple[float, float]]] = []
    found = []
    for x, width in wanted:
        start = max(left, min(x, right - width))
        lane = next(
            (
                number
                for number, there in enumerate(taken)
                if all(start + width + CELL <= a or b + CELL <= start for a, b in there)
            ),
            len(taken),
        )
        if lane == len(taken):
            taken.append([])
        taken[lane].append((start, start + width))
        found.append((start, lane))
    return found

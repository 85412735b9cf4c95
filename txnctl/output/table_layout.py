"""The layout of a table for a width: the one place that decides which columns a narrow terminal shows, and how.

A table that fits is left whole. Else, as far as needed and in this order: empty columns go; constant columns go to a
line above; words are shortened; columns go by rank, and a line below names these columns and the option `-o wide`;
texts are folded; columns that still do not fit go to further lines of each row. Ids, positions and times are copied
from tables: folded only where wider than the terminal, never shortened.
"""

from __future__ import annotations

from re import compile as pattern
from typing import NamedTuple, Protocol

from txnctl.output.field import NUMERIC
from txnctl.output.human import UNKNOWN
from txnctl.output.prose import Laid, wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FOLDED = frozenset({"text", "list", "map"})
"""The kinds of columns whose cells may be folded."""

_FOLDED_MIN = 20
"""A column is not folded narrower than this, or the heading."""
_WORD_MAX = 32
"""A word of a text is broken only where longer; a name of a list never is."""
_QUOTED = pattern(r"`[^`\n]*`\S*")
"""A command or name in backquotes, with the punctuation behind."""
_QUOTED_MAX = 48
"""A command in backquotes is broken only where longer."""
_GAP = 2
_FURTHER = 4
"""The indentation of the further lines of a row."""
_JOINED = "\0"
"""Stands for a space that no line ends at; cells have no control characters."""


class Short(NamedTuple):
    """A shorter heading, and for some cells shorter words."""

    heading: str
    words: dict[str, str]


class Declared(Protocol):
    """The declaration of a column about the layout.

    Attributes:
        rank: 0 for a column that stays; of the others the highest goes first.
    """

    heading: str
    kind: str
    rank: int
    short: Short | None


class LaidColumn(NamedTuple):
    """A column with the cells, harmless on a terminal."""

    heading: str
    kind: str
    cells: list[str]
    rank: int = 0
    short: Short | None = None

    @property
    def width(self) -> int:
        """The width unfolded."""
        return max(len(self.heading), *map(len, self.cells))

    @property
    def least(self) -> int:
        """The least width, folded where the kind allows."""
        if self.kind not in FOLDED:
            return self.width
        word = max([len(word) for cell in self.cells for word in cell.split()], default=0)
        if self.kind != "list":
            quoted = [len(text) for cell in self.cells if "`" in cell for text in _QUOTED.findall(cell)]
            word = max(min(word, _WORD_MAX), min(max(quoted, default=0), _QUOTED_MAX))
        return min(self.width, max(_FOLDED_MIN, len(self.heading), word))


class TextTable:
    """The lines of a table.

    Attributes:
        facts: above the headings, the constant columns.
        headings: one line, or several where a row has several.
        rows: the lines of each row.
        notes: below, the columns that are not shown.
    """

    __slots__ = ("facts", "headings", "notes", "rows")

    def __init__(
        self, facts: list[str], headings: list[str], rows: list[list[str]], notes: list[str]
    ) -> None:
        self.facts = facts
        self.headings = headings
        self.rows = rows
        self.notes = notes

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __iter__(self) -> Iterator[str]:
        for lines in (self.facts, self.headings, *self.rows, self.notes):
            yield from map(Laid, lines)

    def __str__(self) -> str:
        return "\n".join(self)

    def changed(
        self, row: Callable[[str], str], head: Callable[[str], str] = str, indent: int = 0
    ) -> TextTable:
        """The table with each line of a row, and each further line, replaced."""
        before = " " * indent
        return TextTable(
            [before + head(line) for line in self.facts],
            [before + head(line) for line in self.headings],
            [[before + row(line) for line in lines] for lines in self.rows],
            [before + head(line) for line in self.notes],
        )


def laid_out(columns: Sequence[LaidColumn], width: int | None) -> TextTable:
    """The table, at most `width` wide.

    Args:
        columns: at least one; all with as many cells.
        width: in columns; None leaves the table whole.
    """
    if not columns or not columns[0].cells:
        return TextTable([], [], [], [])
    if width is None or _taken(columns) <= width:
        return TextTable([], *_lines([list(columns)]), [])
    shown, same = _without_same([column for column in columns if _has_content(column)] or columns, width)
    if _taken(shown) > width:
        shown = [_shortened(column) for column in shown]
    shown, dropped = _without_ranked(shown, width)
    facts, notes = [], []
    # A heading such as `#`, of the number of a row, is no word of a sentence.
    named = [column for column in same if column.heading[:1].isalpha()]
    if named:
        facts = wrapped(f"{_everywhere(columns)} {', '.join([_fact(column) for column in named])}.", width)
    if dropped:
        names = ", ".join([column.heading for column in dropped])
        notes = wrapped(f"Not shown: {names}; -o wide shows all.", width)
    groups = [
        _folded(group, width - (_FURTHER if at else 0)) for at, group in enumerate(_grouped(shown, width))
    ]
    return TextTable(facts, *_lines(groups), notes)


def _taken(columns: Sequence[LaidColumn]) -> int:
    return sum([column.width for column in columns]) + _GAP * (len(columns) - 1)


def _least(columns: Sequence[LaidColumn]) -> int:
    return sum([column.least for column in columns]) + _GAP * (len(columns) - 1)


def _has_content(column: LaidColumn) -> bool:
    return any(cell not in ("", UNKNOWN) for cell in column.cells)


def _ranked(columns: Sequence[LaidColumn]) -> list[LaidColumn]:
    """The columns that may go, the first to go first."""
    return sorted([column for column in columns if column.rank], key=lambda column: -column.rank)


def _without_same(columns: Sequence[LaidColumn], width: int) -> tuple[list[LaidColumn], list[LaidColumn]]:
    """Part the columns into shown and constant ones; constant columns stay where there is room.

    Among several rows any constant column may go: no row is told from another by a constant.
    """
    shown, same = list(columns), []
    others = [column for column in columns if not column.rank] if len(columns[0].cells) > 1 else []
    for column in [*_ranked(columns), *others]:
        if _taken(shown) <= width:
            break
        if len(set(column.cells)) == 1 and column.width <= width // 2:
            shown.remove(column)
            same.append(column)
    return shown, [column for column in columns if column in same]


def _without_ranked(columns: Sequence[LaidColumn], width: int) -> tuple[list[LaidColumn], list[LaidColumn]]:
    """Part the columns into shown and dropped ones, so that a row takes one line, or as few as possible."""
    shown = list(columns)
    for column in _ranked(columns):
        if _least(shown) <= width:
            break
        shown.remove(column)
    lines = len(_grouped(shown, width))
    for column in reversed(_ranked(columns)):
        more = [other for other in columns if other in shown or other is column]
        if len(_grouped(more, width)) <= lines:
            shown = more
    return shown, [column for column in columns if column not in shown]


def _shortened(column: LaidColumn) -> LaidColumn:
    if column.short is None:
        return column
    words = column.short.words
    return column._replace(
        heading=column.short.heading, cells=[words.get(cell, cell) for cell in column.cells]
    )


def _everywhere(columns: Sequence[LaidColumn]) -> str:
    return "Every row:" if len(columns[0].cells) > 1 else "Also:"


def _fact(column: LaidColumn) -> str:
    return f"{column.heading} {column.cells[0]}"


def _grouped(columns: Sequence[LaidColumn], width: int) -> list[list[LaidColumn]]:
    """The columns of each line of a row: one line, if that is wide enough."""
    groups: list[list[LaidColumn]] = []
    for column in columns:
        room = width - (_FURTHER if len(groups) > 1 else 0)
        if groups and _least([*groups[-1], column]) <= room:
            groups[-1].append(column)
        else:
            groups.append([column])
    return groups


def _folded(columns: list[LaidColumn], width: int) -> list[LaidColumn]:
    """The columns with line ends inside cells, the widest narrowed first, as far as needed."""
    widths = [column.width for column in columns]
    over = _taken(columns) - width
    while over > 0:
        spare = [(wide, at) for at, wide in enumerate(widths) if wide > columns[at].least]
        if not spare:
            break
        # As far as the next one, not a column at a time: a value may have a million.
        wide, at = max(spare)
        next_wide = max([other for other, _ in spare if other < wide], default=0)
        step = min(over, wide - max(columns[at].least, min(next_wide, wide - 1)))
        widths[at] -= step
        over -= step
    return [
        column._replace(cells=[_cut(fold(cell, wide, column.kind), width) for cell in column.cells])
        if wide < column.width
        else column._replace(cells=[_cut(cell, width) for cell in column.cells])
        for column, wide in zip(columns, widths, strict=True)
    ]


def _cut(cell: str, width: int) -> str:
    """The cell with the lines that are wider than the terminal, such as a long name or key, in several."""
    if len(cell) <= width:
        return cell
    return "\n".join(
        [line[at : at + width] for line in cell.split("\n") for at in range(0, max(len(line), 1), width)]
    )


def fold(cell: str, width: int, kind: str) -> str:
    """The cell in lines of a width; the names of a list stay whole, and so does what stands in backquotes."""
    from textwrap import wrap

    if "`" in cell:
        # A command that is wider than the cell breaks between its words.
        cell = _QUOTED.sub(
            lambda quoted: quoted[0].replace(" ", _JOINED) if len(quoted[0]) <= width else quoted[0], cell
        )
    lines = wrap(cell, width, break_on_hyphens=False, break_long_words=kind != "list")
    return "\n".join(lines).replace(_JOINED, " ")


def _lines(groups: list[list[LaidColumn]]) -> tuple[list[str], list[list[str]]]:
    """The lines of the headings, and those of each row."""
    headings: list[str] = []
    rows: list[list[str]] = [[] for _ in groups[0][0].cells]
    for at, group in enumerate(groups):
        before = " " * (_FURTHER if at else 0)
        first, *lines = _aligned(group)
        headings.append(before + first)
        taken = 0
        for number, row in enumerate(rows):
            count = max([column.cells[number].count("\n") for column in group]) + 1
            row += [before + line for line in lines[taken : taken + count]]
            taken += count
    return headings, rows


def _aligned(group: list[LaidColumn]) -> list[str]:
    from txnctl.output.table import aligned

    return aligned(
        [column.heading for column in group],
        list(zip(*[column.cells for column in group], strict=True)),
        ["right" if column.kind in NUMERIC else "left" for column in group],
    ).split("\n")

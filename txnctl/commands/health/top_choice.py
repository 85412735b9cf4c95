"""The choices of the operator at `txnctl top`: table, row, order, filter, opened row; changed by keys. Pure.

A key is a character, or one of the names `up`, `down`, `page-up`, `page-down`, `home`, `end`, `enter`, `escape`, `tab`,
`back-tab` and `backspace`. A chosen row stays chosen while the order or its neighbours change.
"""

from __future__ import annotations

from txnctl.commands.health.top_tables import TABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

PROBLEMS, TOPICS = 0, 1
"""Numbers of tables."""


class LiveChoice:
    """The choices; the screen is drawn from them and from the facts.

    Attributes:
        table: the number of the table with the chosen row.
        body: the number of the table below the problems.
        filter: rows without this text are hidden; "" hides none.
        is_typing: keys go to the filter.
        opened: the opened row and its table; None while no row is opened.
        shows_help: the keys are shown.
        offset: lines that the opened text is scrolled by.
        help_offset: lines that the help is scrolled by.
        page: rows or lines of the screen drawn last.
        has_left: the screen is to end.
    """

    def __init__(self, *, has_problems: bool) -> None:
        self.table = PROBLEMS if has_problems else TOPICS
        self.body = TOPICS
        self.filter = ""
        self.is_typing = self.shows_help = self.has_left = False
        self.opened: tuple[int, Any] | None = None
        self.offset = self.help_offset = 0
        self.page = 1
        self._orders = [0] * len(TABLES)
        self._backwards = [False] * len(TABLES)
        self._identities: list[object] = [None] * len(TABLES)
        self._numbers = [0] * len(TABLES)

    def order_name(self, table: int) -> str:
        """`age`, or `age, backwards`."""
        name = TABLES[table].orders[self._orders[table]].name
        return f"{name}, backwards" if self._backwards[table] else name

    def arranged(self, table: int, rows: Sequence[Any]) -> list[Any]:
        """The rows of a table that the filter leaves, in the order chosen."""
        kept = [row for row in rows if not self.filter or self.filter.lower() in _text(table, row).lower()]
        if table == PROBLEMS:
            return list(rows)
        return sorted(
            kept, key=TABLES[table].orders[self._orders[table]].key, reverse=not self._backwards[table]
        )

    def number(self, table: int, arranged: Sequence[Any]) -> int:
        """The number of the chosen row among the arranged ones; the row itself, or the one in its place."""
        identity = self._identities[table]
        numbers = [at for at, row in enumerate(arranged) if TABLES[table].identity(row) == identity]
        number = numbers[0] if numbers else min(self._numbers[table], max(0, len(arranged) - 1))
        self._choose(table, arranged, number)
        return number

    def _choose(self, table: int, arranged: Sequence[Any], number: int) -> None:
        self._numbers[table] = number
        if number < len(arranged):
            self._identities[table] = TABLES[table].identity(arranged[number])

    def press(self, key: str, rows: Sequence[Sequence[Any]]) -> None:
        """Change the choices by a key.

        Args:
            rows: those of each table.
        """
        if self.is_typing:
            self._type(key)
        elif key == "q":
            self.has_left = True
        elif self.shows_help:
            self._read_help(key)
        elif self.opened is not None:
            self._read(key)
        elif key in ("enter", "\n"):
            arranged = self.arranged(self.table, rows[self.table])
            if arranged:
                self.opened = self.table, arranged[self.number(self.table, arranged)]
                self.offset = 0
        elif key in _STEPS:
            self._move(key, self.arranged(self.table, rows[self.table]))
        else:
            self._command(key)

    def _command(self, key: str) -> None:
        if key in ("tab", "back-tab"):
            self._go_to((self.table + (1 if key == "tab" else -1)) % len(TABLES))
        elif key.isdecimal() and 1 <= int(key) <= len(TABLES):
            self._go_to(int(key) - 1)
        elif key == "s":
            orders = TABLES[self.body].orders
            self._orders[self.body] = (self._orders[self.body] + 1) % len(orders)
        elif key == "r":
            self._backwards[self.body] = not self._backwards[self.body]
        elif key == "/":
            self.is_typing = True
            self._go_to(self.body)
        elif key == "?":
            self._open_help()
        elif key == "escape":
            self.filter = ""

    def _go_to(self, table: int) -> None:
        self.table = table
        if table != PROBLEMS:
            self.body = table

    def _type(self, key: str) -> None:
        if key in ("enter", "\n"):
            self.is_typing = False
        elif key == "escape":
            self.is_typing, self.filter = False, ""
        elif key == "backspace":
            self.filter = self.filter[:-1]
        elif len(key) == 1 and key.isprintable():
            self.filter += key

    def _open_help(self) -> None:
        self.shows_help, self.help_offset = True, 0

    def _read_help(self, key: str) -> None:
        if key in _STEPS:
            self.help_offset = max(0, self.help_offset + self._step(key))
        else:
            self.shows_help = False

    def _read(self, key: str) -> None:
        if key in ("escape", "backspace", "enter", "\n"):
            self.opened = None
        elif key == "?":
            self._open_help()
        elif key in _STEPS:
            self.offset = max(0, self.offset + self._step(key))

    def _move(self, key: str, arranged: Sequence[Any]) -> None:
        number = self.number(self.table, arranged) + self._step(key)
        self._choose(self.table, arranged, max(0, min(number, len(arranged) - 1)))

    def _step(self, key: str) -> int:
        unit, count = _STEPS[key]
        return count * (self.page if unit == "page" else 1)


_FAR = 1 << 30
_STEPS = {
    "up": ("line", -1),
    "down": ("line", 1),
    "k": ("line", -1),
    "j": ("line", 1),
    "page-up": ("page", -1),
    "page-down": ("page", 1),
    " ": ("page", 1),
    "home": ("line", -_FAR),
    "end": ("line", _FAR),
}


def _text(table: int, row: Any) -> str:
    """All cells of a row."""
    return " ".join([column.cell(row) for column in TABLES[table].columns])

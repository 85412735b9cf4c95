"""A terminal as one screen of lines, through curses: alternate screen, keys by name, and the terminal given back.

Curses writes changed cells alone, so nothing flickers; at Ctrl-Z curses restores the terminal, at `fg` the screen, and
a new size is a key. The module `curses` is loaded by a command with such a screen alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnctl.output.styled import segments

if TYPE_CHECKING:
    import curses
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

_NAMES = {
    "KEY_UP": "up",
    "KEY_DOWN": "down",
    "KEY_PPAGE": "page-up",
    "KEY_NPAGE": "page-down",
    "KEY_HOME": "home",
    "KEY_END": "end",
    "KEY_ENTER": "enter",
    "KEY_BACKSPACE": "backspace",
    "KEY_BTAB": "back-tab",
    "KEY_RESIZE": "resize",
}
_CHARACTERS = {
    "\x1b": "escape",
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\b": "backspace",
}
_COLORS = {"31": 1, "32": 2, "33": 3, "36": 6}
_ESCAPE_MS = 25
"""How long an Esc waits for the rest of a sequence."""


class FullScreen:
    """The terminal of standard input and output, between `with` and its end."""

    def __init__(self, *, color: bool) -> None:
        self._color = color
        self._window: curses.window | None = None
        self._styles: dict[str, int] = {}

    def __enter__(self) -> Self:
        import curses

        curses.set_escdelay(_ESCAPE_MS)
        self._window = curses.initscr()
        try:
            curses.noecho()
            curses.cbreak()
            self._window.keypad(True)
            self._prepare_styles()
        except BaseException:
            curses.endwin()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import curses

        curses.endwin()

    def _prepare_styles(self) -> None:
        import curses

        self._styles = {"1": curses.A_BOLD, "2": curses.A_DIM, "7": curses.A_REVERSE}
        if self._color and curses.tigetnum("colors") >= 8:
            curses.start_color()
            curses.use_default_colors()
            for name, number in _COLORS.items():
                curses.init_pair(number, number, -1)
                self._styles[name] = curses.color_pair(number)
        try:
            curses.curs_set(0)
        except curses.error:
            return  # This terminal always shows the cursor.

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        assert self._window is not None, "the screen is open"
        lines, columns = self._window.getmaxyx()
        return columns, lines

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines, with escape sequences of styles, in place of the previous ones."""
        import curses

        window = self._window
        assert window is not None, "the screen is open"
        columns, height = self.size()
        window.erase()
        for number, line in enumerate(lines[:height]):
            column = 0
            for text, styles in segments(line):
                attributes = 0
                for style in styles:
                    attributes |= self._styles.get(style, 0)
                try:
                    window.addnstr(number, column, text, max(0, columns - column), attributes)
                except curses.error:
                    break  # The last cell of the screen is drawn, and curses cannot go past it.
                column += len(text)
        window.refresh()

    def key(self, timeout_s: float) -> str | None:
        """The next key by name, or a character; `resize` where the terminal has a new size; None after the time."""
        import curses

        window = self._window
        assert window is not None, "the screen is open"
        window.timeout(max(0, round(timeout_s * 1000)))
        try:
            key = window.get_wch()
        except curses.error:
            return None
        if isinstance(key, str):
            return _CHARACTERS.get(key, key)
        return next((name for code, name in _NAMES.items() if key == getattr(curses, code)), "")


def why_impossible() -> str | None:
    """The reason why this terminal cannot be one screen of lines; None for one that can."""
    import sys
    from os import environ

    if sys.stdin is None or not sys.stdin.isatty() or sys.stdout is None or not sys.stdout.isatty():
        return "standard input and output are no terminal"
    try:
        import curses
    except ImportError:
        return "this Python was built without curses"
    name = environ.get("TERM", "")
    try:
        curses.setupterm(name or "unknown", sys.stdout.fileno())
    except curses.error:
        return f"the terminal {name!r} is not known here (TERM)"
    return None if curses.tigetstr("cup") else f"the terminal {name!r} cannot move its cursor (TERM)"

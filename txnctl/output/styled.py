"""Lines with styles (bold, colours) in escape sequences: cut at a width, and parted for a terminal library."""

from __future__ import annotations

from re import compile as pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_STYLE = pattern(r"\x1b\[([0-9;]*)m")
_END = "\x1b[0m"


def segments(line: str) -> Iterator[tuple[str, frozenset[str]]]:
    """The line in texts of one style, each with the numbers of the styles: `("WARNING", {"1", "33"})`."""
    at, now = 0, frozenset[str]()
    for style in _STYLE.finditer(line):
        if style.start() > at:
            yield line[at : style.start()], now
        numbers = {number for number in style[1].split(";") if number not in ("", "0")}
        now = now | numbers if numbers else frozenset()
        at = style.end()
    if at < len(line):
        yield line[at:], now


def clipped(line: str, width: int) -> str:
    """The line in at most `width` columns; where something is cut off, the last column has an ellipsis."""
    if sum([len(text) for text, _ in segments(line)]) <= width:
        return line
    shown, left = "", width - 1
    for text, styles in segments(line):
        part = text[: max(0, left)]
        left -= len(part)
        if part:
            shown += f"\x1b[{';'.join(sorted(styles))}m{part}{_END}" if styles else part
    return f"{shown}…" if width > 0 else ""

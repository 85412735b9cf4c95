"""Lines for people at the width of their terminal: prose in several lines, commands to paste with a backslash.

The one function that decides where a line ends is `wrapped`; tables are laid out before by `table_layout`. No line is
wider than the terminal: a word that is wider is cut in the middle, so that begin and end are seen, except in a command,
where somebody pastes the word.
"""

from __future__ import annotations

from re import compile as pattern

from txnctl.output.shell import worded_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_STYLE = pattern(r"\x1b\[[0-9;]*m")
_STYLES = pattern(f"({_STYLE.pattern})")
_SHELL_WORD = pattern(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"])+""")
_LABEL = pattern(r" *(?:\S+ )*?\S+ {2,}(?=\S)")
_LABEL_MAX = 26
"""Columns of a label before its text, at most: further lines begin below the text."""
_TEXT_MIN = 24
"""Columns that are left beside a label, at least."""
_CONTINUED = " \\"


class Laid(str):
    """A line that is laid out already: of a table, of a drawing."""

    __slots__ = ()


def fitted(lines: str | Iterable[str], width: int | None) -> Iterator[str]:
    """All lines of a report, none wider than the terminal.

    Args:
        width: of the terminal, in columns; None leaves every line as it is.
    """
    for line in [lines] if isinstance(lines, str) else lines:
        if isinstance(line, Laid):
            yield line
        else:
            for part in line.split("\n"):
                yield from wrapped(part, width)


def wrapped(
    line: str, width: int | None, *, hanging: int | None = None, most: int | None = None
) -> list[str]:
    """The line in lines of the width.

    A command to paste, in backquotes or worded by `shell`, goes to the next line as a whole; where it is wider than a
    line, it breaks between words of the shell, with a backslash. Spaces between words are kept. A word that is wider is
    cut in the middle, but for one of a command.

    Args:
        width: of the terminal, in columns; None without one: the line stays as it is, but for `most`.
        hanging: the indentation of the further lines; by default below the text behind a label, else two columns.
        most: columns to take where there is room for more, or no terminal; no word is cut for that.
    """
    columns = min([known for known in (width, most) if known is not None], default=None)
    if columns is None or length(line) <= columns:
        return [line]
    text = line.lstrip(" ")
    indent = _indent(line)
    further = " " * min(_hanging(line, columns) if hanging is None else hanging, columns // 2)
    lines, now = [], " " * indent
    begins = True
    for space, unit in _units(text):
        gap = "" if begins else space
        if length(now) + len(gap) + length(unit) <= columns:
            now += gap + unit
        elif length(further) + length(unit) <= columns or " " not in unit:
            is_cut = width is not None and length(further) + length(unit) > width
            if not is_cut or not (begins or length(now + gap) <= len(further)):
                lines.append(now.rstrip())
                now, gap = further, ""
            # Behind a label there is as much room as on the next line.
            now += gap
            now += unit if width is None else cut(unit, width - length(now))
        else:
            first = now + gap
            if length(first) + length(unit.partition(" ")[0]) + len(_CONTINUED) > columns:
                lines.append(now.rstrip())
                first = further
            *whole, now = continued(unit, columns, first=first, further=f"{further}  ")
            lines += whole
        begins = False
    return [*[shown for shown in lines if shown], now]


def cut(text: str, width: int, ellipsis: str = "…") -> str:
    """The text in at most so many columns: begin and end, and an ellipsis between; styles stay."""
    over = length(text) - width
    if over <= 0:
        return text
    begin = max(0, width - len(ellipsis) + 1) // 2
    end, at, shown = begin + over + len(ellipsis), 0, ""
    for part in _STYLES.split(text):
        if _STYLE.match(part):
            shown += part
            continue
        shown += part[: max(begin - at, 0)]
        if at <= begin < at + len(part):
            shown += ellipsis
        shown += part[max(end - at, 0) :]
        at += len(part)
    return shown


def defined(lines: Sequence[str], width: int) -> Iterator[str]:
    """Lines of help at the width: what a definition says in several lines is wrapped anew where one is wider."""
    at = 0
    while at < len(lines):
        end, label = at + 1, _LABEL.match(lines[at])
        while label is not None and end < len(lines) and _indent(lines[end]) == label.end():
            end += 1
        group = lines[at:end]
        if max(map(length, group)) > width:
            group = wrapped(" ".join([group[0], *[line.strip() for line in group[1:]]]), width)
        yield from group
        at = end


def continued(command: str, width: int, *, first: str = "", further: str = "  ") -> list[str]:
    """A command in lines of a width, each but the last with a backslash; words in quotes stay whole.

    Args:
        first: what stands before the command on the first line.
        further: what stands before each further line.
    """
    if length(first) + length(command) <= width:
        return [first + command]
    lines, now, begins = [], first, True
    for word in _SHELL_WORD.findall(command):
        joined = now + word if begins else f"{now} {word}"
        if begins or length(joined) + len(_CONTINUED) <= width:
            now = joined
        else:
            lines.append(now + _CONTINUED)
            now = further + word
        begins = False
    return [*lines, now]


def length(text: str) -> int:
    """The columns that a text takes; styles take none."""
    return len(_STYLE.sub("", text)) if "\x1b" in text else len(text)


def _hanging(line: str, width: int) -> int:
    """Below the text behind a label (`  space         3.1 MiB used`), else two columns in from the line."""
    plain = _STYLE.sub("", line)
    label = _LABEL.match(plain)
    if label is not None and label.end() <= min(_LABEL_MAX, width - _TEXT_MIN):
        return label.end()
    return _indent(plain) + 2


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _units(text: str) -> Iterator[tuple[str, str]]:
    """What a line may not break inside, with the spaces before: words, and commands to paste."""
    at, end = 0, len(text)
    while at < end:
        start = at
        while at < end and text[at] == " ":
            at += 1
        space, begin = text[start:at], at
        while at < end and text[at] != " ":
            at += max(1, _command_at(text, at))
        if begin < at:
            yield space, text[begin:at]


def _command_at(text: str, at: int) -> int:
    """The length of the command to paste that begins there; 0 if none does."""
    if text[at] == "`":
        closing = text.find("`", at + 1)
        return closing + 1 - at if closing > at else 0
    return worded_at(text, at)

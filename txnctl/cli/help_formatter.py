"""The layout of help texts: as click's, but a command or name in backquotes is never broken as prose is.

A command to paste goes to the next line as a whole, or breaks with a trailing backslash, as on every other screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from txnctl.output.prose import continued, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LABEL_SHARE = 3
"""Labels of definitions take at most one column in so many."""
_KEEP_LINES = "\b"
"""A paragraph that begins with a line of this sign keeps its lines."""


class HelpFormatter(click.HelpFormatter):
    """Usage, text and definitions at the width of the terminal."""

    def write_text(self, text: str) -> None:
        """Write paragraphs, wrapped at the width."""
        self.write("\n\n".join("\n".join(lines) for lines in self._paragraphs(text)) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write definitions: labels, and texts beside or, where a word of the text is too wide, below."""
        definitions = list(rows)
        most = min(col_max, self.width // _LABEL_SHARE)
        widest = min(most, max(len(label) for label, _ in definitions))
        beside = self.current_indent + widest + col_spacing
        below = self.current_indent * 3
        for label, text in definitions:
            begin = f"{'':>{self.current_indent}}{label}"
            lines = wrapped(f"{'':>{beside}}{text}", self.width, hanging=beside)
            if any(beside + len(word) > self.width for word in text.split()):
                lines = ["", *wrapped(f"{'':>{below}}{text}", self.width, hanging=below)]
            elif len(label) > widest:
                lines = ["", *lines]
            else:
                lines[0] = lines[0][len(begin) :]
            self.write(f"{begin}{lines[0]}".rstrip() + "\n")
            for line in lines[1:]:
                self.write(f"{line}\n")

    def _paragraphs(self, text: str) -> Iterator[list[str]]:
        """The lines of each paragraph."""
        for paragraph in text.expandtabs().strip("\n").split("\n\n"):
            lines = paragraph.strip("\n").split("\n")
            if lines[0].strip() == _KEEP_LINES:
                yield [f"{'':>{self.current_indent}}{line}" for line in lines[1:]]
                continue
            inner = len(lines[0]) - len(lines[0].lstrip())
            indent = self.current_indent + inner
            words = " ".join(line.strip() for line in lines)
            if inner and words.startswith("txnctl "):
                pad = f"{'':>{indent}}"
                yield continued(words, self.width, first=pad, further=f"{pad}  ")
            else:
                yield wrapped(f"{'':>{indent}}{words}", self.width, hanging=indent)

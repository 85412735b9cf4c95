"""Pronoun-like words in docstrings and comments, counted: the thermometer of docs/STYLE.md.

A sentence of fewer than four words counts as a label, and code in backticks as one word. `that`, `this`, `their` and
`one` are in the list of openings only: before a noun, or as a conjunction, each is ordinary English.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PRONOUN_LIKE = frozenset(
    [
        "it",
        "its",
        "they",
        "them",
        "theirs",
        "those",
        "these",
        "what",
        "whatever",
        "who",
        "whom",
        "whose",
        "whoever",
        "ones",
        "somebody",
        "anybody",
        "nobody",
        "everybody",
        "other",
        "others",
        "another",
        "else",
    ]
)
OPENINGS = frozenset(
    [
        "what",
        "whatever",
        "who",
        "whom",
        "whose",
        "whoever",
        "that",
        "those",
        "it",
        "they",
        "nobody",
        "somebody",
        "one",
        "all",
    ]
)
WORDS_OF_A_SENTENCE_MIN = 4


@dataclass(frozen=True, slots=True)
class ProseCount:
    """Words and sentences of a text, and how many of each are pronoun-like."""

    words: int = 0
    pronouns: int = 0
    sentences: int = 0
    openings: int = 0

    def __add__(self, more: ProseCount) -> ProseCount:
        return ProseCount(
            self.words + more.words,
            self.pronouns + more.pronouns,
            self.sentences + more.sentences,
            self.openings + more.openings,
        )

    @property
    def per_100_words(self) -> float:
        """Pronoun-like words per 100 words."""
        return 100 * self.pronouns / max(1, self.words)


def count_prose(source: str) -> ProseCount:
    """Count the docstrings and comments of one module."""
    total = ProseCount()
    for text in [*_docstrings(source), *_comments(source)]:
        plain = re.sub(r"``?[^`]*``?", "X", text)
        for sentence in re.split(r"(?<=[.:;?!])\s+", plain):
            words = [word.lower() for word in re.findall(r"[A-Za-z][A-Za-z'-]*", sentence)]
            if len(words) >= WORDS_OF_A_SENTENCE_MIN:
                pronouns = sum(word in PRONOUN_LIKE for word in words)
                total += ProseCount(len(words), pronouns, 1, int(words[0] in OPENINGS))
    return total


def count_files(paths: Iterable[Path]) -> dict[Path, ProseCount]:
    """Count each file."""
    return {path: count_prose(path.read_text(encoding="utf-8")) for path in paths}


def _docstrings(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


def _comments(source: str) -> Iterator[str]:
    """Comments on consecutive lines are one text."""
    block: list[str] = []
    last_line = -2
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or token.string.startswith(("#!", "# type:", "# noqa")):
            continue
        if block and token.start[0] != last_line + 1:
            yield " ".join(block)
            block = []
        block.append(token.string.lstrip("# "))
        last_line = token.start[0]
    if block:
        yield " ".join(block)

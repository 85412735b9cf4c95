"""A child's end of the line to the test that started it: one line of text at a time."""

from __future__ import annotations

import select
import sys


def say(*words: object) -> None:
    """Tell the test; it waits for the first word."""
    print(*words, flush=True)


def hear() -> str:
    """What the test says; an empty line when it has let go of the line."""
    return sys.stdin.readline().strip()


def has_let_go() -> bool:
    """Whether the test has said something, or let go of the line."""
    return bool(select.select([sys.stdin], [], [], 0)[0])

"""Interrupts (Ctrl-C) at each line of some modules in turn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from linecache import getline
from types import FrameType, ModuleType


class _Interrupt:
    """A trace function that raises KeyboardInterrupt at one line of the modules, counted from 1.

    Lines with `with` or `try` are left out. No signal is handled there: the end of a block with a lock is one step.
    """

    def __init__(self, line: int, modules: tuple[ModuleType, ...]) -> None:
        self.left = line
        self._files = {module.__file__ for module in modules}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> _Interrupt | None:
        file = frame.f_code.co_filename
        if file not in self._files:
            return None
        if event == "line" and not getline(file, frame.f_lineno).lstrip().startswith(("with ", "try:")):
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return self


def is_interrupted(line: int, action: Callable[[], object], *modules: ModuleType) -> bool:
    """Run an action with an interrupt at its n-th line in the modules; whether the action came so far."""
    interrupt, before = _Interrupt(line, modules), sys.gettrace()
    sys.settrace(interrupt)
    with suppress(KeyboardInterrupt):
        action()
    sys.settrace(before)
    return interrupt.left <= 0


def interrupted_runs(action: Callable[[], object], *modules: ModuleType) -> Iterator[int]:
    """Run an action with an interrupt at its first line in the modules, at the second and so on.

    Yields:
        the number of the line, after the interrupt; at last 0, after a run without one.
    """
    line = 1
    while is_interrupted(line, action, *modules):
        yield line
        line += 1
    yield 0
    assert line > 1, "the action runs through the modules"

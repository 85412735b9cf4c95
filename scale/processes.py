"""Processes that this proof starts: found with all that they start themselves, and ended whatever happens."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have, the eldest first."""
    children: dict[int, list[int]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            with suppress(OSError):
                parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(each.name))
    found, new = [], [pid]
    while new:
        new = [child for each in new for child in children.get(each, [])]
        found += new
    return found


def kill_tree(pid: int) -> int:
    """Kill a process and all below it, at one stroke: stopped first, so that none acts on the death of another.

    Returns:
        how many there were.
    """
    tree = [pid, *descendants(pid)]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for each in tree:
            with suppress(ProcessLookupError):
                os.kill(each, number)
        tree = list(dict.fromkeys([*tree, *descendants(pid)]))
    return len(tree)


def wait_until(is_so: Callable[[], bool], seconds: float, what: str) -> None:
    """Look every millisecond until something is so.

    Raises:
        TimeoutError
    """
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {seconds:g} s in vain until {what}")
        time.sleep(0.001)

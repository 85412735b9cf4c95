"""Child processes of the proof: found with all descendants, and killed in any case."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """Return the descendants of a process, the eldest first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    pids, unvisited = [], [pid]
    while unvisited:
        unvisited = [child for entry in unvisited for child in children.get(entry, [])]
        pids += unvisited
    return pids


def kill_tree(pid: int) -> int:
    """Kill a process and all descendants at once: stopped first, so that no process reacts to the death of a second
    one.

    Returns:
        the number of processes.
    """
    tree = [pid, *descendants(pid)]
    for signal_number in (signal.SIGSTOP, signal.SIGKILL):
        for pid_below in tree:
            with suppress(ProcessLookupError):
                os.kill(pid_below, signal_number)
        tree = list(dict.fromkeys([*tree, *descendants(pid)]))
    return len(tree)


def wait_until(
    condition: Callable[[], bool], seconds: float, description: str, *, pause_s: float = 0.02
) -> None:
    """Check a condition until it holds, with a pause behind each check.

    Raises:
        TimeoutError
    """
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {seconds:g} s in vain until {description}")
        time.sleep(pause_s)

"""The end of a command on order: SIGTERM to the command and its descendants, SIGKILL to those that remain.

A command that leads a process group of its own ends with the whole group: descendants whose parents have ended, too.

A shell that ends leaves its children behind, so processes that were told are followed by pid and start time until each
has ended. The table of processes is read from /proc; elsewhere only the command itself is known.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from time import monotonic

from storage.process.identity import process_facts
from storage.process.machine import pids

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

    from storage.process.identity import ProcessFacts

GRACE_S = 10.0
"""Seconds between SIGTERM and SIGKILL."""

_STEP_MAX_S = 1.0
"""A longer pause between two looks counts as this: the supervisor was stopped, and mostly the command with it."""


class Farewell:
    """The processes of one command that was told to end."""

    __slots__ = ("_command", "_left_s", "_looked_s", "_told")

    def __init__(
        self, command: subprocess.Popen[bytes], number: signal.Signals, grace_s: float | None = None
    ) -> None:
        """Send the signal to the command and to every descendant.

        A stopped process takes the signal only when continued, so it gets SIGCONT as well.
        """
        processes = _processes()
        self._command = command
        self._left_s, self._looked_s = GRACE_S if grace_s is None else grace_s, monotonic()
        self._told: dict[int, int] = {}
        for pid in _tree({command.pid, *_group(command.pid, processes)}, processes):
            facts = processes.get(pid)
            self._told[pid] = facts.started if facts is not None else 0
            _tell(pid, number)
            if facts is not None and facts.is_stopped:
                _tell(pid, signal.SIGCONT)

    def look(self) -> None:
        """Count the time since the last look; after the grace kill the processes that remain."""
        now_s = monotonic()
        self._left_s -= min(now_s - self._looked_s, _STEP_MAX_S)
        self._looked_s = now_s
        remaining = self._remaining()
        if self._left_s <= 0:
            for pid in remaining:
                _tell(pid, signal.SIGKILL)

    def is_over(self) -> bool:
        """Whether every process has ended, or has been killed."""
        return self._left_s <= 0 or not self._remaining()

    def tell(self, number: signal.Signals) -> None:
        """Pass a signal on to the processes that remain."""
        for pid in self._remaining():
            _tell(pid, number)

    def _remaining(self) -> set[int]:
        """The processes that were told and live, and their descendants: cleaning up starts further ones."""
        processes = _processes()
        lives = {
            pid
            for pid, started in self._told.items()
            if pid in processes and processes[pid].started == started
        }
        for pid in _tree(lives | _group(self._command.pid, processes), processes):
            self._told.setdefault(pid, processes[pid].started)
            lives.add(pid)
        if not processes and self._command.returncode is None:
            lives.add(self._command.pid)
        return lives


def _processes() -> dict[int, ProcessFacts]:
    """The processes of this machine that have not ended, by pid; empty on systems without /proc."""
    processes = {}
    for pid in pids():
        facts = process_facts(pid)
        if facts is not None and not facts.has_ended:
            processes[pid] = facts
    return processes


def _group(leader: int, processes: dict[int, ProcessFacts]) -> set[int]:
    """The processes of the group that this one leads; none if this one is a member of a different group."""
    group = set()
    for pid in processes:
        with suppress(ProcessLookupError):
            if os.getpgid(pid) == leader:
                group.add(pid)
    return group


def _tree(roots: set[int], processes: dict[int, ProcessFacts]) -> list[int]:
    """Processes and their descendants."""
    children: dict[int, list[int]] = {}
    for pid, facts in processes.items():
        children.setdefault(facts.parent, []).append(pid)
    tree = list(roots)
    for pid in tree:
        tree += [child for child in children.get(pid, ()) if child not in roots]
    return tree


def _tell(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)

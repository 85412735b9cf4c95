"""What has been kept in this process for too long is written, also when nobody does anything.

Invariant: who monitors at READ_UNCOMMITTED sees a message of an open transaction about a second after it was sent, at
the latest. One thread for each open store, while something is kept in it: it keeps no process alive, and ends when
there has been nothing for a while. A forked child has neither the thread nor what was kept.
"""

from __future__ import annotations

import threading
from typing import Final, Protocol

from storage.process.clock import Clock

LOOK_S: Final = 0.25
"""How often it is looked for what is due."""

KEPT_NS: Final = 500_000_000
"""How long something may be kept; with the pause between two looks, and the writing, less than a second."""

_IDLE_LOOKS: Final = 8
"""So many looks in vain, and the thread ends. The next transaction starts another one."""


class Keeper(Protocol):
    """Something that keeps what is to be written. It joins and leaves the watch under a lock of its own."""

    def write_overdue(self) -> None:
        """Write what is kept and leave the watch, or stay in it to be asked again."""

    def forked(self) -> None:
        """This is the child of a fork: forget everything, and whoever held a lock."""


class Flusher:
    """The watch over the keepers of one store in one process."""

    __slots__ = ("_busy", "_clock", "_due", "_idle", "_is_stopped", "_is_watching", "_lock", "_watched")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self._watched: dict[Keeper, int] = {}
        self._due: list[Keeper] = []
        self._lock = threading.Lock()
        self._busy = threading.RLock()
        self._is_watching = self._is_stopped = False
        self._idle = 0

    def watch(self, keeper: Keeper, since_ns: int) -> bool:
        """A keeper is to keep something since a moment of the boot clock; False if nobody can watch over it."""
        with self._lock:
            if not self._is_watching:
                try:
                    self._clock.every(LOOK_S, self._look)
                except RuntimeError:
                    return False  # the process may have no more threads
                self._is_watching = True
            self._watched[keeper] = since_ns
            return True

    def leave(self, keeper: Keeper) -> None:
        """It keeps nothing any more."""
        with self._lock:
            self._watched.pop(keeper, None)

    def _look(self) -> bool:
        """Have written what is due; whether to look again."""
        with self._busy:
            if self._is_stopped:
                return False
            now_ns = self._clock.boot_ns()
            with self._lock:
                self._due = [each for each, since_ns in self._watched.items() if now_ns - since_ns >= KEPT_NS]
            for keeper in self._due:
                keeper.write_overdue()
            self._due = []
            with self._lock:
                self._idle = 0 if self._watched else self._idle + 1
                self._is_watching = self._idle < _IDLE_LOOKS
                return self._is_watching

    def stop(self) -> None:
        """The store is about to be closed: what is kept is never written. Returns when nothing is being written."""
        with self._busy:
            self._is_stopped = True
            self._watched.clear()

    def forked(self) -> None:
        """This is the child of a fork."""
        keepers = {*self._watched, *self._due}
        self._begin()
        for keeper in keepers:
            keeper.forked()

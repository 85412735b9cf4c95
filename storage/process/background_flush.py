"""The background thread: buffered sends are written within a second, even in an idle program.

Invariant: a monitor at READ_UNCOMMITTED sees a message of an open transaction about a second after the send, at the
latest. Each open store has one thread while a transaction buffers sends in it; the thread is a daemon and ends after a
while without work. A forked child has neither the thread nor the buffered sends.
"""

from __future__ import annotations

import threading
from typing import Final, Protocol

from storage.process.clock import Clock

LOOK_S: Final = 0.25
"""Pause between two looks for buffers that are due."""

WRITE_BEHIND_NS: Final = 500_000_000
"""Age at which a buffer is due: with the pause between two looks, and the write, less than a second."""

_IDLE_LOOKS: Final = 8
"""Looks without work after which the thread ends. The next transaction starts a new thread."""


class Flushable(Protocol):
    """A buffer that the thread writes when due. The buffer joins and leaves the watch under its own lock."""

    def write_overdue(self) -> None:
        """Write the buffer and leave the watch, or stay in the watch to be called again."""

    def forked(self) -> None:
        """Forget the buffer and its locks, in the child of a fork."""


class Flusher:
    """The watch over the buffers of one store in one process."""

    __slots__ = ("_busy", "_clock", "_due", "_idle", "_is_stopped", "_is_watching", "_lock", "_watched")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self._watched: dict[Flushable, int] = {}
        self._due: list[Flushable] = []
        # Taken again by a finalizer that happens to run inside: `WriteBehind.abandon`.
        self._lock = threading.RLock()
        self._busy = threading.RLock()
        self._is_watching = self._is_stopped = False
        self._idle = 0

    def watch(self, buffer: Flushable, since_ns: int) -> bool:
        """Watch a buffer that is filled since a time of the boot clock; False if the process can start no thread."""
        with self._lock:
            if not self._is_watching:
                try:
                    self._clock.every(LOOK_S, self._look)
                except RuntimeError:
                    return False  # the limit on threads is reached
                self._is_watching = True
            self._watched[buffer] = since_ns
            return True

    def leave(self, buffer: Flushable) -> None:
        """Stop watching a buffer, which is empty."""
        with self._lock:
            if buffer in self._watched:
                del self._watched[buffer]

    def _look(self) -> bool:
        """Write the buffers that are due; return whether to look again."""
        with self._busy:
            if self._is_stopped:
                return False
            now_ns = self._clock.boot_ns()
            with self._lock:
                self._due = [
                    buffer
                    for buffer, since_ns in self._watched.copy().items()
                    if now_ns - since_ns >= WRITE_BEHIND_NS
                ]
            for buffer in self._due:
                buffer.write_overdue()
            self._due = []
            with self._lock:
                self._idle = 0 if self._watched else self._idle + 1
                self._is_watching = self._idle < _IDLE_LOOKS
                return self._is_watching

    def stop(self) -> None:
        """Stop before the store is closed, and return when no write is in progress. Buffers are dropped unwritten."""
        with self._busy:
            self._is_stopped = True
            self._watched.clear()

    def forked(self) -> None:
        """Start anew in the child of a fork."""
        buffers = {*self._watched, *self._due}
        self._begin()
        for buffer in buffers:
            buffer.forked()

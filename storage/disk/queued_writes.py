"""Writes that a thread has queued on a connection, as the connection sees them; see `storage/client/work/end_queue.py`.

The rest of the thread's work keeps its order: a write takes the queue along in its own store transaction, and a view is
opened behind the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from storage.disk.reserve import ReserveShare
from storage.disk.view import WriteBatch

T = TypeVar("T")


class QueuedWrites(Protocol):
    """See the module."""

    @property
    def is_running(self) -> bool:
        """Whether this thread is writing the queue: its writes meanwhile are the queue's own."""

    def flush_ends(self) -> None:
        """Write all that is queued; nothing within a flush.

        Raises:
            WriterBusy, StoreFull, StoreInvalid: the rest stays queued.
            OutcomeUnknown
        """

    def write_behind(
        self,
        change: Callable[[WriteBatch], T],
        naming: int,
        dry_run: bool,
        timeout_s: float | None,
        share: ReserveShare,
    ) -> T:
        """Write all that is queued, and then a change whose result is needed now; args as `Connection.write`."""

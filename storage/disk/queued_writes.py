"""The queue of writes of a thread, as a connection sees the queue; filled by `storage/client/work/end_queue.py`.

The thread's work keeps its order: a direct write is stored behind the queue in one store transaction, and a view is
opened after a flush of the queue.
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
        """Whether this thread is flushing the queue: writes of the thread are then writes of the queue."""

    def flush_ends(self) -> None:
        """Write all queued changes; within a flush, do nothing.

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
        """Write all queued changes and then `change`, whose result is returned; args as `Connection.write`."""

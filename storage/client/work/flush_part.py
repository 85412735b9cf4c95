"""Ends of a group that run in one batch, and the fate of that batch."""

from __future__ import annotations

from storage import faults
from storage.client.append import Appender, ProducerProgress
from storage.client.work.end import End
from storage.disk.connection import Connection
from storage.disk.view import DurableRefusal, WriteBatch
from storage.errors import CorruptStore, TxnctlError
from storage.limits import GROUP_HOLD_NS, WRITE_BYTES_TARGET


class Cut(Exception):
    """An end behind others was refused: the batch is dropped, and runs again with so many ends."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class FlushPart:
    """See the module.

    Attributes:
        ends: the ends to be written, in order.
        written: those that the last run of the batch holds: all, or as many as fit into its time and bytes.
        recorded_refusal: of the first end, if the batch records it; None otherwise.
    """

    __slots__ = (
        "_batch", "_commits", "_progress", "_refusal", "_running", "ends", "recorded_refusal", "written",
    )  # fmt: skip

    def __init__(self, ends: list[End]) -> None:
        self.ends = ends
        self.written: list[End] = []
        self._progress: dict[Appender, ProducerProgress] = {}
        self._refusal: TxnctlError | None = None
        self.recorded_refusal: TxnctlError | None = None
        self._running = -1
        self._batch: WriteBatch | None = None
        self._commits = 0

    @property
    def in_doubt(self) -> list[End]:
        """The ends whose fate is that of the batch."""
        return self.written or (self.ends[:1] if self.recorded_refusal else self.ends)

    @property
    def naming(self) -> int:
        """The transaction of the first end."""
        return self.ends[0].naming

    def change(self, batch: WriteBatch) -> None:
        """Run the ends.

        Raises:
            Cut
            TxnctlError: the first end is refused.
        """
        self.restore()
        self._batch, self._commits = batch, batch.superblock.commits + 1
        clock = batch.clock
        began_ns = clock.boot_ns()
        for count, end in enumerate(self.ends):
            if count and (batch.bytes >= WRITE_BYTES_TARGET or clock.boot_ns() - began_ns >= GROUP_HOLD_NS):
                break
            self._running = count
            try:
                end.change(batch)
            except (DurableRefusal, TxnctlError) as refusal:
                if count:
                    raise Cut(count) from None
                self._refusal = refusal.error if isinstance(refusal, DurableRefusal) else refusal
                self.recorded_refusal = self._refusal if isinstance(refusal, DurableRefusal) else None
                raise
            for appender, progress in end.progress():
                self._progress.setdefault(appender, appender.progress)
                appender.progress = progress
            self.written.append(end)
            faults.reach("group.between_ends")
        self._running = -1

    def failed_at(self, error: BaseException) -> int | None:
        """The index of the end that an error of the batch comes from; None if the batch has failed as a whole."""
        if self._refusal is not None and error is self._refusal:
            return 0
        is_damage = isinstance(error, CorruptStore) and self._running >= 0
        return self._running if is_damage else None

    def restore(self) -> None:
        """Take back what the producers have learnt from a batch that came to nothing."""
        for appender, progress in self._progress.items():
            appender.progress = progress
        self._progress, self.written, self._running = {}, [], -1
        self._refusal = self.recorded_refusal = None

    def keep_numbers(self) -> None:
        """As `restore` after a batch that may be committed: no sequence id may be used twice."""
        after = {appender: appender.progress.next_sequence for appender in self._progress}
        self.restore()
        for appender, number in after.items():
            appender.progress.next_sequence = number

    def find_outcome(self, connection: Connection) -> bool | None:
        """Whether the batch is committed; None if that cannot be told any more.

        Raises:
            StoreClosed, CorruptStore
        """
        if self._batch is None or not (self.written or self.recorded_refusal):
            return False
        with connection.environment.view() as view:
            stored = view.superblock
            if stored.commits < self._commits:
                return False
            if stored.commits == self._commits:
                # Not the object: the next batch of a thread of this process may be changing it by now.
                return stored.encode() == self._batch.written_superblock
        answers = [end.is_committed() for end in self.written]
        return next((answer for answer in answers if answer is not None), None)

"""The queue of a group: ends of transactions and sends of one thread, which one store transaction writes together.

The ends run one behind the other in one batch. An end that is refused there cuts the batch: the ends before it are
committed by themselves, then the refused one is judged again, alone, as without a group; so its refusal leaves what it
always leaves, and nothing of its neighbours (docs/decisions/0066). Order in the store is order in the queue.

The lock of the queue is taken behind the lock of a transaction and before the writer gate. A flush takes the lock of no
transaction: whoever uses a queued transaction waits for the queue first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from storage.client.work.end import End
from storage.client.work.flush_part import Cut, FlushPart
from storage.disk.batch_runs import unknown_outcome
from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.disk.view import WriteBatch
from storage.errors import CorruptStore, OutcomeUnknown, StoreFull, TxnctlError, WriterBusy
from storage.limits import GROUP_BYTES_MAX, GROUP_ENDS_MAX
from storage.process.background_flush import WRITE_BEHIND_NS

T = TypeVar("T")
_OVERDUE_WAIT_S = 0.2
"""How long the watch waits for the writer gate before it comes again."""


class EndQueue:
    """See the module. Filled by one thread; flushed by any.

    Attributes:
        notes: of the groups in progress; the innermost one is called once the outcome of an end is known.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._flusher = connection.environment.flusher
        self.notes: list[Callable[[End], None]] = []
        self._lock = threading.RLock()
        self._runner = 0
        self._ends: list[End] = []
        self._bytes = 0
        self._keys: set[tuple[str, bytes]] = set()
        self._since_ns = 0
        self._committed: list[End] = []
        self._refused: tuple[End, TxnctlError] | None = None
        self._in_doubt: FlushPart | None = None

    @property
    def is_running(self) -> bool:
        """Whether this thread is writing the ends."""
        return self._runner == threading.get_ident()

    @property
    def is_empty(self) -> bool:
        return not (self._ends or self._committed or self._refused or self._in_doubt)

    def enqueue(self, end: End) -> None:
        """Queue an end; a full queue is flushed, and so is one that no thread of the process can watch.

        Raises:
            as `flush_ends`
        """
        with self._lock:
            is_first = not self._ends
            if self.notes:
                end.note = self.notes[-1]
            self._ends.append(end)
            self._bytes += end.size
            self._keys.update(end.keys())
            is_watched = True
            if is_first:
                self._since_ns = self._connection.clock.boot_ns()
                is_watched = self._flusher.watch(self, self._since_ns)
            if not is_watched or len(self._ends) >= GROUP_ENDS_MAX or self._bytes >= GROUP_BYTES_MAX:
                self.flush_ends()

    def flush_ends(self) -> None:
        """Write all ends; each one's outcome is noted. Nothing within a flush.

        Raises:
            WriterBusy, StoreFull, StoreInvalid: nothing of the rest was stored, and the rest stays queued.
            OutcomeUnknown: of the ends that were being written; the others stay queued.
        """
        if self.is_empty:
            return
        with self._lock:
            self._run(None, None)

    def flush_if_written(self, table: str, key: bytes | None) -> None:
        """Flush before a read of a key that an end writes, or with None before a read of several keys of its table.

        Raises:
            as `flush_ends`
        """
        with self._lock:
            keys = self._keys
            if (table, key) in keys if key is not None else any(name == table for name, _ in keys):
                self.flush_ends()

    def write_behind(
        self,
        change: Callable[[WriteBatch], T],
        naming: int,
        dry_run: bool,
        timeout_s: float | None,
        share: ReserveShare,
    ) -> T:
        """Write all ends and then a change, in one store transaction; see `QueuedWrites`."""
        with self._lock:
            if not self.is_empty and (dry_run or share is not ReserveShare.NONE):
                # On a full disk the ends stay queued; the change may have room in the reserve.
                with suppress(StoreFull):
                    self._run(None, timeout_s)
            if self.is_empty or dry_run or share is not ReserveShare.NONE:
                return self._write(change, naming, dry_run, timeout_s, share)
            asked = _Asked(change, naming)
            self._ends.append(asked)
            try:
                self._run(asked, timeout_s)
            finally:
                self._ends = [end for end in self._ends if end is not asked]
            return asked.result

    def _write(
        self,
        change: Callable[[WriteBatch], T],
        naming: int,
        dry_run: bool,
        timeout_s: float | None,
        share: ReserveShare,
    ) -> T:
        runner, self._runner = self._runner, threading.get_ident()
        try:
            return self._connection.write(
                change, naming=naming, dry_run=dry_run, timeout_s=timeout_s, share=share
            )
        finally:
            self._runner = runner

    def give_up(self, error: TxnctlError) -> None:
        """Drop what could not be flushed: the transactions are open as before their commit, the messages not stored."""
        with self._lock:
            self._flusher.leave(self)
            with suppress(TxnctlError):
                self._finish_committed()
            if self._in_doubt is not None:
                self._drop(self._in_doubt)
            while self._ends:
                end = self._ends.pop(0)
                self._refuse(end, _of(end, error))
            self._bytes, self._keys = 0, set()

    # A flush

    def _run(self, asked: End | None, timeout_s: float | None) -> None:
        if self.is_running:
            return
        self._runner = threading.get_ident()
        try:
            self._finish_committed()
            limit = len(self._ends)
            while self._ends:
                limit = self._write_part(FlushPart(self._ends[:limit]), asked, timeout_s)
        finally:
            self._runner = 0
        self._bytes, self._keys = 0, set()
        self._flusher.leave(self)

    def _write_part(self, part: FlushPart, asked: End | None, timeout_s: float | None) -> int:
        """Write ends from the front of the queue; the number of ends to be written next."""
        self._in_doubt = part
        try:
            self._write(part.change, part.naming, False, timeout_s, ReserveShare.NONE)
        except Cut as cut:
            self._drop(part)
            return cut.count
        except BaseException as error:
            failed_at = part.failed_at(error)
            if failed_at == 0 and isinstance(error, TxnctlError):
                refused = part.ends[0]
                self._note_refusal(part, error)
                if refused is asked:
                    self._refused = None
                    raise
                self._finish_committed()
                return len(self._ends)
            with suppress(TxnctlError):
                self._clear_doubt(error)
            if failed_at and isinstance(error, CorruptStore):
                return failed_at
            if self._committed and isinstance(error, Exception):
                self._finish_committed()
            raise
        self._committed, self._ends, self._in_doubt = part.written, self._ends[len(part.written) :], None
        self._finish_committed()
        return len(self._ends)

    def _drop(self, part: FlushPart) -> None:
        part.restore()
        self._in_doubt = None

    def _note_refusal(self, part: FlushPart, error: TxnctlError) -> None:
        """Take the first end of a part out of the queue in one step, so that an interrupt does not judge it again."""
        refused = part.ends[0]
        rest = [end for end in self._ends if end is not refused]
        self._refused, self._ends, self._in_doubt = (refused, error), rest, None
        part.restore()

    def _finish_committed(self) -> None:
        """Settle what is committed, or refused; may be interrupted, and is repeated then by the next flush."""
        if self._in_doubt is not None:
            self._clear_doubt(None)
        while self._committed:
            end = self._committed[0]
            end.mark_durable()
            del self._committed[0]
            end.note(end)
        if self._refused is not None:
            end, error = self._refused
            end.refuse(error)
            self._refused = None
            end.note(end)

    def _clear_doubt(self, error: BaseException | None) -> None:
        """Find out whether the last part is committed, after an error or an interrupt."""
        part = self._in_doubt
        if part is None:
            return
        is_unknown = isinstance(error, OutcomeUnknown)
        is_committed = None if is_unknown else part.find_outcome(self._connection)
        if is_committed is None and isinstance(error, TxnctlError) and not is_unknown:
            is_committed = False
        if is_committed and part.recorded_refusal is not None:
            self._note_refusal(part, part.recorded_refusal)
            return
        if is_committed:
            self._committed, self._ends, self._in_doubt = part.written, self._ends[len(part.written) :], None
            return
        if is_committed is None:
            lost = part.in_doubt
            self._ends = [end for end in self._ends if end not in lost]
            unknown = error if isinstance(error, OutcomeUnknown) else _interrupted()
            part.keep_numbers()
            self._in_doubt = None
            for end in lost:
                self._refuse(end, _of(end, unknown))
            return
        self._drop(part)

    def _refuse(self, end: End, error: TxnctlError) -> None:
        end.refuse(error)
        end.note(end)

    # The watch

    def write_overdue(self) -> None:
        """Write what has waited for too long; the watch calls from a thread of its own."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._ends and self._connection.clock.boot_ns() - self._since_ns >= WRITE_BEHIND_NS:
                self._run(None, _OVERDUE_WAIT_S)
        except WriterBusy:
            pass  # The watch comes again.
        except TxnctlError:
            self._flusher.leave(self)  # The next operation of the group meets the error.
        finally:
            self._lock.release()

    def forked(self) -> None:
        """Forget the ends, which belong to the parent: this is the child of a fork."""
        self._lock = threading.RLock()
        self._ends, self._committed, self._refused, self._in_doubt, self._runner = [], [], None, None, 0


def queue_of(connection: Connection) -> EndQueue | None:
    """The queue of the group that this thread is in, if any."""
    queue = connection.queue
    assert queue is None or isinstance(queue, EndQueue), "groups queue the ends"
    return queue


class _Asked(End, Generic[T]):
    """A change behind the queue, whose result its caller waits for."""

    __slots__ = ("_change", "result")

    def __init__(self, change: Callable[[WriteBatch], T], naming: int) -> None:
        super().__init__(naming, 0)
        self._change = change
        self.result: T

    def change(self, batch: WriteBatch) -> None:
        self.result = self._change(batch)

    def mark_durable(self) -> None:
        """The caller settles."""

    def refuse(self, error: TxnctlError) -> None:
        """The caller is told by the exception."""


def _of(end: End, error: TxnctlError) -> TxnctlError:
    """The error of a flush for one end, whose transaction an unknown outcome names."""
    return unknown_outcome(error.message, end.naming) if isinstance(error, OutcomeUnknown) else error


def _interrupted() -> OutcomeUnknown:
    return unknown_outcome("the flush of a group was interrupted, and other processes have written since", 0)

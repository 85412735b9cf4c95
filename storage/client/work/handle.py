"""A serializable transaction in its process: number, timestamp, lock, end, and the outcome of each batch.

The record is written with the first batch that needs one: when the number is asked for, when a message, an
acknowledgement or an intent names the transaction, when the transaction meets a second one, or when a commit has
something to write (docs/decisions/0015, 0017).

The lock keeps the thread that uses the transaction and the watch over buffered messages out of each other's way. The
lock is taken before the writer gate, and no thread holds the locks of two transactions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from storage.client.work.batch_outcome import BatchOutcome
from storage.client.work.beginning import Beginning
from storage.disk.batch_runs import way_to_know
from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.disk.view import WriteBatch
from storage.errors import OutcomeUnknown, TxnctlError
from storage.table.arbiter import Arbiter
from storage.txn import record as records
from storage.txn.coordinator import Coordinator, Ended
from storage.txn.record import TransactionRecord
from storage.values.txn_state import AbortReason, TransactionState

if TYPE_CHECKING:
    from storage.client.work.queued_commit import QueuedCommit

T = TypeVar("T")


def _no_change(batch: WriteBatch, record: TransactionRecord) -> None:
    """The use of the transaction alone."""


def _nothing() -> None:
    """The default of a callback."""


class TransactionHandle:
    """See the module. For one thread at a time.

    Attributes:
        txn_id: the transaction's number; 0 as long as there is no record.
        timestamp: 0 as long as none is issued.
        uses_tables: whether this process has used a table in the transaction; the next batch marks the record.
        on_discard: called when the transaction is found to have ended without the content buffered in this process.
        is_committed: whether this process has committed the transaction.
        doubt: a batch of which this process does not know whether it is committed; None otherwise.
        queued: the commit, while a group has it in its queue; None otherwise.
        ended: the end of a transaction that has ended without a record; None otherwise.
    """

    def __init__(
        self, connection: Connection, coordinator: Coordinator, beginning: Beginning, txn_id: int = 0
    ) -> None:
        self.connection = connection
        self.environment = beginning.environment
        self.coordinator = coordinator
        self.lock = threading.RLock()
        self.beginning = beginning
        self.txn_id = txn_id
        self.timestamp = beginning.started.timestamp if beginning.started is not None else 0
        self.uses_tables = False
        self.on_discard: Callable[[], None] = _nothing
        self.is_committed = False
        self.queued: QueuedCommit | None = None
        self._is_marked = False
        self.doubt: BatchOutcome | None = None
        self.ended: TransactionState | None = None

    # What is known

    @property
    def state(self) -> TransactionState:
        """The transaction's state now."""
        if self.ended is not None:
            return self.ended
        if self.queued is not None or (not self.txn_id and self.doubt is not None):
            with self.lock:
                self.resolve()
        if not self.txn_id:
            return TransactionState.OPEN
        with self.connection.view() as view:
            return records.get(view, self.txn_id).state

    @property
    def is_mark_due(self) -> bool:
        """Whether there is a record, which does not say yet that the transaction uses tables."""
        return bool(self.txn_id) and self.uses_tables and not self._is_marked

    def check_open(self) -> None:
        """See that the transaction is open and in time.

        Raises:
            TransactionNotOpen, TransactionTimedOut, LostConflict
        """
        if not self.txn_id:
            is_open = self.connection.clock.boot_ns() < self.beginning.boot_deadline_ns
        else:
            with self.connection.view() as view:
                record = records.get(view, self.txn_id)
                is_open = record.state is TransactionState.OPEN and not record.is_overdue(view.now_ns)
        if not is_open:
            self.use()

    # Batches

    def use(self) -> None:
        """Note a use of the transaction in a batch, which raises the reason if the transaction is not open.

        Raises:
            as `run_batch`
        """
        self.run_batch(_no_change)

    def run_batch(
        self,
        change: Callable[[WriteBatch, TransactionRecord], T],
        settle: Callable[[], None] = _nothing,
        timeout_s: float | None = None,
        share: ReserveShare = ReserveShare.NONE,
    ) -> T:
        """Run one batch. After an exception, resolve once whether it committed, by the count of writes in the record.

        Args:
            change: given the open record of the open transaction, made if there was none.
            settle: called when the batch is committed, even if that shows only later.
            timeout_s: how long to wait for the writer gate, if not as long as the connection does.
            share: of the reserve of a full disk.

        Raises:
            TransactionNotOpen, TransactionTimedOut, LostConflict, RequestTooOld
            WriterBusy, StoreFull, and what `change` raises.
        """
        if self.ended is not None:
            self.materialise()
        outcome = BatchOutcome(settle, ends=False)

        def whole(batch: WriteBatch) -> tuple[TransactionRecord, T]:
            record = self._open_record(batch, outcome)
            result = change(batch, record)
            outcome.note_end(record)
            return record, result

        return self._write(outcome, whole, timeout_s, share)

    def commit_batch(
        self, prepare: Callable[[WriteBatch, TransactionRecord], None], settle: Callable[[], None]
    ) -> Ended:
        """Commit the transaction in one batch. Repeating a commit succeeds.

        Args:
            prepare: does the last of the work, once the transaction is known to be open and in time.
            settle: as in `run_batch`.

        Raises:
            TransactionNotOpen, TransactionTimedOut, ProducerFenced, and what `prepare` raises.
            WriterBusy, StoreFull
        """
        outcome, whole = self.commit_change(prepare, settle)
        ended = self._write(outcome, whole)
        self.is_committed = True
        return ended

    def commit_change(
        self, prepare: Callable[[WriteBatch, TransactionRecord], None], settle: Callable[[], None]
    ) -> tuple[BatchOutcome, Callable[[WriteBatch], tuple[TransactionRecord, Ended]]]:
        """The change that commits the transaction, and its outcome; args as `commit_batch`."""
        if self.ended is not None:
            self.materialise()
        coordinator, owner, outcome = (
            self.coordinator,
            self.connection.identity,
            BatchOutcome(settle, ends=True),
        )

        def whole(batch: WriteBatch) -> tuple[TransactionRecord, Ended]:
            made, txn_id = None, self.txn_id
            if not txn_id:
                # Committed or refused, the transaction is decided in this batch.
                made = self.beginning.make_record(batch, uses_tables=self.uses_tables, ends_here=True)
                outcome.note_start(made)
                txn_id = made.txn_id

            def prepare_marked(record: TransactionRecord) -> None:
                if not record.uses_tables:
                    Arbiter(batch, coordinator, owner).begin_use(record)
                prepare(batch, record)

            # A record made here says already whether tables are used.
            is_mark_due = self.uses_tables and made is None
            last_work = prepare_marked if is_mark_due else partial(prepare, batch)
            ended = coordinator.commit(batch, txn_id, owner, last_work, made)
            if ended.already:
                # Committed by its number elsewhere, without the content buffered here.
                outcome.settle = self.on_discard
            outcome.note_end(ended.record)
            return ended.record, ended

        return outcome, whole

    def settle_queued(self, record: TransactionRecord, outcome: BatchOutcome) -> None:
        """The commit that a group had queued is durable."""
        self._adopt(record)
        outcome.settle()
        self.queued, self.is_committed = None, True

    def release_queued(self, outcome: BatchOutcome) -> None:
        """The commit that a group had queued is refused, or in doubt; the transaction is as the store has it."""
        self.doubt, self.queued = outcome, None
        with suppress(TxnctlError):
            self.resolve()

    def commit_without_record(self) -> bool | None:
        """Commit a transaction that has nothing to write; False if it was committed before.

        None if the end has to be written, or is refused.
        """
        if self.txn_id or self.beginning.started is None:
            return None
        if self.ended is None and self.beginning.is_in_time():
            self.ended, self.is_committed = TransactionState.COMMITTED, True
            self.beginning.release_timestamp()
            return True
        return False if self.ended is TransactionState.COMMITTED else None

    def abort(self, reason: str | None, timeout_s: float | None = None) -> None:
        """Abort the transaction; one without a record leaves nothing. A refused abort drops nothing.

        Args:
            timeout_s: how long to wait for the writer gate, if not as long as the connection does.

        Raises:
            TransactionNotOpen: the transaction was committed.
            StoreClosed, StoreInvalid, WriterBusy
        """
        self.connection.check_writable()
        if self.doubt is not None or self.queued is not None:
            self.resolve()
        if not self.txn_id:
            if self.ended is not TransactionState.COMMITTED:
                self.ended = TransactionState.ABORTED
                self.on_discard()
                self.beginning.release_timestamp()
                return
            self.materialise()
        txn_id, owner, outcome = (
            self.txn_id,
            self.connection.identity,
            BatchOutcome(self.on_discard, ends=True),
        )

        def whole(batch: WriteBatch) -> tuple[TransactionRecord, None]:
            ended = self.coordinator.abort(batch, txn_id, owner, AbortReason.ASKED, reason)
            outcome.note_end(ended.record)
            return ended.record, None

        self._write(outcome, whole, timeout_s, ReserveShare.WHOLE)

    def materialise(self) -> None:
        """Give the transaction a record if there is none yet; after an end without a record, one that says so.

        Raises:
            WriterBusy, StoreFull
        """
        with self.lock:
            self.resolve()
            if self.txn_id:
                return
            ended, coordinator, owner = self.ended, self.coordinator, self.connection.identity
            outcome = BatchOutcome(_nothing, ends=ended is not None)

            def whole(batch: WriteBatch) -> tuple[TransactionRecord, None]:
                make, has_ended = self.beginning.make_record, ended is not None
                record = make(batch, uses_tables=self.uses_tables, has_ended=has_ended)
                outcome.note_start(record)
                if ended is TransactionState.COMMITTED:
                    record = coordinator.commit(batch, record.txn_id, owner).record
                elif ended is not None:
                    record = coordinator.abort(batch, record.txn_id, owner).record
                outcome.note_end(record)
                return record, None

            self._write(outcome, whole)

    def _open_record(self, batch: WriteBatch, outcome: BatchOutcome) -> TransactionRecord:
        """The record of the open transaction, with one more write counted, and marked if tables are used."""
        txn_id, owner = self.txn_id, self.connection.identity
        if not txn_id:
            made = self.beginning.make_record(batch, uses_tables=self.uses_tables)
            outcome.note_start(made)
            txn_id = made.txn_id
        record = self.coordinator.use(batch, txn_id, owner)
        outcome.note_start(record)
        if self.uses_tables:
            Arbiter(batch, self.coordinator, owner).begin_use(record)
        return record

    # Doubt

    def _write(
        self,
        outcome: BatchOutcome,
        whole: Callable[[WriteBatch], tuple[TransactionRecord, T]],
        timeout_s: float | None = None,
        share: ReserveShare = ReserveShare.NONE,
    ) -> T:
        """Write one batch and settle its outcome, even after an exception."""
        if self.doubt is not None or self.queued is not None:
            self.resolve()
        self.doubt = outcome
        try:
            record, result = self.connection.write(
                whole, naming=self.txn_id, timeout_s=timeout_s, share=share
            )
            self._adopt(record)
            outcome.settle()
            self.doubt = None
        except BaseException as error:
            if isinstance(error, OutcomeUnknown) and not self.txn_id:
                error.hint = way_to_know(outcome.txn_id, is_new=True)
            with suppress(TxnctlError):
                self.resolve()
            raise
        return result

    def resolve(self) -> None:
        """Find out whether the batch in doubt is committed, if there is one; settle or discard its content.

        The batch stays in doubt if the store cannot be read, or if an interrupt comes in between.

        The queue of a group is flushed if the commit is in it.

        Raises:
            StoreClosed, CorruptStore
            as `EndQueue.flush_ends`
        """
        if self.queued is not None:
            self.queued.flush_queue()
        outcome = self.doubt
        if outcome is None:
            return
        with self.connection.environment.view() as view:
            stored = outcome.find_record(view, self.txn_id)
        if stored is not None:
            self._adopt(stored)
            if outcome.is_committed(stored):
                outcome.settle()
            elif stored.state is not TransactionState.OPEN:
                self.on_discard()
        self.doubt = None

    def _adopt(self, record: TransactionRecord) -> None:
        # The number comes last: a thread that reads the number may rely on the rest.
        self.timestamp, self._is_marked = record.timestamp, record.uses_tables
        self.txn_id = record.txn_id
        if self.beginning.held is not None:
            self.beginning.held.release()

    def forked(self) -> None:
        """Forget the thread that held the lock: this is the child of a fork, which has no such thread."""
        self.lock = threading.RLock()
        self.doubt = None

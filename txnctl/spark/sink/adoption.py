"""What the driver does: staged files become ONE transaction, exactly once, in store transactions of a bounded size.

Target by target, in each the partitions one after the other, and in a partition its rows in their order. The driver
holds a few MB whatever the size of the write. Nothing is visible before the commit; if the driver dies, the next writer
of the store aborts what it has begun, as with every attached transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from storage.errors import Conflict, InvalidValue, LostConflict, TransactionNotFound, WaitTimeout, WriteTooOld
from storage.limits import TRANSACTION_TIMEOUT_MS_MAX, WRITE_BYTES_TARGET
from storage.topic.entry import PackedColumns
from storage.txn.options import Priority
from storage.values.timestamps import rfc3339
from txnctl.spark.sink import progress
from txnctl.spark.sink.staged_file import StagedFile
from txnctl.spark.sink.staging import Staging

if TYPE_CHECKING:
    from storage import Producer, Store, Transaction

LOCK_TIMEOUT_S: Final = 300.0
"""How long a driver waits for the writer gate: what tasks worked on for hours is not given up for a busy store."""

ATTEMPTS_MAX: Final = 5
"""How often a transaction that loses a conflict is run."""

OnProgress = Callable[[int, int], None]
"""Told the rows that are adopted, and how many there are."""


@dataclass(frozen=True)
class Batch:
    """What is to be adopted.

    Attributes:
        files: in the order of their partitions.
        table: the table that the rows go to; None if they go to the topics that the files name.
        producer: name of the producer; one that the store gives if None.
        sink: key of the sink that counts its batches; None if it does not.
        batch_id: number of this batch.
    """

    files: Sequence[StagedFile]
    table: str | None = None
    producer: str | None = None
    sink: str | None = None
    batch_id: int = 0

    @property
    def rows(self) -> int:
        return sum(file.count for file in self.files)

    @property
    def targets(self) -> list[str]:
        """Topics, or the table, in order."""
        return sorted(set(chain.from_iterable(file.rows for file in self.files)))


@dataclass(frozen=True)
class Adopted:
    """What came of it.

    Attributes:
        rows: stored now; 0 if they were stored before.
        already: whether this batch was stored before.
        txn: the transaction that stored it, None if there was nothing to store or it was stored before.
    """

    rows: int
    already: bool = False
    txn: str | None = None


def adopt(store: Store, staging: Staging, batch: Batch, on_progress: OnProgress | None = None) -> Adopted:
    """Store a batch in one transaction, unless it is stored already. The staged files stay; see `clean_up`.

    Raises:
        TopicNotFound, TableNotFound: a target is not there; nothing was stored.
        NotFound, InvalidValue: a staged file is not there, or not what was staged; nothing was stored.
        ProducerBusy, ProducerFenced: a topic has an exclusive owner.
        LostConflict, WriteTooOld: again and again others were in the way.
        RequestTooOld: it took longer than versions of tables are kept, and would again.
    """
    if batch.sink is not None:
        progress.make_table(store)
    elif not batch.files:
        return Adopted(0)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            return _Adoption(store, staging, batch, on_progress).run(attempt)
        except (LostConflict, WriteTooOld) as error:
            if attempt == ATTEMPTS_MAX:
                raise
            _let_finish(store, error)
    raise AssertionError("the last attempt returns or raises")


def clean_up(store: Store, staging: Staging, writes: Sequence[str]) -> None:
    """Remove the staged files of writes that have ended, and what others left behind long ago."""
    for write in dict.fromkeys(writes):
        staging.remove(write)
    staging.collect(store.connection.clock.wall_ms())


def _let_finish(store: Store, error: Conflict) -> None:
    """Whoever won is let finish: it may be storing this very batch, and two that retry would abort each other."""
    winner = error.details.get("winner")
    if winner is not None:
        with suppress(WaitTimeout, TransactionNotFound):
            store.reports.wait_for_transaction(winner, timeout=LOCK_TIMEOUT_S)


class _Adoption:
    """One attempt."""

    def __init__(self, store: Store, staging: Staging, batch: Batch, on_progress: OnProgress | None) -> None:
        self._store = store
        self._staging = staging
        self._batch = batch
        self._on_progress = on_progress
        self._done = 0

    def run(self, attempt: int) -> Adopted:
        batch, store = self._batch, self._store
        producers = {} if batch.table is not None else self._producers()
        with store.transaction(
            timeout=TRANSACTION_TIMEOUT_MS_MAX / 1000,
            labels={"sink": batch.sink or "spark", "batch": str(batch.batch_id)},
            # It is larger than most, and began before them: of equal ones it would be the one to lose.
            priority=Priority.HIGH if attempt == 1 else Priority.HIGHEST,
        ) as txn:
            if batch.sink is not None and not self._begin(txn, batch.sink):
                txn.abort("this batch is stored already")
                return Adopted(0, already=True)
            if batch.table is not None:
                store.table(batch.table).import_rows(self._table_rows(), txn=txn)
            for topic, producer in producers.items():
                self._send(producer, topic, txn)
            number = txn.number
        return Adopted(batch.rows, txn=f"0:{number}")

    def _begin(self, txn: Transaction, sink: str) -> bool:
        batch = self._batch
        where = {"topics": batch.targets} if batch.table is None else {"table": batch.table}
        at = rfc3339(self._store.connection.clock.wall_ms())
        return progress.begin(self._store, txn, sink, batch.batch_id, batch.rows, **where, at=at)

    def _producers(self) -> dict[str, Producer]:
        """A producer for each topic; all of them are there before anything is sent.

        None stays connected: its name is free for a successor although this process may only have been stopped.
        """
        name = self._batch.producer
        return {
            topic: self._store.create_producer(topic, producer_name=name, connected=False)
            for topic in self._batch.targets
        }

    def _send(self, producer: Producer, topic: str, txn: Transaction) -> None:
        """Send the entries of a topic, about as many at a time as one store transaction takes."""
        waiting: list[PackedColumns] = []
        size = 0
        for entry in self._entries(topic):
            waiting.append(entry)
            size += len(entry.data)
            if size >= WRITE_BYTES_TARGET:
                producer.send_packed(waiting, txn=txn)
                self._note(sum(each.count for each in waiting))
                waiting, size = [], 0
        if waiting:
            producer.send_packed(waiting, txn=txn)
            self._note(sum(each.count for each in waiting))

    def _table_rows(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Keys and values; of several rows with one key the last one stays."""
        table = self._batch.table
        assert table is not None, "only a table has rows"
        for entry in self._entries(table):
            try:
                values, keys, *_ = entry.columns()
                pairs = list(zip(keys, values, strict=True))
            except (ValueError, TypeError) as error:
                raise InvalidValue(f"a staged entry holds no rows of a table: {error}") from None
            yield from pairs
            self._note(entry.count)

    def _entries(self, target: str) -> Iterator[PackedColumns]:
        for file in self._batch.files:
            if target in file.rows:
                yield from self._staging.entries(file, target)

    def _note(self, rows: int) -> None:
        self._done += rows
        if self._on_progress is not None:
            self._on_progress(self._done, self._batch.rows)

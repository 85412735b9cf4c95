"""Adoption by the driver: staged files become ONE transaction, exactly once, in store transactions of bounded size.

Targets are written one after the other, each in the order of partitions and of rows within a partition. The driver
holds a few MB whatever the size of the write. Nothing is visible before the commit; if the driver dies, the next writer
of the store aborts the transaction, as any attached transaction of a dead process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from storage.client.tries import Tries
from storage.errors import Conflict, InvalidValue, LostConflict, TransactionNotFound, WaitTimeout, WriteTooOld
from storage.limits import TRANSACTION_TIMEOUT_MS_MAX, WRITE_BYTES_TARGET
from storage.process.clock import SYSTEM_CLOCK
from storage.topic.entry import PackedColumns
from storage.txn.options import Priority
from storage.values.timestamps import rfc3339
from txnctl.spark.sink import content_sum, progress
from txnctl.spark.sink.latest_rows import OrderedRow, latest
from txnctl.spark.sink.staged_file import StagedFile
from txnctl.spark.sink.staging import Staging

if TYPE_CHECKING:
    from storage import Producer, Store, Transaction

LOCK_TIMEOUT_S: Final = 300.0
"""How long a driver waits for the writer gate: hours of work by tasks are not given up for a busy store."""

_RETRIES: Final = 4
"""Further tries of a transaction that loses a conflict."""

AdoptionProgress = Callable[[int, int], None]
"""Called with the number of adopted rows, and the number of all rows."""


@dataclass(frozen=True)
class StagedBatch:
    """The staged files of one batch, and their target.

    Attributes:
        files: in the order of their partitions.
        table: the table that takes the rows; None where the files name topics.
        producer: name of the producer; None for a generated name.
        sink: key of the sink that counts its batches; None for an uncounted batch write.
        batch_id: number of this batch.
        create_topics: missing topics are created by their first entries.
        compares_content: the row of the sink describes the content, and a batch of that number with a different
            content is an error.
        fingerprint: of the input of the job, for that description.
        is_upsert: of several rows of a key the one of the highest order is stored, instead of the last one.
    """

    files: Sequence[StagedFile]
    table: str | None = None
    producer: str | None = None
    sink: str | None = None
    batch_id: int = 0
    create_topics: bool = False
    compares_content: bool = False
    fingerprint: str | None = None
    is_upsert: bool = False

    @property
    def rows(self) -> int:
        return sum(file.count for file in self.files)

    @property
    def targets(self) -> list[str]:
        """Topics, or the table, sorted."""
        return sorted(set(chain.from_iterable(file.rows for file in self.files)))


@dataclass(frozen=True)
class Adopted:
    """The result of an adoption.

    Attributes:
        rows: rows stored now; 0 if the batch was stored before.
        was_stored: whether this batch was stored before.
        txn: the transaction that stored the batch; None if nothing was stored.
    """

    rows: int
    was_stored: bool = False
    txn: str | None = None


def adopt(
    store: Store, staging: Staging, batch: StagedBatch, on_progress: AdoptionProgress | None = None
) -> Adopted:
    """Store a batch in one transaction, unless the batch is stored already. Staged files stay until `clean_up`.

    Raises:
        TopicNotFound, TableNotFound: a target is missing; nothing was stored.
        NotFound, InvalidValue: a staged file is missing or damaged; nothing was stored.
        AlreadyExists: a different content was stored under the id of this batch write.
        ProducerBusy, ProducerFenced: a topic has an exclusive producer.
        LostConflict, WriteTooOld: every attempt lost its conflict.
        RequestTooOld: the transaction outlived the retention of table versions, and would again.
    """
    if batch.sink is not None:
        progress.make_table(store)
    elif not batch.files:
        return Adopted(0)
    # Most transactions are smaller and began later: at equal priority this transaction would lose a conflict.
    tries = Tries(store.connection, _RETRIES, Priority.HIGH)
    while True:
        tries.begin()
        try:
            return _AdoptionAttempt(store, staging, batch, on_progress).adopt_all(tries.priority)
        except (LostConflict, WriteTooOld) as error:
            if not tries.count_loss():
                raise
            _wait_for_winner(store, error, tries)


def clean_up(staging: Staging, writes: Sequence[str]) -> None:
    """Remove the staged files of ended writes, and orphans."""
    for write in dict.fromkeys(writes):
        staging.remove(write)
    # Files have times of this side: the store may be on a server whose clock differs.
    staging.collect(SYSTEM_CLOCK.wall_ms())


def _wait_for_winner(store: Store, error: Conflict, tries: Tries) -> None:
    """Wait for the end of the transaction that won: it may be storing this very batch, and two retries would abort each
    other. Where the winner is not known, back off.
    """
    winner = error.details.get("winner")
    if winner is None:
        store.connection.clock.sleep(tries.draw_wait_s())
    else:
        with suppress(WaitTimeout, TransactionNotFound):
            store.reports.wait_for_transaction(winner, timeout=LOCK_TIMEOUT_S)


class _AdoptionAttempt:
    """An attempt to store a batch."""

    def __init__(
        self, store: Store, staging: Staging, batch: StagedBatch, on_progress: AdoptionProgress | None
    ) -> None:
        self._store = store
        self._staging = staging
        self._batch = batch
        self._on_progress = on_progress
        self._done = 0

    def adopt_all(self, priority: Priority) -> Adopted:
        batch, store = self._batch, self._store
        producers = {} if batch.table is not None else self._producers()
        with store.transaction(
            timeout=TRANSACTION_TIMEOUT_MS_MAX / 1000,
            labels={"sink": batch.sink or "spark", "batch": str(batch.batch_id)},
            priority=priority,
        ) as txn:
            if batch.sink is not None and not progress.record_batch(store, txn, batch.sink, self._record()):
                txn.abort("this batch is stored already")
                return Adopted(0, was_stored=True)
            if batch.table is not None:
                rows = latest(self._ordered_rows) if batch.is_upsert else self._table_rows()
                store.table(batch.table).import_rows(rows, txn=txn)
            for topic, producer in producers.items():
                self._send(producer, topic, txn)
            if batch.sink is not None and batch.compares_content and batch.create_topics:
                # The topics exist only now, and the row names them by id.
                progress.put(store, txn, batch.sink, self._record())
            number = txn.number
        return Adopted(batch.rows, txn=f"0:{number}")

    def _record(self) -> progress.BatchRecord:
        batch = self._batch
        content = None
        if batch.compares_content:
            content = content_sum.as_text(content_sum.joined(file.content for file in batch.files))
        return progress.BatchRecord(
            batch.batch_id, batch.rows, self._topic_ids(), batch.table,
            rfc3339(self._store.connection.clock.wall_ms()), None, content, batch.fingerprint,
        )  # fmt: skip

    def _topic_ids(self) -> dict[str, int]:
        batch, reports = self._batch, self._store.reports
        if batch.table is not None:
            return {}
        if not batch.compares_content:
            return dict.fromkeys(batch.targets, 0)
        existing = [topic for topic in batch.targets if self._store.has_topic(topic)]
        ids = {extent.topic: extent.topic_id for extent in reports.topic_extents(existing)}
        return {topic: ids.get(topic, 0) for topic in batch.targets}

    def _producers(self) -> dict[str, Producer]:
        """Create a producer for each topic, before anything is sent.

        No producer stays connected: its name is free for a successor although this process may only have been stopped.
        """
        name = self._batch.producer
        return {
            topic: self._store.create_producer(
                topic, producer_name=name, connected=False, create_topic=self._batch.create_topics
            )
            for topic in self._batch.targets
        }

    def _send(self, producer: Producer, topic: str, txn: Transaction) -> None:
        """Send the entries of a topic in groups of about the size of one store transaction."""
        pending: list[PackedColumns] = []
        size = 0
        for entry in self._entries(topic):
            pending.append(entry)
            size += len(entry.data)
            if size >= WRITE_BYTES_TARGET:
                producer.send_packed(pending, txn=txn)
                self._report_progress(sum(packed.count for packed in pending))
                pending, size = [], 0
        if pending:
            producer.send_packed(pending, txn=txn)
            self._report_progress(sum(packed.count for packed in pending))

    def _table_rows(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Read keys and values; of several rows with one key the last one wins."""
        for rows in self._row_entries():
            yield from ((row.key, row.value) for row in rows)
            self._report_progress(len(rows))

    def _ordered_rows(self) -> Iterator[OrderedRow]:
        return chain.from_iterable(self._row_entries())

    def _row_entries(self) -> Iterator[list[OrderedRow]]:
        """Read the rows of the table, an entry at a time."""
        table = self._batch.table
        assert table is not None, "only a table has rows"
        for entry in self._entries(table):
            try:
                values, keys, _, orders, *_ = entry.columns()
                orders = orders or [None] * len(values)
                yield list(map(OrderedRow._make, zip(keys, values, orders, strict=True)))
            except (ValueError, TypeError) as error:
                raise InvalidValue(f"a staged entry holds no rows of a table: {error}") from None

    def _entries(self, target: str) -> Iterator[PackedColumns]:
        for file in self._batch.files:
            if target in file.rows:
                yield from self._staging.entries(file, target)

    def _report_progress(self, rows: int) -> None:
        self._done += rows
        if self._on_progress is not None:
            self._on_progress(self._done, self._batch.rows)

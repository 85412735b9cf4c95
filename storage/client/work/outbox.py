"""What a transaction has sent and keeps in its process, in order over all producers and topics.

Consecutive sends of one producer are one shipment: they become one entry as far as the bounds of an entry allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from storage import faults
from storage.client.append import Appender, Progress
from storage.disk.view import WriteBatch
from storage.errors import ProducerFenced
from storage.limits import MESSAGE_OVERHEAD_BYTES
from storage.topic.batching import commits_of
from storage.topic.entry import Columns
from storage.txn.record import TransactionRecord
from storage.values.receipt import BatchReceipt, Shipment, StoredEntry

T = TypeVar("T")


class _Part:
    """What one call has sent: messages `start` and following of its shipment."""

    __slots__ = ("columns", "ids", "sizes", "start")

    def __init__(self, columns: Columns, sizes: Sequence[int], ids: Sequence[int] | None, start: int) -> None:
        self.columns = columns
        self.sizes = sizes
        self.ids = ids
        self.start = start


class KeptShipment(Shipment):
    """Consecutive sends of one producer, until they are stored.

    An interrupt leaves out a call or takes it, whole: it is one step to add one.
    """

    __slots__ = ("_parts", "appender")

    def __init__(self, appender: Appender, write: Callable[[], None]) -> None:
        super().__init__(None, write)
        self.appender = appender
        self._parts: list[_Part] = []

    def takes(self, appender: Appender, gives_ids: bool) -> bool:
        """Whether the next messages may go with these."""
        return self.appender is appender and (self._parts[0].ids is not None) is gives_ids

    def add(self, columns: Columns, sizes: Sequence[int], ids: Sequence[int] | None) -> BatchReceipt:
        """Take messages on; the receipt is theirs alone."""
        last = self._parts[-1] if self._parts else None
        start = last.start + len(last.sizes) if last is not None else 0
        self._parts.append(_Part(columns, sizes, ids, start))
        return BatchReceipt(self, start, len(sizes))

    def append(self, batch: WriteBatch, progress: Progress, txn: int) -> list[StoredEntry]:
        """Append all of them.

        Raises:
            SequenceConflict, ProducerBusy
        """
        parts = self._parts
        columns = parts[0].columns if len(parts) == 1 else Columns.joined([each.columns for each in parts])
        sizes = [size for each in parts for size in each.sizes]
        stops = [stop for _, stops in commits_of(sizes) for stop in stops]
        ids = [used for each in parts for used in each.ids or ()] if parts[0].ids is not None else None
        checked = self.appender.check(batch, progress)
        return self.appender.append(checked, progress, columns, 0, stops, ids, txn)

    def settle(self, entries: list[StoredEntry]) -> None:
        """They are stored, and kept no longer."""
        self.entries = entries
        self._parts = []


class KeptSends:
    """See the module.

    Attributes:
        bytes: of all that is kept, with what a message takes beside its own bytes.
        since_ns: of the first of them, on the boot clock.
    """

    __slots__ = ("_shipments", "bytes", "since_ns")

    def __init__(self) -> None:
        self._shipments: list[KeptShipment] = []
        self.bytes = 0
        self.since_ns = 0

    def __bool__(self) -> bool:
        return bool(self._shipments)

    def add(
        self,
        appender: Appender,
        columns: Columns,
        sizes: Sequence[int],
        ids: Sequence[int] | None,
        write: Callable[[], None],
    ) -> BatchReceipt:
        """Keep messages that were checked.

        Args:
            write: has everything written that is kept here.
        """
        shipments = self._shipments
        self.bytes += kept_bytes(sizes)
        if shipments and shipments[-1].takes(appender, ids is not None):
            return shipments[-1].add(columns, sizes, ids)
        shipment = KeptShipment(appender, write)
        receipt = shipment.add(columns, sizes, ids)
        shipments.append(shipment)
        return receipt

    def begin(self, batch: WriteBatch, record: TransactionRecord) -> WritingSends:
        """To write all of them within a batch, in which `record` is the transaction's."""
        return WritingSends(batch, record, self._shipments)

    def forget(self) -> None:
        """Nothing is kept any more: it was stored, or never will be."""
        self._shipments = []
        self.bytes = 0


class WritingSends:
    """Kept sends on their way into the store, within one batch that may come to nothing.

    Attributes:
        total: messages that the transaction has stored then; -1 before it is known.
    """

    __slots__ = ("_batch", "_entries", "_fenced", "_progress", "_record", "_shipments", "total")

    def __init__(self, batch: WriteBatch, record: TransactionRecord, shipments: list[KeptShipment]) -> None:
        self._batch = batch
        self._record = record
        self._shipments = shipments
        self._entries: list[list[StoredEntry]] = []
        self._progress = {each.appender: each.appender.progress.copy() for each in shipments}
        self._fenced: Appender | None = None
        self.total = -1

    def check(self) -> None:
        """See that every producer may publish, before anything is written.

        Raises:
            ProducerFenced: one may not; the transaction is doomed, durably.
            ProducerBusy, TopicNotFound
        """
        for appender, progress in self._progress.items():
            try:
                appender.check(self._batch, progress)
            except ProducerFenced as error:
                self._fenced = appender
                raise appender.refusal(self._batch, self._record, error) from None

    def append(self) -> None:
        """Append everything, and count it in the record, which the caller saves.

        Raises:
            SequenceConflict
        """
        for shipment in self._shipments:
            progress = self._progress[shipment.appender]
            entries = shipment.append(self._batch, progress, self._record.txn_id)
            self._record.messages += sum(len(entry.fresh) for entry in entries)
            self._entries.append(entries)
            faults.reach("txn.between_kept_sends")
        self.total = self._record.messages

    def settle(self) -> None:
        """The batch is committed: producers and receipts learn what it came to."""
        for shipment, entries in zip(self._shipments, self._entries, strict=True):
            shipment.settle(entries)
        for appender, progress in self._progress.items():
            appender.progress = progress

    def note(self, error: BaseException) -> None:
        """The batch came to nothing, or dooms the transaction. A producer that is fenced learns of it."""
        if self._fenced is not None and isinstance(error, ProducerFenced):
            self._fenced.fenced = error


def kept_bytes(sizes: Sequence[int]) -> int:
    """What messages of these sizes take."""
    return sum(sizes) + len(sizes) * MESSAGE_OVERHEAD_BYTES

"""The messages that a transaction has sent and that are not stored yet, in order over all producers and topics.

Consecutive sends of one producer are one batch, cut into as few entries as the bounds of an entry allow.
"""

from __future__ import annotations

from collections.abc import Callable

from storage import faults
from storage.client.append import Appender, BatchAppend, Outgoing, ProducerProgress
from storage.disk.view import WriteBatch
from storage.errors import ProducerFenced
from storage.limits import ENTRY_BYTES_TARGET, ENTRY_MESSAGES_MAX, WRITE_BYTES_TARGET
from storage.topic.batching import commits_of
from storage.topic.entry import Columns
from storage.txn.record import TransactionRecord
from storage.values.receipt import BatchReceipt, StoredEntry, WriteGroup

Locate = Callable[["BufferedBatch"], None]


class BufferedBatch(WriteGroup):
    """Consecutive sends of one producer, until the messages are stored.

    Adding a call is one step, so that an interrupt leaves a call out or takes the whole.

    Attributes:
        are_numbered: whether sequence ids were given, with all messages; else with none.
    """

    __slots__ = ("_calls", "_locate", "appender", "are_numbered")

    def __init__(self, appender: Appender, locate: Locate, are_numbered: bool) -> None:
        super().__init__(None)
        self.appender = appender
        self.are_numbered = are_numbered
        self._locate = locate
        self._calls: list[tuple[int, Outgoing]] = []

    def look(self) -> list[StoredEntry]:
        """The entries; the messages are stored now if they are still buffered.

        Raises:
            TxnctlError: the messages cannot be stored.
        """
        if self.entries is None:
            self._locate(self)
        return super().look()

    def add(self, outgoing: Outgoing) -> BatchReceipt:
        """Take the messages of one call; the receipt covers these messages alone."""
        start = 0
        if self._calls:
            before, latest = self._calls[-1]
            start = before + latest.columns.count
        self._calls += [(start, outgoing)]
        return BatchReceipt(self, start, outgoing.columns.count)

    def append(self, batch_append: BatchAppend) -> list[StoredEntry]:
        """Append all messages.

        Raises:
            SequenceConflict, ProducerBusy
        """
        start, latest = self._calls[-1]
        columns, ids, bytes_buffered = latest.columns, latest.sequence_ids, 0
        if start:
            columns = Columns.joined([call.columns for _, call in self._calls])
            if ids is not None:
                ids = [used for _, call in self._calls for used in call.sequence_ids or ()]
        for _, call in self._calls:
            bytes_buffered += call.buffered_bytes
        stops = [columns.count]
        if columns.count > ENTRY_MESSAGES_MAX or bytes_buffered > ENTRY_BYTES_TARGET:
            sizes = [size for _, call in self._calls for size in call.sizes]
            stops = [stop for _, stops in commits_of(sizes) for stop in stops]
        if batch_append.has_changed:
            batch_append.check_publish()
        return batch_append.append(columns, 0, stops, ids)

    def settle(self, entries: list[StoredEntry]) -> None:
        """Tell the receipts where the messages are, and drop the messages."""
        self.entries = entries
        self._calls = []


class Outbox:
    """A part of a transaction; see the module and `Part`.

    Attributes:
        is_empty: whether no message is buffered.
        since_ns: when the oldest message was sent, on the boot clock.
    """

    __slots__ = (
        "_appends",
        "_batches",
        "_bytes",
        "_bytes_max",
        "_entries",
        "_fenced",
        "is_empty",
        "since_ns",
    )

    def __init__(self, bytes_max: int = WRITE_BYTES_TARGET) -> None:
        """Args:
        bytes_max: the capacity; an outbox of 0 bytes takes nothing, so that every message is stored at once.
        """
        self._bytes_max = bytes_max
        self._batches: list[BufferedBatch] = []
        self._bytes = 0
        self._appends: dict[Appender, BatchAppend] = {}
        self._entries: list[list[StoredEntry]] = []
        self._fenced: tuple[Appender, ProducerFenced] | None = None
        self.is_empty = True
        self.since_ns = 0

    @property
    def size(self) -> int:
        """The bytes buffered."""
        return self._bytes

    def progress(self) -> list[tuple[Appender, ProducerProgress]]:
        """The progress of each producer, as `apply` has left it."""
        return [(appender, batch_append.progress) for appender, batch_append in self._appends.items()]

    def has_room(self, outgoing: Outgoing) -> bool:
        """Whether the messages fit beside those buffered already."""
        return self._bytes + outgoing.buffered_bytes <= self._bytes_max

    def add(self, appender: Appender, outgoing: Outgoing, locate: Locate) -> BatchReceipt:
        """Buffer checked messages.

        Args:
            locate: called when a receipt is read before its batch is stored: stores the batch, or raises the
                reason why that is impossible.
        """
        batches = self._batches
        # First, so that an interrupt leaves no message in an outbox that says that there is none.
        self.is_empty = False
        self._bytes += outgoing.buffered_bytes
        are_numbered = outgoing.sequence_ids is not None
        if batches:
            latest = batches[-1]
            if latest.appender is appender and latest.are_numbered is are_numbered:
                return latest.add(outgoing)
        buffered = BufferedBatch(appender, locate, are_numbered)
        receipt = buffered.add(outgoing)
        batches.append(buffered)
        return receipt

    def check(self, batch: WriteBatch, record: TransactionRecord) -> None:
        """See that every producer may publish.

        Raises:
            ProducerFenced: one producer may not; the transaction is doomed, durably.
            ProducerBusy, TopicNotFound
        """
        self._entries, self._fenced = [], None
        self._appends = appends = dict[Appender, BatchAppend]()
        for buffered in self._batches:
            appender = buffered.appender
            if appender in appends:
                continue
            batch_append = appends[appender] = BatchAppend(appender, batch, record.txn_id)
            try:
                batch_append.check_publish()
            except ProducerFenced as error:
                self._fenced = appender, error
                raise appender.refusal(batch, record, error) from None

    def apply(self, batch: WriteBatch, record: TransactionRecord, *, commits: bool) -> None:  # noqa: ARG002
        """Append all messages, and count them in the record.

        Raises:
            SequenceConflict: nothing of the batch is kept.
        """
        for buffered in self._batches:
            entries = buffered.append(self._appends[buffered.appender])
            for entry in entries:
                record.messages += len(entry.fresh)
            self._entries += [entries]
            faults.reach("txn.between_kept_sends")

    def settle(self) -> None:
        """Tell producers and receipts where the messages are, and drop the messages."""
        # A settlement that was interrupted is repeated, maybe with the messages gone.
        for buffered, entries in zip(self._batches, self._entries, strict=False):
            buffered.settle(entries)
        for appender in self._appends:
            appender.progress = self._appends[appender].progress
        self._drop()

    def discard(self) -> None:
        """Drop the messages. A producer that was fenced learns of it, so that its next send fails at once."""
        if self._fenced is not None:
            appender, error = self._fenced
            appender.fenced = error
        self._drop()

    def _drop(self) -> None:
        # The messages go first, so that an interrupt in between never stores a message again.
        self._batches = []
        self.is_empty = True
        self._appends, self._entries, self._fenced, self._bytes = {}, [], None, 0

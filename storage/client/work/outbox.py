"""The messages that a transaction has sent and that are not stored yet, in order over all producers and topics.

Consecutive sends of one producer are one batch, cut into as few entries as the bounds of an entry allow.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from operator import attrgetter

from storage import faults
from storage.client.append import Appender, BatchAppend, Outgoing, ProducerProgress
from storage.disk.view import WriteBatch
from storage.errors import ProducerFenced
from storage.limits import WRITE_BYTES_TARGET
from storage.topic.batching import commits_of
from storage.topic.entry import Columns
from storage.txn.record import TransactionRecord
from storage.values.receipt import BatchReceipt, StoredEntry, WriteGroup

Locate = Callable[["BufferedBatch"], None]


class BufferedBatch(WriteGroup):
    """Consecutive sends of one producer, until the messages are stored.

    Adding a call is one step, so that an interrupt leaves a call out or takes the whole.
    """

    __slots__ = ("_calls", "_locate", "appender")

    def __init__(self, appender: Appender, locate: Locate) -> None:
        super().__init__(None)
        self.appender = appender
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

    def takes(self, appender: Appender, outgoing: Outgoing) -> bool:
        """Whether the messages may join the batch: same producer, and sequence ids given in both or in neither."""
        are_numbered = self._calls[0][1].sequence_ids is not None
        return self.appender is appender and are_numbered is (outgoing.sequence_ids is not None)

    def add(self, outgoing: Outgoing) -> BatchReceipt:
        """Take the messages of one call; the receipt covers these messages alone."""
        start = 0
        if self._calls:
            before, latest = self._calls[-1]
            start = before + latest.columns.count
        self._calls.append((start, outgoing))
        return BatchReceipt(self, start, outgoing.columns.count)

    def append(self, batch_append: BatchAppend) -> list[StoredEntry]:
        """Append all messages.

        Raises:
            SequenceConflict, ProducerBusy
        """
        calls = [outgoing for _, outgoing in self._calls]
        columns, sizes = calls[0].columns, calls[0].sizes
        if len(calls) > 1:
            columns = Columns.joined([call.columns for call in calls])
            sizes = list(chain.from_iterable(map(attrgetter("sizes"), calls)))
        commits = commits_of(sizes)
        stops = commits[0][1] if len(commits) == 1 else [stop for _, stops in commits for stop in stops]
        are_numbered = calls[0].sequence_ids is not None
        ids = [used for call in calls for used in call.sequence_ids or ()] if are_numbered else None
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
        if batches and batches[-1].takes(appender, outgoing):
            return batches[-1].add(outgoing)
        buffered = BufferedBatch(appender, locate)
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
        self._appends = {
            buffered.appender: BatchAppend(buffered.appender, batch, record.txn_id)
            for buffered in self._batches
        }
        for appender, batch_append in self._appends.items():
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
            self._entries.append(entries)
            faults.reach("txn.between_kept_sends")

    def settle(self) -> None:
        """Tell producers and receipts where the messages are, and drop the messages."""
        # A settlement that was interrupted is repeated, maybe with the messages gone.
        for buffered, entries in zip(self._batches, self._entries, strict=False):
            buffered.settle(entries)
        for appender, batch_append in self._appends.items():
            appender.progress = batch_append.progress
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

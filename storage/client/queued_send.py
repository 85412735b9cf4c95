"""A send in the queue of a group, outside of transactions: at most one commit, of one or more entries."""

from __future__ import annotations

from collections.abc import Sequence

from storage.client.append import Appender, BatchAppend, Outgoing, ProducerProgress
from storage.client.work.end import End
from storage.client.work.end_queue import EndQueue
from storage.disk.view import WriteBatch
from storage.errors import ProducerFenced, StoreClosed, TxnctlError
from storage.values.receipt import BatchReceipt, StoredEntry, WriteGroup


class QueuedMessages(WriteGroup):
    """The messages of a queued send; a look at a receipt flushes the queue."""

    __slots__ = ("_queue", "error")

    def __init__(self, queue: EndQueue) -> None:
        super().__init__(None)
        self._queue = queue
        self.error: TxnctlError | None = None

    def look(self) -> list[StoredEntry]:
        """The entries.

        Raises:
            TxnctlError: the send was refused, or the queue cannot be flushed.
        """
        if self.entries is None and self.error is None:
            self._queue.flush_ends()
        if self.error is not None:
            raise self.error
        if self.entries is None:
            raise StoreClosed(
                "the message was sent in a group of the parent of this process, which stores it"
            )
        return super().look()


class QueuedSend(End):
    """See the module."""

    __slots__ = ("_appender", "_entries", "_messages", "_outgoing", "_progress", "_stops", "receipt")

    def __init__(self, appender: Appender, outgoing: Outgoing, stops: list[int], queue: EndQueue) -> None:
        """Args:
        stops: the end of each entry.
        """
        super().__init__(0, outgoing.buffered_bytes)
        self._appender = appender
        self._outgoing = outgoing
        self._stops = stops
        self._messages = QueuedMessages(queue)
        self.subject = self.receipt = BatchReceipt(self._messages, 0, outgoing.columns.count)
        self._entries: list[StoredEntry] = []
        self._progress: ProducerProgress | None = None

    def change(self, batch: WriteBatch) -> None:
        appender, outgoing = self._appender, self._outgoing
        append = BatchAppend(appender, batch, 0)
        try:
            append.check_publish()
        except ProducerFenced as error:
            raise appender.refusal(batch, None, error) from None
        self._entries = append.append(outgoing.columns, 0, self._stops, outgoing.sequence_ids)
        self._progress = append.progress

    def progress(self) -> Sequence[tuple[Appender, ProducerProgress]]:
        return () if self._progress is None else ((self._appender, self._progress),)

    def mark_durable(self) -> None:
        assert self._progress is not None, "a committed batch has run"
        self._appender.progress = self._progress
        self._messages.entries = self._entries

    def refuse(self, error: TxnctlError) -> None:
        self.error = self._messages.error = error
        if isinstance(error, ProducerFenced):
            self._appender.fenced = error

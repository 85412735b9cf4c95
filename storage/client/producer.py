"""A producer: appends messages to one topic, each send one durable commit, or buffered by its transaction.

Messages are checked before anything else; the conditions inside the store transaction are in append.py. A producer's
messages stand in its topic in the order of the sends: before a send elsewhere, messages that a transaction buffers are
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, overload

from storage.client.append import Appender, BatchAppend, Creation, Outgoing
from storage.client.block_end import close_after
from storage.client.transaction import SerializableTransaction, Transaction, txn_number
from storage.disk.connection import Connection
from storage.disk.view import WriteBatch
from storage.errors import InvalidValue, ProducerFenced, StoreClosed
from storage.limits import MESSAGE_BYTES_MAX
from storage.topic.batching import (
    Commits,
    check_sequence_ids,
    columns_of,
    commits_of,
    packed_commits_of,
    sizes_of,
    unpacked,
)
from storage.topic.catalogue import Topic
from storage.topic.delivery_times import Delays, Times, delivery_times
from storage.topic.entry import Columns, PackedColumns, PackedEntries
from storage.topic.producers import session_end
from storage.topic.producers.access_mode import AccessMode
from storage.topic.producers.publish_check import Connected, Credential
from storage.txn import record as records
from storage.txn.coordinator import Coordinator
from storage.values.position import LateMessageId, MessageId, as_message_id
from storage.values.receipt import BatchReceipt, StoredEntry, WriteGroup
from storage.values.txn_id import TxnID

if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import TypedDict, Unpack

    from storage.client.async_sends import AsyncSends
    from storage.client.work.end_queue import EndQueue
    from storage.client.work.work import Work

    class MessageFields(TypedDict, total=False):
        """The fields of a message beside its value, for `Producer.send`."""

        key: str | bytes | None
        properties: dict[str, str] | None
        event_time: int | None
        sequence_id: int | None
        deliver_after: float | None
        deliver_at: int | None


_ALONE: Final = (0, [1])
"""The cut of a single message, of any size: one entry, in one commit."""


class Producer:
    """Made by `Store.create_producer`. For one thread at a time."""

    def __init__(
        self,
        connection: Connection,
        coordinator: Coordinator,
        topic: Topic,
        credential: Credential,
        creation: Creation | None = None,
    ) -> None:
        """Args:
        creation: creates the topic, and connects the producer, with the first message.
        """
        self._connection = connection
        self._coordinator = coordinator
        self._appender = Appender(coordinator, connection.identity, topic, credential, creation)
        self._buffering: Work | None = None
        self._queue: EndQueue | None = None
        self._async: AsyncSends | None = None
        self._has_left = False
        self._closed = False

    @property
    def _credential(self) -> Credential:
        return self._appender.progress.credential

    @property
    def topic(self) -> str:
        return self._appender.progress.topic.name

    @property
    def producer_name(self) -> str | None:
        """The name; None before the first message of a producer that is neither named nor connected."""
        return self._appender.progress.name

    @property
    def last_sequence_id(self) -> int:
        """Of the last message stored; -1 before the first. Buffered messages are stored for the answer.

        Raises:
            as `flush`
        """
        self.flush()
        return self._appender.progress.last_sequence_id

    @property
    def access_mode(self) -> AccessMode:
        return self._credential.mode

    @property
    def topic_epoch(self) -> int | None:
        """The topic's epoch at the connect; None while the topic had no exclusive owner yet."""
        epoch = self._credential.epoch
        return None if epoch is None or epoch < 0 else epoch

    @property
    def session(self) -> str | None:
        """The token of the session; None if the producer is not connected between sends."""
        return self._credential.token

    @overload
    def send(
        self, value: bytes | None, *, txn: TxnID | str | None = None, **message: Unpack[MessageFields]
    ) -> MessageId: ...

    @overload
    def send(
        self, value: bytes | None, *, txn: Transaction | TxnID | str | None, **message: Unpack[MessageFields]
    ) -> MessageId | LateMessageId: ...

    def send(
        self,
        value: bytes | None,
        *,
        key: str | bytes | None = None,
        properties: dict[str, str] | None = None,
        event_time: int | None = None,
        sequence_id: int | None = None,
        deliver_after: float | None = None,
        deliver_at: int | None = None,
        txn: Transaction | TxnID | str | None = None,
    ) -> MessageId | LateMessageId:
        """Store one message durably; its id, or DUPLICATE.

        A `Transaction` of this process may buffer the message until its flush or commit, a second at the most. The id
        is then found at the first look, which also raises the errors that depend on the store. So it is within a group
        of this thread (`Store.group`), also without a transaction.

        Args:
            value: at most 5 MiB with key and properties; None is a tombstone.
            event_time: milliseconds since 1970.
            sequence_id: the message is stored once under this id and the producer's name.
            deliver_after: seconds from now for which Shared and Key_Shared subscriptions do not deliver the message.
            deliver_at: the same as a wall time, in milliseconds since 1970.
            txn: the open transaction of the message.

        Raises:
            InvalidValue, MessageTooLarge, TopicNotFound, SequenceConflict, TransactionNotFound, TransactionNotOpen,
            TransactionTimedOut, WriterBusy, StoreFull
            ProducerFenced: the producer lost the topic, for ever; its transaction is aborted.
            ProducerBusy: the producer is not connected between sends, and the topic has an owner now.
        """
        is_bare = key is None and event_time is None and sequence_id is None and not properties
        is_bare = is_bare and deliver_after is None and deliver_at is None
        if is_bare and type(value) is bytes and len(value) <= MESSAGE_BYTES_MAX:
            columns = Columns([value])
            if txn is None and self._connection.reads_at_once:
                return self._send_alone(columns)
            receipt = self._send(Outgoing(columns, [len(value)], None), txn)
        else:
            receipt = self.send_batch(
                [value],
                keys=None if key is None else [key],
                properties=None if not properties else [properties],
                event_times=None if event_time is None else [event_time],
                sequence_ids=None if sequence_id is None else [sequence_id],
                deliver_after=deliver_after,
                deliver_at=deliver_at,
                txn=txn,
            )
        if receipt.is_buffered:
            return LateMessageId(lambda: receipt.last_message_id)
        return receipt.last_message_id

    def send_async(self, value: bytes | None, **message: Unpack[MessageFields]) -> Future[MessageId]:
        """Send one message outside of transactions; the future has what `send` returns or raises.

        A thread stores what was sent in the meantime in one durable commit, in order. While 20,000 messages or 16 MiB
        wait, the call waits. Every other call of the producer waits until all is stored.

        Raises:
            InvalidValue, MessageTooLarge, StoreClosed: nothing was sent.
            as `flush`, if messages that a transaction buffers are in the way
        """
        from storage.client.async_sends import AsyncSends, outgoing_of

        connection = self._connection
        if self._async is None:
            self._async = AsyncSends(self.topic, self._store_sizes, connection.before_close)
        outgoing = outgoing_of(connection.clock, self._credential.keeps_sequences, value, message)
        self._check_open()
        if not connection.reads_at_once and (queue := connection.queue) is not None:
            queue.flush_ends()
        self._go_on_in(None, drains=False)
        return self._async.put(outgoing)

    def send_batch(
        self,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[str | bytes | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_times: Sequence[int | None] | None = None,
        sequence_ids: Sequence[int] | None = None,
        deliver_after: Delays = None,
        deliver_at: Times = None,
        txn: Transaction | TxnID | str | None = None,
    ) -> BatchReceipt:
        """Store many messages, in order, in entries of a bounded size.

        Up to 8 MiB is one durable commit. More is several, so a failure in between leaves the first part stored, which
        never shows in a transaction. A `Transaction` of this process may buffer the messages, as with `send`.

        Args:
            deliver_after, deliver_at: as with `send`: one for all messages, or a list with one for each.

        Raises:
            as `send`
        """
        times: Sequence[int | None] | None = None
        if deliver_after is not None or deliver_at is not None:
            times = delivery_times(self._connection.clock.wall_ms(), values, deliver_after, deliver_at)
        columns = columns_of(values, keys, properties, event_times, times)
        if sequence_ids is not None:
            check_sequence_ids(sequence_ids, len(values), self._credential.keeps_sequences)
        return self._send(Outgoing(columns, sizes_of(columns), sequence_ids), txn)

    def send_packed(
        self, entries: Sequence[PackedColumns], *, txn: Transaction | TxnID | str | None = None
    ) -> BatchReceipt:
        """Store entries that were packed elsewhere, with `batching.entries_of`, in order and as packed.

        Packed messages are checked like any messages, and get this producer's name and sequence ids. Up to 8 MiB is one
        durable commit, more is several; a transaction buffers none of the entries.

        Raises:
            InvalidValue: not such an entry.
            as `send` otherwise
        """
        if not entries:
            raise InvalidValue("there is no message to send")
        for entry in entries:
            unpacked(entry)
        self._check_open()
        number = 0 if txn is None else txn_number(self._connection, txn)
        self._go_on_in(None)
        return self._store(PackedEntries(entries), packed_commits_of(entries), None, number)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"this producer on {self.topic} is closed")

    def _send_alone(self, columns: Columns) -> MessageId:
        """Store one checked message, outside transactions and without a sequence id: always a new message."""
        if self._closed:
            self._check_open()
        if self._async is not None or self._queue is not None or self._buffering is not None:
            self._go_on_in(None)
        (entry,) = self._store_commit(columns, _ALONE, None, 0)
        assert entry.position is not None, "a message without a sequence id is no duplicate"
        return as_message_id((*entry.position, -1))

    def _send(self, outgoing: Outgoing, txn: Transaction | TxnID | str | None) -> BatchReceipt:
        """Store checked messages, or have the transaction buffer the messages."""
        if self._closed:
            self._check_open()
        # An abstract class answers `isinstance` slowly.
        attached = txn if type(txn) is SerializableTransaction or isinstance(txn, Transaction) else None
        # A producer that knows of its fencing fails at once.
        if attached is not None and self._appender.fenced is None:
            is_here = attached.connection is self._connection
            work = attached.work if is_here else attached.work_in(self._connection)
            if self._buffering is not work or self._async is not None or self._queue is not None:
                self._go_on_in(work)
            buffered = work.buffer_messages(self._appender, outgoing)
            if buffered is not None:
                return buffered
        number = 0 if txn is None else txn_number(self._connection, txn)
        self._go_on_in(None)
        commits = commits_of(outgoing.sizes)
        if not (number or self._connection.reads_at_once or len(commits) > 1):
            queued = self._queue_send(outgoing, commits[0][1])
            if queued is not None:
                return queued
        return self._store(outgoing.columns, commits, outgoing.sequence_ids, number)

    def _queue_send(self, outgoing: Outgoing, stops: list[int]) -> BatchReceipt | None:
        """Leave messages of one commit to the queue of a group; None outside of a group of this thread."""
        from storage.client.queued_send import QueuedSend
        from storage.client.work.end_queue import queue_of

        queue = queue_of(self._connection)
        if queue is None:
            return None
        end = QueuedSend(self._appender, outgoing, stops, queue)
        self._queue = queue
        queue.enqueue(end)
        return end.receipt

    def _go_on_in(self, work: Work | None, *, drains: bool = True) -> None:
        """Keep the producer's order: the messages of `send_async`, of groups and transactions come before the next."""
        if drains and self._async is not None:
            self._async.drain()
        if self._queue is not None and self._connection.queue is not self._queue:
            self._queue.flush_ends()
            self._queue = None
        if self._buffering is not None and self._buffering is not work:
            self._buffering.flush_before_producer_leaves()
        self._buffering = work

    def _store(
        self, columns: Columns | PackedEntries, commits: Commits, ids: Sequence[int] | None, txn: int
    ) -> BatchReceipt:
        """Store messages now, each of the commits durable before the next."""
        entries = list[StoredEntry]()
        for commit in commits:
            entries += self._store_commit(columns, commit, ids, txn)
        return BatchReceipt(WriteGroup(entries), 0, columns.count)

    def _store_commit(
        self,
        columns: Columns | PackedEntries,
        commit: tuple[int, list[int]],
        ids: Sequence[int] | None,
        txn: int,
    ) -> list[StoredEntry]:
        appender, progress, (start, stops) = self._appender, self._appender.progress, commit

        def change(batch: WriteBatch) -> list[StoredEntry]:
            nonlocal progress
            batch_append = BatchAppend(appender, batch, txn)
            progress = batch_append.progress
            try:
                batch_append.check_publish()
            except ProducerFenced as error:
                raise appender.refusal(batch, records.find(batch, txn) if txn else None, error) from None
            record = self._coordinator.use(batch, txn, self._connection.identity) if txn else None
            stored = batch_append.append(columns, start, stops, ids)
            if record is not None:
                record.messages += sum(len(entry.fresh) for entry in stored)
            return stored

        try:
            entries = self._connection.write(change, naming=txn)
            appender.progress = progress
        except BaseException as error:
            if isinstance(error, ProducerFenced):
                appender.fenced = error
            # The batch may be committed all the same (an interrupt): no sequence id may be used twice.
            appender.progress.next_sequence += stops[-1] - start
            raise
        return entries

    def _store_sizes(self, columns: Columns, sizes: Sequence[int], ids: Sequence[int] | None) -> BatchReceipt:
        """Store messages of given sizes now, for `send_async`."""
        return self._store(columns, commits_of(sizes), ids, 0)

    def flush(self) -> None:
        """Store what a transaction, a group or `send_async` keeps; every other message was durable at its return.

        Raises:
            ProducerFenced, LostConflict, TransactionNotOpen, TransactionTimedOut: the transaction is aborted.
            SequenceConflict, ProducerBusy, TopicNotFound, WriterBusy, StoreFull: nothing was written.
        """
        if self._async is not None:
            self._async.drain()
        if self._queue is not None:
            self._queue.flush_ends()
        if self._buffering is not None:
            self._buffering.flush_messages()

    def close(self) -> None:
        """Leave the topic to the next producer that waits. A session that another process holds stays open.

        Messages that a transaction, a group or `send_async` keeps are stored before: every future is resolved.

        Raises:
            WriterBusy: nothing more can be sent, and the topic is still held; close the producer again.
        """
        self._closed = True
        self._go_on_in(None)
        if not self._has_left and isinstance(self._credential, Connected):
            session = self._credential.session
            self._connection.write(lambda batch: session_end.leave(batch, session))
        self._has_left = True

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        close_after(kind, self.close)

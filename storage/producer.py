"""A producer: appends messages to one topic, each send one durable commit.

What is sent is checked before the writer gate is entered. Inside the store transaction stands all that must be true
of the append: the topic still exists and this producer may publish to it, sequence ids are new, the transaction is
open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from storage.connection import Connection
from storage.errors import InvalidName, InvalidValue, ProducerFenced, StoreClosed, TopicNotFound
from storage.ledger import admission, managed_ledger, refusals, sequence_ids, topic as topics, topic_head
from storage.ledger.access import AccessMode
from storage.ledger.entry import MESSAGES, Columns, PackedColumns, PackedEntries
from storage.ledger.publisher import Connected, Publisher
from storage.ledger.topic import Topic
from storage.limits import ENTRY_BYTES_TARGET
from storage.names import LETTERS_PREFIX, check_name
from storage.outgoing import (
    Commits,
    check_sequence_ids,
    columns_of,
    commits_of,
    packed_commits_of,
    unpacked,
)
from storage.position import MessageId, Position
from storage.transaction import Transaction, txn_number
from storage.txn import buffer, record as records
from storage.txn.coordinator import Coordinator
from storage.txn.fence import Fence
from storage.txn_id import TxnID
from storage.txn_state import AbortReason, TransactionState
from storage.view import ReadView, WriteBatch

DUPLICATE = MessageId(-1, -1, -1)
"""What `send` returns for a sequence id that is stored already, as Pulsar does: nothing was stored again."""

_ONE: Commits = [(0, [1])]
"""How a single message is stored: one commit, one entry."""


class BatchReceipt:
    """Where a batch went: entries in order, with how many messages each.

    Attributes:
        count: messages stored.
        duplicates: messages left out because their sequence ids are stored already.
        last_sequence_id: of the last message stored; -1 if none was.
    """

    __slots__ = ("count", "duplicates", "entries", "last_sequence_id")

    def __init__(self) -> None:
        self.entries: list[tuple[Position, int]] = []
        self.count = self.duplicates = 0
        self.last_sequence_id = -1

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[MessageId]:
        for position, count in self.entries:
            if count == 1:
                yield MessageId(*position)
            else:
                for index in range(count):
                    yield MessageId(*position, index)

    @property
    def last_message_id(self) -> MessageId:
        """The id of the last message stored; DUPLICATE if none was."""
        if not self.entries:
            return DUPLICATE
        position, count = self.entries[-1]
        return MessageId(*position, count - 1 if count > 1 else -1)


class Producer:
    """Made by `Store.create_producer`. For one thread at a time."""

    def __init__(
        self, connection: Connection, coordinator: Coordinator, topic: Topic, publisher: Publisher
    ) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self._topic = topic
        self._publisher = publisher
        self._fence = Fence(coordinator, connection.owner)
        self._fenced: ProducerFenced | None = None
        self._has_left = False
        self._name = publisher.name
        self._next_sequence = 0
        self._closed = False
        self.last_sequence_id = -1

    @property
    def topic(self) -> str:
        return self._topic.name

    @property
    def producer_name(self) -> str | None:
        """Its name; None before the first message of one that is neither named nor connected."""
        return self._name

    @property
    def access_mode(self) -> AccessMode:
        return self._publisher.mode

    @property
    def topic_epoch(self) -> int | None:
        """The topic's epoch when it connected; None while the topic had no exclusive owner yet."""
        epoch = self._publisher.epoch
        return None if epoch is None or epoch < 0 else epoch

    @property
    def session(self) -> str | None:
        """The token of its session; None if it is not connected between sends."""
        return self._publisher.token

    def send(
        self,
        value: bytes | None,
        *,
        key: str | bytes | None = None,
        properties: dict[str, str] | None = None,
        event_time: int | None = None,
        sequence_id: int | None = None,
        txn: Transaction | TxnID | str | None = None,
    ) -> MessageId:
        """Store one message durably; its id, or DUPLICATE.

        Args:
            value: at most 5 MiB with key and properties; None is a tombstone.
            event_time: milliseconds since 1970.
            sequence_id: makes the message one that is stored once under this producer name.
            txn: the open transaction it belongs to.

        Raises:
            InvalidValue, MessageTooLarge, TopicNotFound, SequenceConflict, TransactionNotFound, TransactionNotOpen,
            TransactionTimedOut, WriterBusy, StoreFull
            ProducerFenced: it lost the topic, for ever; in a transaction, that is aborted.
            ProducerBusy: it is not connected between sends, and the topic is somebody else's now.
        """
        is_bare = key is None and event_time is None and sequence_id is None and not properties
        if is_bare and type(value) is bytes and len(value) <= ENTRY_BYTES_TARGET:
            return self._store(Columns([value]), _ONE, None, txn).last_message_id
        receipt = self.send_batch(
            [value],
            keys=None if key is None else [key],
            properties=None if not properties else [properties],
            event_times=None if event_time is None else [event_time],
            sequence_ids=None if sequence_id is None else [sequence_id],
            txn=txn,
        )
        return receipt.last_message_id

    def send_batch(
        self,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[str | bytes | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_times: Sequence[int | None] | None = None,
        sequence_ids: Sequence[int] | None = None,
        txn: Transaction | TxnID | str | None = None,
    ) -> BatchReceipt:
        """Store many messages, in order, in entries of a bounded size.

        Up to 8 MiB is one durable commit. More is several, so a failure in between leaves the first part stored;
        in a transaction that never shows.

        Raises:
            as `send`
        """
        columns = columns_of(values, keys, properties, event_times)
        if sequence_ids is not None:
            check_sequence_ids(sequence_ids, len(values), self._publisher.keeps_sequences)
        return self._store(columns, commits_of(columns), sequence_ids, txn)

    def send_packed(
        self, entries: Sequence[PackedColumns], *, txn: Transaction | TxnID | str | None = None
    ) -> BatchReceipt:
        """Store entries that were packed elsewhere, with `outgoing.entries_of`, in order and as they are.

        They are checked as other messages are, and get this producer's name and sequence ids. Up to 8 MiB is one
        durable commit, more is several.

        Raises:
            InvalidValue: one is no such entry.
            as `send` otherwise
        """
        if not entries:
            raise InvalidValue("there is no message to send")
        for entry in entries:
            unpacked(entry)
        return self._store(PackedEntries(entries), packed_commits_of(entries), None, txn)

    def _store(
        self,
        columns: Columns | PackedEntries,
        commits: Commits,
        sequence_ids: Sequence[int] | None,
        txn: Transaction | TxnID | str | None,
    ) -> BatchReceipt:
        """Store what was checked, as `_commits` says."""
        if self._closed:
            raise StoreClosed(f"this producer on {self._topic.name} is closed")
        number = 0 if txn is None else txn_number(txn)
        receipt = BatchReceipt()
        for start, stops in commits:

            def change(batch: WriteBatch, start: int = start, stops: list[int] = stops) -> tuple[str, int]:
                return self._append(batch, columns, start, stops, sequence_ids, number)

            try:
                self._name, self._next_sequence = self._connection.write(change, naming=number)
            except BaseException as error:
                if isinstance(error, ProducerFenced):
                    self._fenced = error
                # It may have been committed all the same (an interrupt): no sequence id may be used twice.
                self._next_sequence += stops[-1] - start
                raise
            receipt.entries += self._written
            receipt.count += sum(count for _, count in self._written)
        receipt.duplicates = columns.count - receipt.count
        if receipt.count:
            self.last_sequence_id = receipt.last_sequence_id = self._last_used
        return receipt

    def _append(
        self,
        batch: WriteBatch,
        columns: Columns | PackedEntries,
        start: int,
        stops: list[int],
        sequence_ids: Sequence[int] | None,
        txn: int,
    ) -> tuple[str, int]:
        """Append the messages from `start` to the last of `stops`, an entry up to each of them."""
        topic_id = self._topic.topic_id
        head, number, name = self._checked(batch, txn)
        record = self._coordinator.use(batch, txn, self._connection.owner) if txn else None
        head = admission.publishes(batch, topic_id, head, number, txn, self._fence)
        sequence = self._next_sequence
        self._written: list[tuple[Position, int]] = []
        for stop in stops:
            part = columns.part(start, stop)
            ids = None if sequence_ids is None else sequence_ids[start:stop]
            sequence = self._append_entry(batch, head, part, name, sequence, ids, txn)
            start = stop
        topic_head.save(batch, topic_id, head)
        if record is not None:
            record.messages += sum(count for _, count in self._written)
            records.save(batch, record)
        return name, sequence

    def _checked(self, batch: WriteBatch, txn: int) -> tuple[topic_head.TopicHead, int, str]:
        """The topic's head, session and name, if this producer may publish. Who is fenced dooms the transaction."""
        try:
            if self._fenced is not None:
                raise self._fenced
            return self._publisher.check(batch, self._head(batch), self._name)
        except ProducerFenced as error:
            if error.details["lastSequenceId"] is None and self.last_sequence_id >= 0:
                error.details["lastSequenceId"] = self.last_sequence_id
            record = records.find(batch, txn) if txn else None
            if record is not None and record.state is TransactionState.OPEN:
                by = self._connection.owner
                self._coordinator.abort(batch, txn, by, AbortReason.FENCED, error.message)
            raise batch.refuse(error) from None

    def _head(self, view: ReadView) -> topic_head.TopicHead:
        try:
            return topic_head.load(view, self._topic.topic_id)
        except TopicNotFound:
            if topics.find(view, self._topic.full_name) is None:
                raise
            raise refusals.recreated(self._topic.name, self._name, self._publisher.epoch) from None

    def _append_entry(
        self,
        batch: WriteBatch,
        head: topic_head.TopicHead,
        part: Columns | PackedColumns,
        name: str,
        sequence: int,
        ids: Sequence[int] | None,
        txn: int,
    ) -> int:
        topic_id, given = self._topic.topic_id, list(ids) if ids is not None else None
        if given is not None:
            fresh = sequence_ids.claim(batch, topic_id, name, given, txn)
            if not fresh:
                return sequence
            if len(fresh) < len(given):
                assert isinstance(part, Columns), "what is packed comes without sequence ids"
                part, given = part.pick(fresh), [given[i] for i in fresh]
        elif self._publisher.keeps_sequences:
            sequence = sequence_ids.assign(batch, topic_id, name, part.count, txn)
        count = part.count
        first: int | list[int] = sequence
        if given is not None:
            first = given[0] if given == list(range(given[0], given[0] + count)) else given
        body = part.body(name, first)
        if txn:
            position, topic_part = buffer.append(batch, topic_id, head, txn, count, head.epoch, body)
            for used in given or ():
                topic_part.note_sequence(name, used, used)
            if given is None and self._publisher.keeps_sequences:
                topic_part.note_sequence(name, sequence, sequence + count - 1)
            buffer.save_part(batch, txn, topic_id, topic_part)
        else:
            position = managed_ledger.append(batch, topic_id, head, MESSAGES, count, 0, head.epoch, body)
        self._written.append((position, count))
        self._last_used = given[-1] if given is not None else sequence + count - 1
        return sequence if given is not None else sequence + count

    def flush(self) -> None:
        """Nothing is held back: every send was durable when it returned."""

    def close(self) -> None:
        """Leave the topic; one who waits for it is next. A session that somebody else holds stays open.

        Raises:
            WriterBusy: nothing more can be sent, and the topic is still held; close it again.
        """
        self._closed = True
        if not self._has_left and isinstance(self._publisher, Connected):
            session = self._publisher.session
            self._connection.write(lambda batch: admission.leave(batch, session))
        self._has_left = True

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def check_given_name(name: str) -> str:
    """`name`, if an application may give it to a producer.

    Raises:
        InvalidName
    """
    check_name("producer name", name)
    prefix, _, number = name.rpartition("-")
    if (prefix == "producer" and number.isdigit()) or name.startswith(LETTERS_PREFIX):
        raise InvalidName(
            f"{name} is a name that the store gives", hint="Choose another name for the producer."
        )
    return name

"""Appending a producer's messages to its topic, within one write batch.

Every condition of an append is checked in the batch: the topic still exists, the producer may publish, the sequence
ids are new. Messages sent at once and messages buffered by a transaction pass through here alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.disk.view import DurableRefusal, ReadView, WriteBatch
from storage.errors import ProducerFenced, TopicNotFound
from storage.process.identity import ProcessIdentity
from storage.topic import catalogue as topics, log, sequence_ids, state
from storage.topic.catalogue import Topic
from storage.topic.entry import MESSAGES, Columns, PackedColumns, PackedEntries
from storage.topic.producers import admission, errors
from storage.topic.producers.credential import Credential
from storage.topic.state import TopicState
from storage.txn import buffer
from storage.txn.coordinator import Coordinator
from storage.txn.fence import Fence
from storage.txn.record import TransactionRecord
from storage.values.position import Position
from storage.values.receipt import StoredEntry
from storage.values.txn_state import TransactionState


class Progress:
    """The progress of a producer: the name under which messages are published, and the sequence ids used so far."""

    __slots__ = ("last_sequence_id", "name", "next_sequence")

    def __init__(self, name: str | None, next_sequence: int = 0, last_sequence_id: int = -1) -> None:
        self.name = name
        self.next_sequence = next_sequence
        self.last_sequence_id = last_sequence_id

    def copy(self) -> Progress:
        """A copy for a batch that may come to nothing, or run again."""
        return Progress(self.name, self.next_sequence, self.last_sequence_id)


class Outgoing:
    """The messages of one call, checked: columns, the size of each message, and the sequence ids if any were given."""

    __slots__ = ("columns", "sequence_ids", "sizes")

    def __init__(self, columns: Columns, sizes: Sequence[int], sequence_ids: Sequence[int] | None) -> None:
        self.columns = columns
        self.sizes = sizes
        self.sequence_ids = sequence_ids


class Appender:
    """A producer at a topic.

    Attributes:
        progress: as the last committed batch left it.
        fenced: the error with which the producer was fenced; None while the producer may publish.
    """

    def __init__(
        self, coordinator: Coordinator, by: ProcessIdentity, topic: Topic, credential: Credential
    ) -> None:
        self._coordinator = coordinator
        self._by = by
        self.fence = Fence(coordinator, by)
        self.topic = topic
        self.credential = credential
        self.progress = Progress(credential.name)
        self.fenced: ProducerFenced | None = None

    def refusal(
        self, batch: WriteBatch, record: TransactionRecord | None, error: ProducerFenced
    ) -> DurableRefusal:
        """The refusal to raise for a fenced producer, whose open transaction is doomed in the same batch."""
        if record is not None and record.state is TransactionState.OPEN:
            self._coordinator.fence(batch, record, self._by, error.message)
        return batch.refuse(error)

    def load_state(self, view: ReadView) -> TopicState:
        """The state of the topic.

        Raises:
            TopicNotFound
            ProducerFenced: the topic was deleted, and created again.
        """
        try:
            return state.load(view, self.topic.topic_id)
        except TopicNotFound:
            if topics.find(view, self.topic.full_name) is None:
                raise
            raise errors.recreated(self.topic.name, self.progress.name, self.credential.epoch) from None


class BatchAppend:
    """One producer's appends within one batch, which may come to nothing.

    Attributes:
        progress: the producer's, as the batch leaves it.
    """

    __slots__ = ("_appender", "_batch", "_session", "_state", "_txn", "progress")

    def __init__(self, appender: Appender, batch: WriteBatch, txn: int) -> None:
        """Args:
        txn: the transaction of the messages; 0 for none.
        """
        self._appender = appender
        self._batch = batch
        self._txn = txn
        self._state: TopicState | None = None
        self._session = 0
        self.progress = appender.progress.copy()

    def check(self) -> None:
        """Load the topic's state, and see that the producer may publish now.

        Raises:
            ProducerFenced: made durable by `Appender.refusal`.
            ProducerBusy, TopicNotFound
        """
        appender, progress = self._appender, self.progress
        try:
            if appender.fenced is not None:
                raise appender.fenced
            loaded = appender.load_state(self._batch)
            self._state, self._session, progress.name = appender.credential.check(
                self._batch, loaded, progress.name
            )
        except ProducerFenced as error:
            if error.details["lastSequenceId"] is None and progress.last_sequence_id >= 0:
                error.details["lastSequenceId"] = progress.last_sequence_id
            raise

    def append(
        self, columns: Columns | PackedEntries, start: int, stops: list[int], ids: Sequence[int] | None
    ) -> list[StoredEntry]:
        """Append the messages from `start` to the last of `stops`, an entry up to each stop.

        `check` comes first, and nothing may write to the topic in between.

        Args:
            ids: the sequence ids given with the columns, for all messages; None if the producer numbers its messages.

        Raises:
            SequenceConflict
        """
        assert self._state is not None, "an append follows a check"
        appender, topic_id = self._appender, self._appender.topic.topic_id
        self._state = admission.publishes(
            self._batch, topic_id, self._state, self._session, self._txn, appender.fence
        )
        entries = []
        for stop in stops:
            given = None if ids is None else ids[start:stop]
            entries.append(self._append_entry(columns.part(start, stop), start, given))
            start = stop
        state.save(self._batch, topic_id, self._state)
        return entries

    def _append_entry(
        self, part: Columns | PackedColumns, start: int, given: Sequence[int] | None
    ) -> StoredEntry:
        batch, topic_id, name = self._batch, self._appender.topic.topic_id, self.progress.name
        assert name is not None, "a producer that may publish has a name"
        fresh: Sequence[int] = range(part.count)
        if given is not None:
            fresh = sequence_ids.claim(batch, topic_id, name, given, self._txn)
            if not fresh:
                return StoredEntry(start, fresh, None, ())
            if len(fresh) < len(given):
                assert isinstance(part, Columns), "packed entries come without sequence ids"
                part, given = part.pick(fresh), [given[index] for index in fresh]
        elif self._appender.credential.keeps_sequences:
            self.progress.next_sequence = sequence_ids.assign(batch, topic_id, name, len(fresh), self._txn)
        sequence = self.progress.next_sequence
        ids: Sequence[int] = given if given is not None else range(sequence, sequence + len(fresh))
        position = self._write_entry(name, part, ids, is_given=given is not None)
        if given is None:
            self.progress.next_sequence = sequence + len(fresh)
        self.progress.last_sequence_id = ids[-1]
        return StoredEntry(start, fresh, position, ids)

    def _write_entry(
        self, name: str, part: Columns | PackedColumns, ids: Sequence[int], *, is_given: bool
    ) -> Position:
        """Write one entry to the log, and note the entry with the transaction."""
        batch = self._batch
        assert self._state is not None, "an append follows a check"
        topic_id, count, epoch = self._appender.topic.topic_id, len(ids), self._state.epoch
        first: int | list[int] = ids[0]
        if is_given and list(ids) != list(range(ids[0], ids[0] + count)):
            first = list(ids)
        body = part.body(name, first)
        if not self._txn:
            return log.append(batch, topic_id, self._state, MESSAGES, count, 0, epoch, body)
        position, topic_part = buffer.append(batch, topic_id, self._state, self._txn, count, epoch, body)
        if is_given:
            for used in ids:
                topic_part.note_sequence(name, used, used)
        elif self._appender.credential.keeps_sequences:
            topic_part.note_sequence(name, ids[0], ids[-1])
        buffer.save_part(batch, self._txn, topic_id, topic_part)
        return position

"""Appending a producer's messages to its topic, within one write batch.

Every condition of an append is checked in the batch: the topic still exists, the producer may publish, the sequence
ids are new. Messages sent at once and messages buffered by a transaction pass through here alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.disk.schema import STORE
from storage.disk.view import DurableRefusal, WriteBatch
from storage.errors import ProducerFenced, TopicNotFound
from storage.limits import MESSAGE_OVERHEAD_BYTES
from storage.process.identity import ProcessIdentity
from storage.topic import catalogue as topics, log, state as states
from storage.topic.catalogue import Topic
from storage.topic.entry import MESSAGES, Columns, PackedColumns, PackedEntries, times_in
from storage.topic.open_topic import OpenTopic, as_open_topic
from storage.topic.producers import errors
from storage.topic.producers.last_publish import note_publisher
from storage.topic.producers.publish_check import Credential
from storage.topic.sequence_ids import LastUse, SequenceIds
from storage.txn.coordinator import Coordinator
from storage.txn.fenced_txns import FencedTransactions
from storage.txn.record import TransactionRecord
from storage.values.position import Position
from storage.values.receipt import StoredEntry, as_stored_entry
from storage.values.txn_state import TransactionState


class Creation(Protocol):
    """The creation of a producer's topic; see `topic_creation.py`."""

    def connect(self, batch: WriteBatch) -> tuple[Topic, Credential]:
        """Create the topic, and connect the producer."""


class ProducerProgress:
    """The progress of a producer.

    Attributes:
        topic, credential: the topic, and the right to publish there.
        creation: creates the topic with the first message; None if there is a topic.
        name: under which messages are published; None if the first one is to give it.
        next_sequence, last_sequence_id: the sequence ids used so far.
    """

    __slots__ = ("creation", "credential", "last_sequence_id", "name", "next_sequence", "topic")

    topic: Topic
    credential: Credential
    creation: Creation | None
    name: str | None
    next_sequence: int
    last_sequence_id: int

    @classmethod
    def start(cls, topic: Topic, credential: Credential, creation: Creation | None) -> ProducerProgress:
        """The progress of a producer that has sent nothing yet."""
        progress = cls()
        progress.topic, progress.credential, progress.creation = topic, credential, creation
        progress.name = credential.name
        progress.next_sequence, progress.last_sequence_id = 0, -1
        return progress


class Outgoing:
    """The messages of one call, checked.

    Attributes:
        sizes: the size of each message.
        sequence_ids: None if none were given.
        buffered_bytes: that the messages take in an outbox.
    """

    __slots__ = ("buffered_bytes", "columns", "sequence_ids", "sizes")

    def __init__(self, columns: Columns, sizes: Sequence[int], sequence_ids: Sequence[int] | None) -> None:
        self.columns = columns
        self.sizes = sizes
        self.sequence_ids = sequence_ids
        self.buffered_bytes = sum(sizes) + columns.count * MESSAGE_OVERHEAD_BYTES


class Appender:
    """A producer at a topic.

    Attributes:
        progress: as the last committed batch left it.
        fenced: the error with which the producer was fenced; None while the producer may publish.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        process: ProcessIdentity,
        topic: Topic,
        credential: Credential,
        creation: Creation | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._process = process
        self.open_transactions = FencedTransactions(coordinator, process)
        self.progress = ProducerProgress.start(topic, credential, creation)
        self.fenced: ProducerFenced | None = None

    def refusal(
        self, batch: WriteBatch, record: TransactionRecord | None, error: ProducerFenced
    ) -> DurableRefusal:
        """The refusal to raise for a fenced producer, whose open transaction is doomed in the same batch."""
        if record is not None and record.state is TransactionState.OPEN:
            self._coordinator.abort_fenced(batch, record, self._process, error.message)
        return batch.refuse(error)


def _open_topic(batch: WriteBatch, progress: ProducerProgress) -> OpenTopic[WriteBatch]:
    """Open the topic of a producer; create a topic that waits for the first message.

    Raises:
        TopicNotFound
        ProducerFenced: the topic was deleted, and created again.
        ProducerBusy: a different process has created the topic, and keeps it.
    """
    if progress.creation is not None:
        progress.topic, progress.credential = progress.creation.connect(batch)
        progress.creation = None
    topic = progress.topic
    try:
        return as_open_topic((batch, topic.topic_id, topic.name, states.load(batch, topic.topic_id)))
    except TopicNotFound:
        if topics.find(batch, topic.full_name) is None:
            raise
        raise errors.recreated(topic.name, progress.name, progress.credential.epoch) from None


def _check_room(topic: OpenTopic[WriteBatch]) -> None:
    """Raises:
    TopicFull: see `storage/subscription/full_topic.py`, which is needed only where a limit is set.
    """
    from storage.subscription import full_topic

    full_topic.check_room(topic)


class BatchAppend:
    """One producer's appends within one batch, which may come to nothing.

    Attributes:
        progress: the producer's, as the batch leaves it.
    """

    __slots__ = ("_appender", "_batch", "_checked_at", "_session", "_topic", "_txn", "progress")

    def __init__(self, appender: Appender, batch: WriteBatch, txn: int) -> None:
        """Args:
        txn: the transaction of the messages; 0 for none.
        """
        self._appender = appender
        self._batch = batch
        self._txn = txn
        self._topic: OpenTopic[WriteBatch] | None = None
        self._session = self._checked_at = 0
        # A copy, as the batch may come to nothing, or run again.
        before, progress = appender.progress, ProducerProgress()
        progress.topic, progress.credential, progress.creation = (
            before.topic,
            before.credential,
            before.creation,
        )
        progress.name = before.name
        progress.next_sequence, progress.last_sequence_id = before.next_sequence, before.last_sequence_id
        self.progress = progress

    def check_publish(self) -> None:
        """Open the topic, and check that the producer may publish now.

        Raises:
            ProducerFenced: made durable by `Appender.refusal`.
            ProducerBusy, TopicNotFound
            TopicFull: hard retention takes no more messages.
        """
        appender, progress = self._appender, self.progress
        try:
            if appender.fenced is not None:
                raise appender.fenced
            self._topic = _open_topic(self._batch, progress)
            if self._batch.count(STORE) > 1:  # beside the format, a limit may be set
                _check_room(self._topic)
            self._session, progress.name = progress.credential.check_publish(self._topic, progress.name)
            self._checked_at = self._batch.superblock.changes
        except ProducerFenced as error:
            if error.details["lastSequenceId"] is None and progress.last_sequence_id >= 0:
                error.details["lastSequenceId"] = progress.last_sequence_id
            raise

    @property
    def has_changed(self) -> bool:
        """Whether the batch has written since the check, so that the check may say something else now."""
        return self._batch.superblock.changes != self._checked_at

    def append(
        self, columns: Columns | PackedEntries, start: int, stops: list[int], ids: Sequence[int] | None
    ) -> list[StoredEntry]:
        """Append the messages from `start` to the last of `stops`, an entry up to each stop.

        `check_publish` comes first.

        Args:
            ids: the sequence ids given with the columns, for all messages; None if the producer numbers its messages.

        Raises:
            SequenceConflict
        """
        assert self._topic is not None, "an append follows a check"
        if not self._topic.state.has_publisher(self._session):
            note_publisher(self._topic, self._session, self._txn, self._appender.open_transactions)
        entries = []
        for stop in stops:
            given = None if ids is None else ids[start:stop]
            entries += [self._append_entry(columns.part(start, stop), start, given)]
            start = stop
        return entries

    def _append_entry(
        self, part: Columns | PackedColumns, start: int, given: Sequence[int] | None
    ) -> StoredEntry:
        name, topic = self.progress.name, self._topic
        assert name is not None and topic is not None, "a producer that may publish has a name"
        topic_id, count = self.progress.topic.topic_id, part.count
        fresh: Sequence[int] = range(count)
        if given is not None:
            fresh = SequenceIds(self._batch, topic_id, name).claim(given, self._txn, LastUse.now(topic))
            if not fresh:
                return as_stored_entry((start, fresh, None, ()))
            if len(fresh) < len(given):
                assert isinstance(part, Columns), "packed entries come without sequence ids"
                part, given, count = part.pick(fresh), [given[index] for index in fresh], len(fresh)
        elif self.progress.credential.keeps_sequences:
            sequence_ids = SequenceIds(self._batch, topic_id, name)
            self.progress.next_sequence = sequence_ids.assign(count, self._txn, LastUse.now(topic))
        sequence = self.progress.next_sequence
        ids: Sequence[int] = given if given is not None else range(sequence, sequence + count)
        position = self._write_entry(name, part, ids, is_given=given is not None)
        if given is None:
            self.progress.next_sequence = sequence + count
        self.progress.last_sequence_id = ids[-1]
        return as_stored_entry((start, fresh, position, ids))

    def _write_entry(
        self, name: str, part: Columns | PackedColumns, ids: Sequence[int], *, is_given: bool
    ) -> Position:
        """Write one entry to the log, and note the entry with the transaction."""
        topic, count = self._topic, part.count
        assert topic is not None, "an append follows a check"
        first: int | list[int] = ids[0]
        if is_given and list(ids) != list(range(ids[0], ids[0] + count)):
            first = list(ids)
        body = part.body(name, first)
        if self._txn:
            # Only a message in a transaction needs the module.
            from storage.txn.uncommitted_entries import SequenceRange, append

            used: list[SequenceRange] = []
            if is_given:
                used = [(name, sequence_id, sequence_id) for sequence_id in ids]
            elif self.progress.credential.keeps_sequences:
                used = [(name, ids[0], ids[-1])]
            position = append(topic, self._txn, count, body, used)
        else:
            position = log.append(topic, MESSAGES, count, 0, body)
        times = times_in(body)
        if times is not None:
            # Only a message with a delivery time needs the module.
            from storage.txn import timed_entries

            timed_entries.note(topic, position, self._txn, times)
        return position

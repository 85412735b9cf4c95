"""Appending a producer's messages to its topic, within one write batch.

Here stands all that must be true of an append at its instant: the topic still exists and the producer may publish to
it, sequence ids are new. Whether messages are sent at once or kept by their transaction for a while, they pass here.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.disk.view import DurableRefusal, WriteBatch
from storage.errors import ProducerFenced, TopicNotFound
from storage.process.identity import ProcessIdentity
from storage.topic import catalogue as topics, log
from storage.topic.catalogue import Topic
from storage.topic.entry import MESSAGES, Columns, PackedColumns, PackedEntries
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import errors
from storage.topic.producers.credential import Credential
from storage.topic.producers.last_publish import note_publisher
from storage.topic.sequence_ids import SequenceIds
from storage.txn import buffer
from storage.txn.coordinator import Coordinator
from storage.txn.fence import Fence
from storage.txn.record import TransactionRecord
from storage.values.receipt import StoredEntry
from storage.values.txn_state import TransactionState


class Progress:
    """How far a producer has come: the name it publishes under, and the sequence ids it has used."""

    __slots__ = ("last_sequence_id", "name", "next_sequence")

    def __init__(self, name: str | None, next_sequence: int = 0, last_sequence_id: int = -1) -> None:
        self.name = name
        self.next_sequence = next_sequence
        self.last_sequence_id = last_sequence_id

    def copy(self) -> Progress:
        """To go on with in a batch that may come to nothing, or run again."""
        return Progress(self.name, self.next_sequence, self.last_sequence_id)


class Appender:
    """One producer, as far as its topic is concerned.

    Attributes:
        progress: as the last batch that was committed left it.
        fenced: why it can publish no more, once it has learned of it.
    """

    def __init__(
        self, coordinator: Coordinator, by: ProcessIdentity, topic: Topic, publisher: Credential
    ) -> None:
        self._coordinator = coordinator
        self._by = by
        self._fence = Fence(coordinator, by)
        self.topic = topic
        self.publisher = publisher
        self.progress = Progress(publisher.name)
        self.fenced: ProducerFenced | None = None

    def check(self, batch: WriteBatch, progress: Progress) -> tuple[OpenTopic[WriteBatch], int]:
        """The open topic and the number of the session, if this producer may publish now.

        Raises:
            ProducerFenced: for the caller to make durable, by `refusal`.
            ProducerBusy, TopicNotFound
        """
        try:
            if self.fenced is not None:
                raise self.fenced
            topic = self._open(batch)
            number, progress.name = self.publisher.check_publish(topic, progress.name)
        except ProducerFenced as error:
            if error.details["lastSequenceId"] is None and progress.last_sequence_id >= 0:
                error.details["lastSequenceId"] = progress.last_sequence_id
            raise
        return topic, number

    def refusal(
        self, batch: WriteBatch, record: TransactionRecord | None, error: ProducerFenced
    ) -> DurableRefusal:
        """For `raise appender.refusal(...)`: who is fenced dooms the transaction that it sends in."""
        if record is not None and record.state is TransactionState.OPEN:
            self._coordinator.fence(batch, record, self._by, error.message)
        return batch.refuse(error)

    def _open(self, batch: WriteBatch) -> OpenTopic[WriteBatch]:
        try:
            return OpenTopic(batch, self.topic.topic_id, self.topic.name)
        except TopicNotFound:
            if topics.find(batch, self.topic.full_name) is None:
                raise
            raise errors.recreated(self.topic.name, self.progress.name, self.publisher.epoch) from None

    def append(
        self,
        checked: tuple[OpenTopic[WriteBatch], int],
        progress: Progress,
        columns: Columns | PackedEntries,
        start: int,
        stops: list[int],
        ids: Sequence[int] | None,
        txn: int,
    ) -> list[StoredEntry]:
        """Append the messages from `start` to the last of `stops`, an entry up to each of them.

        Args:
            checked: what `check` gave in this batch; nothing was written to the topic since.
            ids: the sequence ids of all columns that the caller gave.
            txn: the transaction they belong to; 0 for none.

        Raises:
            SequenceConflict
        """
        topic, number = checked
        note_publisher(topic, number, txn, self._fence)
        entries = []
        for stop in stops:
            part = columns.part(start, stop)
            given = None if ids is None else ids[start:stop]
            entries.append(self._append_entry(topic, progress, part, start, given, txn))
            start = stop
        return entries

    def _append_entry(
        self,
        topic: OpenTopic[WriteBatch],
        progress: Progress,
        part: Columns | PackedColumns,
        start: int,
        given: Sequence[int] | None,
        txn: int,
    ) -> StoredEntry:
        name, keeps = progress.name, self.publisher.keeps_sequences
        assert name is not None, "who may publish has a name"
        sequence_ids = SequenceIds(topic.view, topic.topic_id, name)
        fresh: Sequence[int] = range(part.count)
        if given is not None:
            fresh = sequence_ids.claim(given, txn)
            if not fresh:
                return StoredEntry(start, fresh, None, ())
            if len(fresh) < len(given):
                assert isinstance(part, Columns), "what is packed comes without sequence ids"
                part, given = part.pick(fresh), [given[index] for index in fresh]
        elif keeps:
            progress.next_sequence = sequence_ids.assign(len(fresh), txn)
        count, sequence = len(fresh), progress.next_sequence
        ids: Sequence[int] = given if given is not None else range(sequence, sequence + count)
        first: int | list[int] = ids[0]
        if given is not None and list(given) != list(range(given[0], given[0] + count)):
            first = list(given)
        body = part.body(name, first)
        if txn:
            used = [(name, each, each) for each in given or ()]
            if given is None and keeps:
                used = [(name, sequence, sequence + count - 1)]
            position = buffer.append(topic, txn, count, body, used)
        else:
            position = log.append(topic, MESSAGES, count, 0, body)
        if given is None:
            progress.next_sequence = sequence + count
        progress.last_sequence_id = ids[-1]
        return StoredEntry(start, fresh, position, ids)

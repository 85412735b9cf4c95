"""Uncommitted entries: a topic as a participant of transactions, and the index of its open transactions.

Holds invariants 1 (maxReadPosition equals its formula and never moves backwards) and, with the coordinator, 6.
The ordered index of open transactions by first message gives maxReadPosition with one look-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from storage.disk.codec import I64X2, corrupt, decoded, key1, key2, key4, missing, pack, part_key, unpack
from storage.disk.schema import HEADS, OPEN_FIRST, PART_TOPIC, TXN_PARTS, TXN_RUNS
from storage.disk.superblock import UNCOUNTED
from storage.disk.view import ReadView, WriteBatch
from storage.errors import ProducerFenced, TxnctlError
from storage.limits import PART_SEQUENCES_MAX
from storage.topic import catalogue as topics, log, state as states
from storage.topic.entry import ABORT_MARKER, COMMIT_MARKER, MESSAGES, Entry
from storage.topic.open_topic import OpenTopic
from storage.topic.sequence_ids import SequenceIds
from storage.txn import aborted, runs
from storage.txn.participant import TopicEffect, TopicWork, as_topic_effect
from storage.txn.runs import Run
from storage.values.position import Position, as_position
from storage.values.txn_id import TxnID

SequenceRange = tuple[str, int, int]
"""Producer name, first and last sequence id."""

_NOWHERE: Final = Position(0, -2)
"""The end of no run."""

_COMPARED: Final = 5
"""Records of the index that are looked at where the engine does not know their number: two stretches of a server's."""


class TopicPart:
    """The messages of one transaction on one topic.

    Attributes:
        first, before: the first message, and the position just before.
        last: the last message.
        run: the begin of the latest run of neighbouring entries.
        sequences: producer, first and last sequence id of ranges that hold the ids used.
        epoch: the topic's epoch under which all messages stand.
    """

    __slots__ = ("before", "bytes", "entries", "epoch", "first", "last", "messages", "run", "sequences")

    def __init__(self, first: Position, before: Position) -> None:
        self.first = first
        self.before = before
        self.last = _NOWHERE
        self.run = first
        self.entries = self.messages = self.bytes = 0
        self.epoch = -1
        self.sequences: list[list[Any]] = []

    @classmethod
    def decode(cls, payload: memoryview) -> TopicPart:
        fields = unpack(payload, 9)
        part = cls(as_position(fields[0]), as_position(fields[1]))
        part.last, part.run = as_position(fields[2]), as_position(fields[3])
        part.entries, part.messages, part.bytes, part.sequences, part.epoch = fields[4:9]
        return part

    def encode(self) -> bytes:
        return pack(
            [
                self.first,
                self.before,
                self.last,
                self.run,
                self.entries,
                self.messages,
                self.bytes,
                self.sequences,
                self.epoch,
            ]
        )

    def note_sequence(self, used: SequenceRange) -> None:
        """Note used sequence ids, joined with the range just before.

        Beyond `PART_SEQUENCES_MAX` ranges one range of a producer is widened instead, over ids that the transaction has
        not used: settling takes those of the transaction alone.
        """
        producer, first, last = used
        ranges = [known for known in self.sequences if known[0] == producer]
        for known in ranges:
            if known[2] == first - 1:
                known[2] = last
                return
        if len(ranges) < PART_SEQUENCES_MAX:
            self.sequences.append([producer, first, last])
        else:
            ranges[-1][1:] = min(ranges[-1][1], first), max(ranges[-1][2], last)


def part_of(view: ReadView, txn: int, topic_id: int) -> TopicPart | None:
    """Find the part of a transaction on a topic, or None."""
    key = part_key(txn, PART_TOPIC, topic_id)
    opened: TopicPart | None = view.opened(TXN_PARTS, key)
    if opened is not None:
        return opened
    payload = view.get(TXN_PARTS, key)
    return None if payload is None else decoded(TXN_PARTS, key, payload, TopicPart.decode)


def indexed_part(view: ReadView, txn: int, topic_id: int) -> TopicPart:
    """The part of an open transaction that the index of the topic names.

    Raises:
        CorruptStore: the part is missing.
    """
    part = part_of(view, txn, topic_id)
    if part is None:
        raise missing(TXN_PARTS, part_key(txn, PART_TOPIC, topic_id))
    return part


def append(
    topic: OpenTopic[WriteBatch], txn: int, count: int, body: bytes, used: Iterable[SequenceRange] = ()
) -> Position:
    """Append an entry of an open transaction.

    Args:
        used: the sequence ids of the messages.
    """
    batch, topic_id, state = topic.view, topic.topic_id, topic.state
    key, ends_here = part_key(txn, PART_TOPIC, topic_id), batch.ending == txn
    part = batch.opened(TXN_PARTS, key) if ends_here else part_of(batch, txn, topic_id)
    before = state.last_confirmed
    if part is None:
        # From here on plain appends leave maxReadPosition just before this first message.
        _count_open(topic, 1)
    position = log.append(topic, MESSAGES, count, txn, body)
    if part is None:
        part = TopicPart(position, before)
        part.epoch = state.epoch
        if ends_here:
            batch.add(TXN_PARTS, key, part)  # Written once, by the end.
        batch.put(OPEN_FIRST, key4(topic_id, *part.first, txn), I64X2.pack(*before))
    if part.epoch != state.epoch:
        # A new epoch aborts, or accepts, messages of open transactions.
        raise corrupt(TXN_PARTS, key, f"it has epoch {part.epoch}, and its topic {state.epoch}")
    part.entries += 1
    part.messages += count
    part.bytes += len(body)
    if part.last != (position[0], position[1] - 1):
        part.run = position
    runs.write_run(batch, topic_id, txn, part.run, (position[1], part.messages))
    part.last = position
    for sequence_range in used:
        part.note_sequence(sequence_range)
    if not ends_here:
        batch.put(TXN_PARTS, key, part.encode())
    state.uncommitted += count
    return position


def save_part(batch: WriteBatch, txn: int, topic_id: int, part: TopicPart) -> None:
    """Write the part of a transaction on a topic; the end of one that ends in this batch does that, once."""
    key = part_key(txn, PART_TOPIC, topic_id)
    if batch.ending == txn:
        batch.add(TXN_PARTS, key, part)
    else:
        batch.put(TXN_PARTS, key, part.encode())


def accept(batch: WriteBatch, txn: int, topic_id: int, epoch: int) -> None:
    """Move a transaction's messages to a new epoch: the new owner itself produces in that transaction."""
    part = indexed_part(batch, txn, topic_id)
    if part.epoch > epoch:
        raise corrupt(TXN_PARTS, part_key(txn, PART_TOPIC, topic_id), "its epoch was never granted")
    part.epoch = epoch
    save_part(batch, txn, topic_id, part)


def first_open(view: ReadView, topic_id: int) -> tuple[int, Position, Position] | None:
    """The open transaction whose first message comes first: number, first message, position before that message."""
    record = view.first(OPEN_FIRST, key1(topic_id))
    if record is None:
        return None
    key, payload = record
    first = Position(int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:24], "big"))
    return int.from_bytes(key[24:], "big"), first, Position(*I64X2.unpack(payload))


def open_transactions(view: ReadView, topic_id: int) -> list[tuple[int, Position]]:
    """Open transactions with messages on the topic, each with the first message, in order of first messages.

    Raises:
        CorruptStore: the index has fewer transactions than the topic's state counts, or more.
    """
    indexed, count = indexed_transactions(view, topic_id), states.load(view, topic_id).open_txns
    if len(indexed) != count:
        why = f"the index has {len(indexed)} open transactions of the topic; its state counts {count}"
        raise corrupt(OPEN_FIRST, key1(topic_id), why)
    return indexed


def _count_open(topic: OpenTopic[WriteBatch], difference: int) -> None:
    """Count a transaction more, or one fewer, in the topic's state and in the store.

    A store of an earlier release is counted here once, by the states of its topics.
    """
    superblock, state = topic.view.superblock, topic.state
    if superblock.open_firsts == UNCOUNTED:
        every = topics.every(topic.view)
        superblock.open_firsts = sum(states.load(topic.view, known.topic_id).open_txns for known in every)
    state.open_txns += difference
    superblock.open_firsts += difference


def _check_whole(topic: OpenTopic[WriteBatch]) -> None:
    """See that the index has lost no transaction of a topic, without a look at each of many.

    LMDB knows how many records the index has, which the store counts too. On a server the first few are compared with
    the topic's own count; beyond, the server's checksums of pages stand for its rows.

    Raises:
        CorruptStore
    """
    view, topic_id = topic.view, topic.topic_id
    stored, counted = view.count_at_once(OPEN_FIRST), view.superblock.open_firsts
    if stored is None:
        stored, counted = (
            len(indexed_transactions(view, topic_id, _COMPARED)), min(topic.state.open_txns, _COMPARED)
        )  # fmt: skip
    if stored != counted:
        open_transactions(view, topic_id)


def first_transactions(topic: OpenTopic[ReadView], limit: int) -> list[tuple[int, Position]]:
    """The first of these, at most so many.

    Raises:
        CorruptStore: the index lacks a transaction that comes first.
    """
    view, topic_id, state = topic.view, topic.topic_id, topic.state
    indexed, first = indexed_transactions(view, topic_id, limit), first_open(view, topic_id)
    is_first = first is None or first[2] == state.max_read
    if not is_first or len(indexed) < min(limit, state.open_txns):
        open_transactions(view, topic_id)
    return indexed


def indexed_transactions(
    view: ReadView, topic_id: int, limit: int | None = None
) -> list[tuple[int, Position]]:
    """The same as the index has it, unchecked: verify makes its own report."""
    return [
        (
            int.from_bytes(key[24:], "big"),
            Position(int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:24], "big")),
        )
        for key in islice(view.keys(OPEN_FIRST, key1(topic_id)), limit)
    ]


def entries(view: ReadView, topic_id: int, txn: int, after: Position, through: Position) -> Iterator[Entry]:
    """Yield the transaction's entries on a topic after one position and up to a second, in order.

    Raises:
        CorruptStore: a run of entries is missing.
    """
    reached, messages = after, 0
    for entry in runs.entries(view, topic_id, txn, after, through):
        reached, messages = entry.position, messages + entry.count
        yield entry
    part = part_of(view, txn, topic_id)
    if part is None or part.last > through:
        return
    if reached < part.last or (after < part.first and messages != part.messages):
        raise corrupt(TXN_RUNS, key2(topic_id, txn), f"a run before {part.last} is not there")


def runs_behind(view: ReadView, topic_id: int, txn: int, after: Position) -> list[Run]:
    """The runs of a transaction's entries on a topic behind a position, in order.

    Raises:
        CorruptStore: a run of entries is missing.
    """
    part = part_of(view, txn, topic_id)
    if part is None or part.last <= after:
        return []
    behind = list(runs.behind(view, topic_id, txn, after))
    messages = part.messages - runs.messages_through(view, topic_id, txn, after)
    last = Position(behind[-1].first.ledger_id, behind[-1].last) if behind else after
    if last != part.last or sum(run.messages for run in behind) != messages:
        raise corrupt(TXN_RUNS, key2(topic_id, txn), f"a run before {part.last} is not there")
    return behind


class UncommittedEntries:
    """A topic as a participant of the coordinator."""

    kind = PART_TOPIC

    def refusal(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TxnctlError | None:
        """Invariant 10: the messages of a transaction are committed under the topic's epoch or not at all."""
        topic_epoch, part_epoch = states.load(view, object_id).epoch, TopicPart.decode(part).epoch
        if part_epoch == topic_epoch:
            return None
        return ProducerFenced(
            f"transaction {TxnID(txn)} holds messages of epoch {part_epoch} on a topic whose epoch is {topic_epoch}: "
            "it is aborted",
            hint="Begin a new one, and produce as the topic's owner.",
            transaction=str(TxnID(txn)), epoch=part_epoch, topicEpoch=topic_epoch,
        )  # fmt: skip

    def decide(self, batch: WriteBatch, txn: int, object_id: int, part: Any, committed: bool) -> TopicEffect:
        """Write the marker, move maxReadPosition, note an abort in the aborted set, settle sequence ids."""
        topic = OpenTopic.load(batch, object_id)
        written: TopicPart = part if type(part) is TopicPart else TopicPart.decode(part)
        state, before = topic.state, topic.state.max_read
        batch.delete(OPEN_FIRST, key4(object_id, *written.first, txn))
        _count_open(topic, -1)
        state.uncommitted -= written.messages
        if not committed:
            aborted.add(topic, (txn, *written.first, *written.last, written.messages))
        log.append(topic, COMMIT_MARKER if committed else ABORT_MARKER, 0, txn, b"")
        if state.open_txns:
            state.max_read = self._before_first_open(topic)
        if state.max_read < before:
            why = f"its maxReadPosition {before} would move back to {state.max_read}"
            raise corrupt(HEADS, key1(object_id), why)
        for producer, first, last in written.sequences:
            SequenceIds(batch, object_id, producer).settle(first, last, txn, committed)
        return as_topic_effect(
            (object_id, written.messages, written.first, written.last, before, state.max_read)
        )

    @staticmethod
    def _before_first_open(topic: OpenTopic[WriteBatch]) -> Position:
        """The position before the first message of an open transaction.

        The index must be whole where it moves maxReadPosition, which would pass the messages of a missing transaction.
        """
        first = first_open(topic.view, topic.topic_id)
        if first is None or first[2] != topic.state.max_read:
            _check_whole(topic)
        if first is None:
            raise corrupt(OPEN_FIRST, key1(topic.topic_id), "the topic's open transactions are not there")
        return first[2]

    def describe(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TopicWork:
        """Topic, messages, and positions."""
        written = TopicPart.decode(part)
        ranges = runs.ranges(view, object_id, txn, 100)
        return TopicWork(
            object_id, written.messages, written.bytes, written.first, written.last,
            [f"{a}" if a == b else f"{a}..{b}" for a, b in ranges],
        )  # fmt: skip

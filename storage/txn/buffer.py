"""The transaction buffer: a topic's part in transactions.

Holds invariants 1 (maxReadPosition equals its formula and never moves backwards) and, with the coordinator, 6.
The ordered index of open transactions by first message gives maxReadPosition with one look-up.
"""

from __future__ import annotations

from typing import Any

from storage.disk.codec import I64X2, key1, key4, pack, part_key, unpack
from storage.disk.schema import OPEN_FIRST, PART_TOPIC, TXN_PARTS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import ProducerFenced, TxnctlError
from storage.topic import log, sequence_ids, state
from storage.topic.entry import ABORT_MARKER, COMMIT_MARKER, MESSAGES
from storage.topic.state import TopicState
from storage.txn import aborted, runs
from storage.txn.participant import TopicEffect, TopicWork
from storage.values.position import Position
from storage.values.txn_id import TxnID


class TopicPart:
    """What one transaction wrote to one topic.

    Attributes:
        first, before: its first message, and the position just before it.
        last: its last message.
        run: where its latest run of neighbouring entries begins.
        sequences: producer, first and last sequence id, ranges joined.
        epoch: of the topic, under which all its messages stand.
    """

    __slots__ = ("before", "bytes", "entries", "epoch", "first", "last", "messages", "run", "sequences")

    def __init__(self, first: tuple[int, int], before: tuple[int, int]) -> None:
        self.first = first
        self.before = before
        self.last = (0, -2)
        self.run = first
        self.entries = self.messages = self.bytes = 0
        self.epoch = -1
        self.sequences: list[list[Any]] = []

    @classmethod
    def decode(cls, payload: memoryview) -> TopicPart:
        fields = unpack(payload)
        part = cls(tuple(fields[0]), tuple(fields[1]))
        part.last, part.run = tuple(fields[2]), tuple(fields[3])
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

    def note_sequence(self, producer: str, first: int, last: int) -> None:
        for known in self.sequences:
            if known[0] == producer and known[2] == first - 1:
                known[2] = last
                return
        self.sequences.append([producer, first, last])


def part_of(view: ReadView, txn: int, topic_id: int) -> TopicPart | None:
    """What a transaction wrote to a topic, or None."""
    payload = view.get(TXN_PARTS, part_key(txn, PART_TOPIC, topic_id))
    return None if payload is None else TopicPart.decode(payload)


def append(
    batch: WriteBatch, topic_id: int, head: TopicState, txn: int, count: int, epoch: int, body: bytes
) -> tuple[Position, TopicPart]:
    """Append messages of an open transaction. The caller saves `head` and the part."""
    part = part_of(batch, txn, topic_id)
    before = head.last_confirmed
    if part is None:
        # From here on plain appends leave maxReadPosition where it is: just before this first message.
        head.open_txns += 1
    position = log.append(batch, topic_id, head, MESSAGES, count, txn, epoch, body)
    if part is None:
        part = TopicPart((position.ledger_id, position.entry_id), before)
        part.epoch = epoch
        batch.put(OPEN_FIRST, key4(topic_id, *part.first, txn), I64X2.pack(*before))
    assert part.epoch == epoch, "a new epoch aborts or accepts what open transactions wrote before it"
    part.entries += 1
    part.messages += count
    part.bytes += len(body)
    part.run = runs.extend(batch, topic_id, txn, part.run, part.last, position, part.messages)
    part.last = (position.ledger_id, position.entry_id)
    head.uncommitted += count
    return position, part


def save_part(batch: WriteBatch, txn: int, topic_id: int, part: TopicPart) -> None:
    """Write what a transaction wrote to a topic."""
    batch.put(TXN_PARTS, part_key(txn, PART_TOPIC, topic_id), part.encode())


def accept(batch: WriteBatch, txn: int, topic_id: int, epoch: int) -> None:
    """Let what a transaction wrote stand under a new epoch: the new owner itself produces in it."""
    part = part_of(batch, txn, topic_id)
    assert part is not None and part.epoch <= epoch, "epochs never decrease"
    part.epoch = epoch
    save_part(batch, txn, topic_id, part)


def first_open(view: ReadView, topic_id: int) -> tuple[int, Position, Position] | None:
    """The open transaction whose first message comes first: its number, that message, the position before it."""
    found = view.first(OPEN_FIRST, key1(topic_id))
    if found is None:
        return None
    key, payload = found
    first = Position(int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:24], "big"))
    return int.from_bytes(key[24:], "big"), first, Position(*I64X2.unpack(payload))


def open_transactions(view: ReadView, topic_id: int) -> list[tuple[int, Position]]:
    """Open transactions with messages on the topic and their first message, in order of it."""
    return [
        (
            int.from_bytes(key[24:], "big"),
            Position(int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:24], "big")),
        )
        for key in view.keys(OPEN_FIRST, key1(topic_id))
    ]


class TransactionBuffer:
    """A topic as a participant of the coordinator."""

    kind = PART_TOPIC

    def refusal(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TxnctlError | None:
        """Invariant 10: what a transaction wrote is committed under the topic's epoch or not at all."""
        head, mine = state.load(view, object_id), TopicPart.decode(part)
        if mine.epoch == head.epoch:
            return None
        return ProducerFenced(
            f"transaction {TxnID(txn)} holds messages of epoch {mine.epoch} on a topic whose epoch is {head.epoch}: "
            "it is aborted",
            hint="Begin a new one, and produce as the topic's owner.",
            transaction=str(TxnID(txn)), epoch=mine.epoch, topicEpoch=head.epoch,
        )  # fmt: skip

    def decide(
        self, batch: WriteBatch, txn: int, object_id: int, part: memoryview, committed: bool
    ) -> TopicEffect:
        """Write the marker, move maxReadPosition, note an abort in the aborted set, settle sequence ids."""
        head, mine = state.load(batch, object_id), TopicPart.decode(part)
        was = head.max_read
        batch.delete(OPEN_FIRST, key4(object_id, *mine.first, txn))
        head.open_txns -= 1
        head.uncommitted -= mine.messages
        if not committed:
            aborted.add(batch, object_id, head, (txn, *mine.first, *mine.last, mine.messages))
        kind = COMMIT_MARKER if committed else ABORT_MARKER
        log.append(batch, object_id, head, kind, 0, txn, head.epoch, b"")
        if head.open_txns:
            blocker = first_open(batch, object_id)
            assert blocker is not None, "open transactions are indexed"
            head.max_read = (blocker[2].ledger_id, blocker[2].entry_id)
        assert head.max_read >= was, "maxReadPosition never moves backwards"
        for producer, first, last in mine.sequences:
            sequence_ids.settle(batch, object_id, producer, first, last, txn, committed)
        state.save(batch, object_id, head)
        return TopicEffect(
            object_id, mine.messages, Position(*mine.first), Position(*mine.last), Position(*was),
            head.max_read_position,
        )  # fmt: skip

    def describe(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TopicWork:
        """Messages on a topic, and their positions."""
        mine = TopicPart.decode(part)
        ranges = runs.ranges(view, object_id, txn, 100)
        return TopicWork(
            object_id, mine.messages, mine.bytes, Position(*mine.first), Position(*mine.last),
            [f"{a}" if a == b else f"{a}..{b}" for a, b in ranges],
        )  # fmt: skip

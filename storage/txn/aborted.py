"""The aborted set of a topic, in segments (PIP-196's snapshot segments).

A segment's range runs from the lowest first to the highest last message position of its transactions, so that a
reader of a range loads only the segments that its range touches. Every segment but the last is sealed. Which segments
these are, and the sums of the others, stand in a few records for all sealed segments (`aborted_blocks.py`).
"""

from __future__ import annotations

from struct import Struct, unpack

from storage.disk.codec import corrupt, key1, key2
from storage.disk.schema import ABORTED
from storage.disk.view import ReadView, WriteBatch
from storage.limits import ABORTED_SEGMENT_TRANSACTIONS_MAX
from storage.topic.open_topic import OpenTopic
from storage.topic.state import TopicState
from storage.txn import aborted_blocks as blocks, runs
from storage.txn.aborted_blocks import AbortedBlock
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position

# A segment begins with its range and sums (`blocks.RANGE`); then a row per transaction.
# Transaction, first ledger and entry, last ledger and entry, messages.
_ROW = Struct(">QQQQQQ")

SEGMENTS_REMEMBERED = 256
"""The sealed segments whose transactions a reader remembers at most, but for those that its range touches (3 MiB)."""

Row = tuple[int, int, int, int, int, int]


def add(topic: OpenTopic[WriteBatch], row: Row) -> None:
    """Add an aborted transaction with messages on the topic."""
    batch, state = topic.view, topic.state
    key = key2(topic.topic_id, state.aborted_segment)
    payload = batch.get(ABORTED, key)
    txn, first, last, messages = row[0], row[1:3], row[3:5], row[5]
    count, rows = 0, b""
    if payload is not None:
        low_l, low_e, high_l, high_e, count, before = blocks.RANGE.unpack_from(payload)
        first, last, messages = min(first, (low_l, low_e)), max(last, (high_l, high_e)), messages + before
        rows = bytes(payload[blocks.RANGE.size :])
    assert txn > 0, "a transaction has an id"
    batch.put(ABORTED, key, blocks.RANGE.pack(*first, *last, count + 1, messages) + rows + _ROW.pack(*row))
    state.aborted_txns += 1
    state.aborted_messages += row[5]
    added = AbortedBlock(-1, state.aborted_segment, Position(*row[1:3]), Position(*row[3:5]), 1, row[5])
    blocks.extend_whole(batch, topic.topic_id, state.aborted_segment, added)
    if count + 1 >= ABORTED_SEGMENT_TRANSACTIONS_MAX:
        blocks.seal(batch, topic.topic_id, state.aborted_segment)
        state.aborted_segment += 1


def trim(topic: OpenTopic[WriteBatch]) -> None:
    """Remove the segments at the front of the set whose messages are all trimmed."""
    batch, topic_id, state, before = topic.view, topic.topic_id, topic.state, topic.state.aborted_txns
    while (record := batch.first(ABORTED, key1(topic_id))) is not None:
        key, bounds = record[0], blocks.RANGE.unpack_from(record[1])
        if bounds[2:4] >= (state.first_ledger, 0):
            break
        if key == key2(topic_id, state.aborted_segment):
            state.aborted_segment += 1
        state.aborted_txns -= bounds[4]
        state.aborted_messages -= bounds[5]
        batch.delete(ABORTED, key)
        blocks.forget(batch, topic_id, int.from_bytes(key[8:], "big"))
    if state.aborted_txns != before:
        blocks.sum_whole(batch, topic_id, state.aborted_segment)


class AbortedSet:
    """The ids of aborted transactions that a reader needs, remembered between pages.

    Load a range before reading the range; then `txn in aborted_set.ids` is right for every decided transaction in it.
    """

    __slots__ = ("_apart", "_loaded", "_remembered_max", "_rows_of_open", "_walked_to", "ids")

    def __init__(self) -> None:
        self.ids: set[int] = set()
        self._remembered_max = SEGMENTS_REMEMBERED
        self._loaded: dict[int, tuple[AbortedBlock, tuple[int, ...]]] = {}
        """The sealed segments whose transactions are in `ids`."""
        self._apart: dict[tuple[int, int], AbortedBlock] = {}
        """Blocks that cover all other sealed segments below `_walked_to`, by level and number."""
        self._walked_to: int | None = None
        self._rows_of_open = (-1, 0)

    def load(self, topic: OpenTopic[ReadView], after: Position, through: Position) -> None:
        """Load the segments that touch (after, through]."""
        if not topic.state.aborted_txns:
            return
        whole = blocks.whole(topic.view, topic.topic_id)
        # A record of different sums is damaged: then the blocks and segments are asked.
        if whole and whole.transactions == topic.state.aborted_txns and not whole.touches(after, through):
            return
        if len(self._loaded) >= self._remembered_max:
            self._drop(after, through)
        if self._walked_to != topic.state.aborted_segment:
            self._walk(topic)
        for block in list(self._apart.values()):
            if block.touches(after, through):
                self._take(topic, block, after, through)
        self._load_open(topic, after, through)

    def _walk(self, topic: OpenTopic[ReadView]) -> None:
        """Look at all blocks, first of all and after a segment was sealed."""
        view, topic_id, open_segment = topic.view, topic.topic_id, topic.state.aborted_segment
        covering = blocks.every_segment(view, topic_id, open_segment)
        # A record that is not found must not let an aborted message pass for a committed one.
        check_all(topic_id, topic.state, sum(block.transactions for block in covering))
        self._apart = {
            (block.level, block.number): block for block in covering if block.number != open_segment
        }
        self._walked_to = open_segment

    def _drop(self, after: Position, through: Position) -> None:
        """Forget the segments that the range does not touch: a reader that goes on for years needs few.

        Where the range touches many, the next page may touch them too: twice as many are remembered then.
        """
        before = len(self._loaded)
        self._loaded = {
            segment: known for segment, known in self._loaded.items() if known[0].touches(after, through)
        }
        self._remembered_max = max(SEGMENTS_REMEMBERED, 2 * len(self._loaded))
        if len(self._loaded) == before:
            return
        self.ids = set().union(*(ids for _, ids in self._loaded.values()))
        self._rows_of_open, self._walked_to = (-1, 0), None

    def _take(
        self, topic: OpenTopic[ReadView], block: AbortedBlock, after: Position, through: Position
    ) -> None:
        """Load the segments of a block that touch (after, through]."""
        del self._apart[block.level, block.number]
        if block.level < 1:
            self._load_sealed(topic, block)
            return
        first = blocks.first_segment(topic.view, topic.topic_id, topic.state.aborted_segment)
        for part in blocks.parts(topic.view, topic.topic_id, block, first):
            self._apart[part.level, part.number] = part
            if part.touches(after, through):
                self._take(topic, part, after, through)

    def _load_sealed(self, topic: OpenTopic[ReadView], block: AbortedBlock) -> None:
        segment = block.number
        if segment in self._loaded:
            return
        payload = topic.view.get(ABORTED, key2(topic.topic_id, segment))
        if payload is None:
            if segment >= blocks.first_segment(topic.view, topic.topic_id, topic.state.aborted_segment):
                raise corrupt(ABORTED, key2(topic.topic_id, segment), "it is not there")
            return
        ids = _ids(payload[blocks.RANGE.size :])
        self._loaded[segment] = block, ids
        self.ids.update(ids)

    def _load_open(self, topic: OpenTopic[ReadView], after: Position, through: Position) -> None:
        """Load the transactions that the open segment has got since the last load, if it touches (after, through]."""
        segment = topic.state.aborted_segment
        known = self._rows_of_open[1] if self._rows_of_open[0] == segment else 0
        key = key2(topic.topic_id, segment)
        payload = topic.view.get(ABORTED, key)
        if payload is None:
            if known:
                raise corrupt(ABORTED, key, "it is not there")
            return
        bounds = blocks.RANGE.unpack_from(payload)
        if bounds[:2] > through or bounds[2:4] <= after:
            return
        self.ids.update(_ids(payload[blocks.RANGE.size + known * _ROW.size :]))
        self._rows_of_open = (segment, bounds[4])


def _ids(rows: memoryview) -> tuple[int, ...]:
    """The transactions of some rows."""
    return unpack(">" + "Q40x" * (len(rows) // _ROW.size), rows)


class AbortedSegment(NamedTuple):
    """A segment of the aborted set: range of positions, transactions, messages, bytes."""

    segment: int
    first_position: Position
    last_position: Position
    transactions: int
    messages: int
    bytes: int


def check_all(topic_id: int, state: TopicState, transactions: int) -> None:
    """Check that all segments were found, by their transactions.

    Raises:
        CorruptStore: there are fewer transactions than the topic's state counts.
    """
    if transactions != state.aborted_txns:
        why = f"{transactions} aborted transactions are found; the topic has {state.aborted_txns}"
        raise corrupt(ABORTED, key2(topic_id, state.aborted_segment), why)


def segments(view: ReadView, topic_id: int) -> list[AbortedSegment]:
    """The segments of a topic that are found."""
    rows = []
    for key, payload in view.scan(ABORTED, key1(topic_id)):
        bounds = blocks.RANGE.unpack_from(payload)
        first, last = Position(bounds[0], bounds[1]), Position(bounds[2], bounds[3])
        number = int.from_bytes(key[8:], "big")
        rows.append(AbortedSegment(number, first, last, bounds[4], bounds[5], len(payload)))
    return rows


def rows(view: ReadView, topic_id: int) -> list[Row]:
    """Every transaction of the set: id, first ledger and entry, last ledger and entry, messages."""
    return [
        row
        for _, data in view.scan(ABORTED, key1(topic_id))
        for row in _ROW.iter_unpack(data[blocks.RANGE.size :])
    ]


def messages_between(
    view: ReadView, topic_id: int, state: TopicState, after: Position, through: Position
) -> int:
    """Count the messages of aborted transactions in (after, through], without a scan of the log.

    A segment within the range counts by the segment's sum, a transaction within the range by the transaction's sum; a
    transaction across an end of the range is counted by its runs.

    Raises:
        CorruptStore: a segment is missing.
    """
    # Within trimmed ledgers nothing is counted: their entries are gone, and a run there cannot be cut.
    after = max(after, Position(state.first_ledger, -1))
    if not state.aborted_txns or through <= after:
        return 0
    whole = blocks.whole(view, topic_id)
    if whole and (whole.transactions, whole.messages) == (state.aborted_txns, state.aborted_messages):
        if whole.is_within(after, through):
            return whole.messages
        if not whole.touches(after, through):
            return 0
    covering = blocks.every_segment(view, topic_id, state.aborted_segment)
    check_all(topic_id, state, sum(block.transactions for block in covering))
    first = blocks.first_segment(view, topic_id, state.aborted_segment)
    total = 0
    while covering:
        block = covering.pop()
        if block.is_within(after, through):
            total += block.messages
        elif block.touches(after, through):
            if block.level > 0:
                covering += blocks.parts(view, topic_id, block, first)
            else:
                total += _messages_in_segment(view, topic_id, block.number, after, through)
    return total


def _messages_in_segment(
    view: ReadView, topic_id: int, segment: int, after: Position, through: Position
) -> int:
    """As `messages_between`, for one segment across an end of the range."""
    payload, total = view.get(ABORTED, key2(topic_id, segment)), 0
    if payload is None:
        raise corrupt(ABORTED, key2(topic_id, segment), "it is not there")
    for row in _ROW.iter_unpack(payload[blocks.RANGE.size :]):
        if row[1:3] > through or row[3:5] <= after:
            continue
        if row[1:3] > after and row[3:5] <= through:
            total += row[5]
        else:
            total += runs.messages_through(view, topic_id, row[0], min(Position(*row[3:5]), through))
            total -= runs.messages_through(view, topic_id, row[0], after)
    return total

"""The aborted set of a topic, in segments (PIP-196's snapshot segments).

A segment's range runs from the lowest first to the highest last message position of its transactions, so that a
reader of a range loads only the segments that its range touches. Every segment but the last is sealed.
"""

from __future__ import annotations

from struct import Struct, unpack

from storage.disk.codec import corrupt, key1, key2
from storage.disk.schema import ABORTED
from storage.disk.view import ReadView, WriteBatch
from storage.limits import ABORTED_SEGMENT_TRANSACTIONS_MAX
from storage.topic.open_topic import OpenTopic
from storage.topic.state import TopicState
from storage.txn import runs
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position

# Range (first ledger and entry, last ledger and entry), transactions, messages; then a row per transaction.
_RANGE = Struct(">QQQQQQ")
# Transaction, first ledger and entry, last ledger and entry, messages.
_ROW = Struct(">QQQQQQ")

Row = tuple[int, int, int, int, int, int]


def add(topic: OpenTopic[WriteBatch], row: Row) -> None:
    """Add an aborted transaction with messages on the topic."""
    batch, state = topic.view, topic.state
    key = key2(topic.topic_id, state.aborted_segment)
    payload = batch.get(ABORTED, key)
    txn, first, last, messages = row[0], row[1:3], row[3:5], row[5]
    count, rows = 0, b""
    if payload is not None:
        low_l, low_e, high_l, high_e, count, before = _RANGE.unpack_from(payload)
        first, last, messages = min(first, (low_l, low_e)), max(last, (high_l, high_e)), messages + before
        rows = bytes(payload[_RANGE.size :])
    assert txn > 0, "a transaction has an id"
    batch.put(ABORTED, key, _RANGE.pack(*first, *last, count + 1, messages) + rows + _ROW.pack(*row))
    state.aborted_txns += 1
    state.aborted_messages += row[5]
    if count + 1 >= ABORTED_SEGMENT_TRANSACTIONS_MAX:
        state.aborted_segment += 1


def trim(topic: OpenTopic[WriteBatch]) -> None:
    """Remove the segments at the front of the set whose messages are all trimmed."""
    batch, topic_id, state = topic.view, topic.topic_id, topic.state
    while (record := batch.first(ABORTED, key1(topic_id))) is not None:
        key, bounds = record[0], _RANGE.unpack_from(record[1])
        if bounds[2:4] >= (state.first_ledger, 0):
            return
        if key == key2(topic_id, state.aborted_segment):
            state.aborted_segment += 1
        state.aborted_txns -= bounds[4]
        state.aborted_messages -= bounds[5]
        batch.delete(ABORTED, key)


def _first_segment(topic: OpenTopic[ReadView]) -> int:
    """The number of the first segment that trimming left."""
    for key in topic.view.keys(ABORTED, key1(topic.topic_id)):
        return int.from_bytes(key[8:], "big")
    return topic.state.aborted_segment


class AbortedSet:
    """The ids of aborted transactions that a reader needs, remembered between pages.

    Load a range before reading the range; then `txn in aborted_set.ids` is right for every decided transaction in it.
    """

    __slots__ = ("_apart", "_known_through", "_rows_of_open", "ids")

    def __init__(self) -> None:
        self.ids: set[int] = set()
        self._apart: dict[int, tuple[int, ...]] = {}
        """Sealed segments outside all ranges loaded so far, with their bounds."""
        self._known_through: int | None = None
        """Every segment below this number is sealed, and loaded, trimmed or in `_apart`; None before the first load."""
        self._rows_of_open = (-1, 0)

    def load(self, topic: OpenTopic[ReadView], after: Position, through: Position) -> None:
        """Load the segments that touch (after, through]."""
        if not topic.state.aborted_txns:
            return
        for segment, bounds in list(self._apart.items()) if self._apart else ():
            if bounds[:2] <= through and bounds[2:4] > after:
                self._load_segment(topic, segment, after, through)
        is_first_load = self._known_through is None
        start = self._known_through if self._known_through is not None else _first_segment(topic)
        transactions = 0
        for segment in range(start, topic.state.aborted_segment + 1):
            transactions += self._load_segment(topic, segment, after, through)
        if is_first_load:
            # A record that is not found must not let an aborted message pass for a committed one.
            check_all(topic.topic_id, topic.state, transactions)
        self._known_through = topic.state.aborted_segment

    def _load_segment(
        self, topic: OpenTopic[ReadView], segment: int, after: Position, through: Position
    ) -> int:
        """Load one segment if it touches (after, through]; return the number of its transactions."""
        state, key = topic.state, key2(topic.topic_id, segment)
        payload = topic.view.get(ABORTED, key)
        is_sealed = segment < state.aborted_segment
        known = self._rows_of_open[1] if self._rows_of_open[0] == segment else 0
        if payload is None:
            if (is_sealed or known) and segment >= _first_segment(topic):
                raise corrupt(ABORTED, key, "it is not there")
            self._apart.pop(segment, None)
            return 0
        bounds = _RANGE.unpack_from(payload)
        transactions = int(bounds[4])
        if bounds[:2] > through or bounds[2:4] <= after:
            if is_sealed:
                self._apart[segment] = bounds
            return transactions
        rows = payload[_RANGE.size + known * _ROW.size :]
        self.ids.update(unpack(">" + "Q40x" * (len(rows) // _ROW.size), rows))
        if is_sealed:
            self._apart.pop(segment, None)
        else:
            self._rows_of_open = (segment, transactions)
        return transactions


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
        bounds = _RANGE.unpack_from(payload)
        first, last = Position(bounds[0], bounds[1]), Position(bounds[2], bounds[3])
        number = int.from_bytes(key[8:], "big")
        rows.append(AbortedSegment(number, first, last, bounds[4], bounds[5], len(payload)))
    return rows


def rows(view: ReadView, topic_id: int) -> list[Row]:
    """Every transaction of the set: id, first ledger and entry, last ledger and entry, messages."""
    return [
        row for _, data in view.scan(ABORTED, key1(topic_id)) for row in _ROW.iter_unpack(data[_RANGE.size :])
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
    total = transactions = 0
    for _, payload in view.scan(ABORTED, key1(topic_id)):
        bounds = _RANGE.unpack_from(payload)
        transactions += bounds[4]
        if bounds[:2] > through or bounds[2:4] <= after:
            continue
        if bounds[:2] > after and bounds[2:4] <= through:
            total += bounds[5]
            continue
        for row in _ROW.iter_unpack(payload[_RANGE.size :]):
            if row[1:3] > through or row[3:5] <= after:
                continue
            if row[1:3] > after and row[3:5] <= through:
                total += row[5]
            else:
                total += runs.messages_through(view, topic_id, row[0], min(Position(*row[3:5]), through))
                total -= runs.messages_through(view, topic_id, row[0], after)
    check_all(topic_id, state, transactions)
    return total

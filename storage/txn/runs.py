"""Runs: the entries of a transaction on a topic, as runs of neighbouring entries with running counts.

Runs answer "how many messages of this transaction lie at or below a position" with one look-up, so that blocked
messages are counted exactly without a scan, also where a transaction lies on both sides of a cursor.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from storage.disk.codec import U64_MAX, U64X2, key2, key4
from storage.disk.schema import TXN_RUNS
from storage.disk.view import ReadView, WriteBatch
from storage.topic import log
from storage.topic.entry import Entry
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position, as_position

GATHERED = 1 << 63
"""Added to the ledger in keys of runs gathered by span (`storage/subscription/lost_runs.py`), behind the runs."""


class Run(NamedTuple):
    """Neighbouring entries of a transaction in one ledger: the first entry, the id of the last one, messages."""

    first: Position
    last: int
    messages: int


def write_run(batch: WriteBatch, topic_id: int, txn: int, start: Position, end: tuple[int, int]) -> None:
    """Write the latest run of a transaction.

    Args:
        end: the last entry id of the run, and the transaction's messages on the topic up to that entry.
    """
    batch.put(TXN_RUNS, key4(topic_id, txn, *start), U64X2.pack(*end))


def messages_through(view: ReadView, topic_id: int, txn: int, position: Position) -> int:
    """Count the transaction's messages on a topic at or below a position."""
    if position[1] < 0:
        # The end of the ledger before, which may be trimmed: runs of trimmed ledgers still count.
        position = Position(position[0] - 1, U64_MAX)
    record = view.last(TXN_RUNS, key2(topic_id, txn), key4(topic_id, txn, *position))
    if record is None:
        return 0
    key, payload = record
    last_entry, total = U64X2.unpack(payload)
    ledger_id = int.from_bytes(key[16:24], "big")
    if position[0] > ledger_id or position[1] >= last_entry:
        return int(total)
    # Inside a run every entry is the transaction's: the topic's running counts give the rest.
    end = log.stored(view, topic_id, Position(ledger_id, last_entry))
    here = log.stored(view, topic_id, position)
    return int(total - (end.messages_through - here.messages_through))


def forget(batch: WriteBatch, topic_id: int, txn: int) -> None:
    """Remove the runs, gathered ones too, of a transaction whose messages on the topic are all trimmed."""
    batch.delete_prefix(TXN_RUNS, key2(topic_id, txn))


def _stored(
    view: ReadView, topic_id: int, txn: int, start: bytes | None = None
) -> Iterator[tuple[bytes, memoryview]]:
    return view.scan(TXN_RUNS, key2(topic_id, txn), start, key4(topic_id, txn, GATHERED - 1, U64_MAX))


def ranges(
    view: ReadView, topic_id: int, txn: int, limit: int | None = None
) -> list[tuple[Position, Position]]:
    """First and last position of every run, or of the first ones, in order."""
    bounds = []
    for key, payload in islice(_stored(view, topic_id, txn), limit):
        ledger_id, first = int.from_bytes(key[16:24], "big"), int.from_bytes(key[24:], "big")
        bounds.append((Position(ledger_id, first), Position(ledger_id, U64X2.unpack(payload)[0])))
    return bounds


def ends(view: ReadView, topic_id: int, txn: int, limit: int) -> list[tuple[Position, int]]:
    """The last position and the number of messages of the first runs, in order."""
    last_ones, before = [], 0
    for key, payload in islice(_stored(view, topic_id, txn), limit):
        last, total = U64X2.unpack(payload)
        last_ones.append((Position(int.from_bytes(key[16:24], "big"), last), total - before))
        before = total
    return last_ones


def end_of_run(view: ReadView, topic_id: int, txn: int, position: Position) -> Position:
    """The last entry of the run in which an entry of the transaction stands."""
    record = view.last(TXN_RUNS, key2(topic_id, txn), key4(topic_id, txn, *position))
    return position if record is None else Position(position.ledger_id, U64X2.unpack(record[1])[0])


def start_of_run(view: ReadView, topic_id: int, txn: int, position: Position) -> Position:
    """The first entry of the run in which an entry of the transaction stands."""
    record = view.last(TXN_RUNS, key2(topic_id, txn), key4(topic_id, txn, *position))
    return position if record is None else Position(position.ledger_id, int.from_bytes(record[0][24:], "big"))


def entries(view: ReadView, topic_id: int, txn: int, after: Position, through: Position) -> Iterator[Entry]:
    """Yield the transaction's entries on a topic after one position and up to a second, in order."""
    before = view.last(TXN_RUNS, key2(topic_id, txn), key4(topic_id, txn, after[0], max(after[1], 0)))
    start = before[0] if before is not None else None
    for key, payload in _stored(view, topic_id, txn, start):
        ledger_id, first = int.from_bytes(key[16:24], "big"), int.from_bytes(key[24:], "big")
        if (ledger_id, first) > through:
            return
        begin = max(Position(ledger_id, first - 1), after)
        end = min(Position(ledger_id, U64X2.unpack(payload)[0]), through)
        yield from log.scan(view, topic_id, begin, end)


def behind(view: ReadView, topic_id: int, txn: int, after: Position) -> Iterator[Run]:
    """Yield the runs of a transaction on a topic behind a position; of the run around the position, the rest."""
    before = view.last(TXN_RUNS, key2(topic_id, txn), key4(topic_id, txn, after[0], max(after[1], 0)))
    total = messages_through(view, topic_id, txn, after)
    for key, payload in _stored(view, topic_id, txn, None if before is None else before[0]):
        first, (last, through) = as_position(U64X2.unpack_from(key, 16)), U64X2.unpack(payload)
        if first <= after:
            if (first[0], last) <= after:
                continue
            first = Position(after[0], after[1] + 1)
        yield Run(first, last, through - total)
        total = through

"""Where a transaction's entries are on a topic: runs of neighbouring entries, with running counts.

They answer "how many messages of this transaction lie at or below a position" with one look-up, so that what is
blocked is counted exactly without a scan, also where a transaction lies on both sides of a cursor.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from storage.disk.codec import U64X2, key2, key4
from storage.disk.schema import TXN_RUNS
from storage.disk.view import ReadView, WriteBatch
from storage.topic import log
from storage.topic.entry import Entry
from storage.values.position import Position


def extend(
    batch: WriteBatch,
    topic_id: int,
    txn: int,
    run: tuple[int, int],
    last: tuple[int, int],
    position: Position,
    total: int,
) -> tuple[int, int]:
    """An entry was appended; the start of the run that it belongs to.

    Args:
        run: where the transaction's latest run begins.
        last: the transaction's entry before this one.
        total: messages of the transaction on this topic, this entry included.
    """
    if last != (position.ledger_id, position.entry_id - 1):
        run = (position.ledger_id, position.entry_id)
    batch.put(TXN_RUNS, key4(topic_id, txn, *run), U64X2.pack(position.entry_id, total))
    return run


def messages_through(view: ReadView, topic_id: int, txn: int, position: tuple[int, int]) -> int:
    """How many of the transaction's messages on a topic lie at or below a position."""
    if position[1] < 0:
        position = log.previous_position(view, topic_id, (position[0], 0))
        if position[1] < 0:
            return 0
    found = view.last(TXN_RUNS, key2(topic_id, txn), key4(topic_id, txn, *position))
    if found is None:
        return 0
    key, payload = found
    last_entry, total = U64X2.unpack(payload)
    ledger_id = int.from_bytes(key[16:24], "big")
    if position[0] > ledger_id or position[1] >= last_entry:
        return int(total)
    # Inside a run every entry is the transaction's: the topic's running counts tell the rest.
    end = log.read(view, topic_id, (ledger_id, last_entry))
    here = log.read(view, topic_id, position)
    assert end is not None and here is not None, "the entries of a run exist"
    return int(total - (end.messages_through - here.messages_through))


def ranges(
    view: ReadView, topic_id: int, txn: int, limit: int | None = None
) -> list[tuple[Position, Position]]:
    """First and last position of every run, or of the first ones, in order."""
    found = []
    for key, payload in islice(view.scan(TXN_RUNS, key2(topic_id, txn)), limit):
        ledger_id, first = int.from_bytes(key[16:24], "big"), int.from_bytes(key[24:], "big")
        found.append((Position(ledger_id, first), Position(ledger_id, U64X2.unpack(payload)[0])))
    return found


def ends(view: ReadView, topic_id: int, txn: int, limit: int) -> list[tuple[tuple[int, int], int]]:
    """Where the first runs end, and how many messages each has, in order."""
    found, before = [], 0
    for key, payload in islice(view.scan(TXN_RUNS, key2(topic_id, txn)), limit):
        last, total = U64X2.unpack(payload)
        found.append(((int.from_bytes(key[16:24], "big"), last), total - before))
        before = total
    return found


def end_of_run(view: ReadView, topic_id: int, txn: int, position: Position) -> Position:
    """The last entry of the run in which an entry of the transaction stands."""
    found = view.last(TXN_RUNS, key2(topic_id, txn), key4(topic_id, txn, *position))
    return position if found is None else Position(position.ledger_id, U64X2.unpack(found[1])[0])


def start_of_run(view: ReadView, topic_id: int, txn: int, position: Position) -> Position:
    """The first entry of the run in which an entry of the transaction stands."""
    found = view.last(TXN_RUNS, key2(topic_id, txn), key4(topic_id, txn, *position))
    return position if found is None else Position(position.ledger_id, int.from_bytes(found[0][24:], "big"))


def entries(
    view: ReadView, topic_id: int, txn: int, after: tuple[int, int], through: tuple[int, int]
) -> Iterator[Entry]:
    """The transaction's entries on a topic after one position and up to another, in order."""
    before = view.last(TXN_RUNS, key2(topic_id, txn), key4(topic_id, txn, after[0], max(after[1], 0)))
    start = before[0] if before is not None else None
    for key, payload in view.scan(TXN_RUNS, key2(topic_id, txn), start):
        ledger_id, first = int.from_bytes(key[16:24], "big"), int.from_bytes(key[24:], "big")
        if (ledger_id, first) > through:
            return
        begin = max((ledger_id, first - 1), after)
        end = min((ledger_id, U64X2.unpack(payload)[0]), through)
        yield from log.scan(view, topic_id, begin, end)

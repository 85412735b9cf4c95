"""Timed entries: the entries of a topic with delivery times, so that delayed messages are counted without the log.

A subscription notes the delayed messages that its dispatch has met (`storage/subscription/delayed.py`). For the rest
each entry with delivery times has a record here, with its messages by due time, in position order. Of runs of such
records whose transactions are ended there are *blocks*, sums by due time, so that a count reads a block for about a
thousand records. A block is added once its records have so many due times, with the append that completes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from storage.disk.codec import U64_MAX, key1, key3, pack, unpack, unpack_first
from storage.disk.schema import TIMED, TIMED_BLOCKS
from storage.disk.view import ReadView, WriteBatch
from storage.topic.open_topic import OpenTopic
from storage.txn import record as records
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position, as_position
from storage.values.txn_state import TransactionState

BLOCK_TIMES = 1024
"""Due times, added up over the records of a block, from which on a block ends."""

_BLOCKS_A_STEP = 2
"""Blocks that one append adds at most: records of a transaction that was open for long wait for the next ones."""


class TimedEntry(NamedTuple):
    """An entry with delivery times.

    Attributes:
        number: due times of the topic's timed entries up to this one.
        txn: the transaction of the entry; 0 for none.
        due: pairs of a due time in ms and the number of messages with it.
    """

    at: Position
    number: int
    txn: int
    due: list[tuple[int, int]]


class TimedBlock(NamedTuple):
    """Sums of neighbouring timed entries, none of an open transaction.

    Attributes:
        first, last: the first and the last entry.
        least_ms, most_ms: the earliest and the latest due time.
        messages, of_aborted: messages with a due time, and how many of these are of aborted transactions.
        packed: rows of due time, messages, and messages of aborted transactions; unpacked where the time lies between.
    """

    first: Position
    last: Position
    least_ms: int
    most_ms: int
    messages: int
    of_aborted: int
    packed: bytes

    def early(self, now_ms: int, *, is_committed: bool) -> int:
        """Count the messages whose time has not come, without those of aborted transactions if asked."""
        if self.most_ms <= now_ms:
            return 0
        messages, of_aborted = self.messages, self.of_aborted
        if self.least_ms <= now_ms:
            rows = [row for row in unpack(self.packed) if row[0] > now_ms]
            messages, of_aborted = sum(row[1] for row in rows), sum(row[2] for row in rows)
        return messages - (of_aborted if is_committed else 0)


def note(topic: OpenTopic[WriteBatch], at: Position, txn: int, times: Sequence[int | None]) -> None:
    """Note a new entry, and add the block that it completes.

    Args:
        times: the delivery time of each message; not all None.
    """
    due = due_of(times)
    batch, topic_id = topic.view, topic.topic_id
    last = batch.last(TIMED, key1(topic_id), key3(topic_id, U64_MAX, U64_MAX))
    before = 0 if last is None else _entry(*last).number
    number = before + len(due)
    batch.put(TIMED, key3(topic_id, *at), pack([number, txn, due]))
    if before // BLOCK_TIMES != number // BLOCK_TIMES:
        for _ in range(_BLOCKS_A_STEP):
            if not _add_block(batch, topic_id, topic.state.max_read):
                break


def due_of(times: Sequence[int | None]) -> list[tuple[int, int]]:
    """The number of messages by due time, in order."""
    due: dict[int, int] = {}
    for time_ms in times:
        if time_ms is not None:
            due[time_ms] = due.get(time_ms, 0) + 1
    return sorted(due.items())


def entries(
    view: ReadView, topic_id: int, after: Position | None = None, through: Position | None = None
) -> Iterator[TimedEntry]:
    """Yield the timed entries in (after, through], in position order."""
    start = None if after is None else key3(topic_id, after[0], after[1] + 1)
    stop = None if through is None else key3(topic_id, through[0], max(through[1], 0))
    for key, payload in view.scan(TIMED, key1(topic_id), start, stop):
        entry = _entry(key, payload)
        if through is not None and entry.at > through:
            return
        yield entry


def blocks(view: ReadView, topic_id: int, after: Position | None = None) -> Iterator[TimedBlock]:
    """Yield the blocks that end behind a position, in position order."""
    start = None if after is None else key3(topic_id, after[0], after[1] + 1)
    for key, payload in view.scan(TIMED_BLOCKS, key1(topic_id), start):
        yield _block(key, payload)


def sum_of(view: ReadView, run: list[TimedEntry]) -> TimedBlock:
    """The block of some neighbouring entries, none of an open transaction."""
    sums: dict[int, list[int]] = {}
    for entry in run:
        is_aborted = _is(view, entry.txn, TransactionState.ABORTED)
        for due_ms, messages in entry.due:
            row = sums.setdefault(due_ms, [0, 0])
            row[0] += messages
            row[1] += messages if is_aborted else 0
    rows = [[due_ms, *sums[due_ms]] for due_ms in sorted(sums)]
    messages, of_aborted = sum(row[1] for row in rows), sum(row[2] for row in rows)
    return TimedBlock(run[0].at, run[-1].at, rows[0][0], rows[-1][0], messages, of_aborted, pack(rows))


def count_early(
    view: ReadView, topic_id: int, after: Position, through: Position, now_ms: int, *, is_committed: bool
) -> int:
    """Count the messages in (after, through] whose delivery time has not come.

    Args:
        is_committed: leave out the messages of open and aborted transactions.
    """
    early, reached, states = 0, after, dict[int, bool]()
    for block in blocks(view, topic_id, after):
        if block.last > through:
            break
        if block.first <= after:
            early += _count_entries(
                view, topic_id, (after, block.last), now_ms, states if is_committed else None
            )
        else:
            early += block.early(now_ms, is_committed=is_committed)
        reached = block.last
    return early + _count_entries(
        view, topic_id, (reached, through), now_ms, states if is_committed else None
    )


def is_committed(view: ReadView, entry: TimedEntry) -> bool:
    """Whether an entry is of no transaction, or of a committed one."""
    return not entry.txn or _is(view, entry.txn, TransactionState.COMMITTED)


def _count_entries(
    view: ReadView,
    topic_id: int,
    span: tuple[Position, Position],
    now_ms: int,
    states: dict[int, bool] | None,
) -> int:
    early = 0
    for entry in entries(view, topic_id, *span):
        messages = sum(messages for due_ms, messages in entry.due if due_ms > now_ms)
        if messages and states is not None and entry.txn:
            if entry.txn not in states:
                states[entry.txn] = is_committed(view, entry)
            messages = messages if states[entry.txn] else 0
        early += messages
    return early


def _add_block(batch: WriteBatch, topic_id: int, max_read: Position) -> bool:
    """Add the next block, if there are enough entries up to maxReadPosition, where every transaction is ended."""
    last = batch.last(TIMED_BLOCKS, key1(topic_id), key3(topic_id, U64_MAX, U64_MAX))
    run: list[TimedEntry] = []
    times = 0
    for entry in entries(batch, topic_id, None if last is None else _block(*last).last, max_read):
        run.append(entry)
        times += len(entry.due)
        if times >= BLOCK_TIMES:
            block = sum_of(batch, run)
            batch.put(TIMED_BLOCKS, key3(topic_id, *block.last), pack([*block.first, *block[2:]]))
            return True
    return False


def _is(view: ReadView, txn: int, state: TransactionState) -> bool:
    return txn != 0 and records.state_of(view, txn) is state


def _entry(key: bytes, payload: memoryview) -> TimedEntry:
    number, txn, due = unpack_first(payload, 3)
    return TimedEntry(_position(key), number, txn, [(due_ms, messages) for due_ms, messages in due])


def _block(key: bytes, payload: memoryview) -> TimedBlock:
    ledger_id, entry_id, *sums = unpack_first(payload, 7)
    return TimedBlock(Position(ledger_id, entry_id), _position(key), *sums)


def _position(key: bytes) -> Position:
    return as_position((int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:24], "big")))

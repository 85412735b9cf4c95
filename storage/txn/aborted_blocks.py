"""Blocks of the aborted set: range and sums of 1, 4, 16, ... neighbouring sealed segments, each in a small record.

A block of level `n` with number `b` covers the segments from `b * 4**n` up to below `(b + 1) * 4**n`. A block is
written once, when the last of these segments is sealed, and goes with the first of its segments that is trimmed. So the
sealed segments of a topic are a few blocks, at most three of each level at either end, and a reader looks at these,
whatever the number of aborted transactions. One more record has range and sums of the whole set: most readers read
behind it. A segment that an earlier release sealed has no block, and is read itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct

from storage.disk.codec import corrupt, key1, key2, key3
from storage.disk.schema import ABORTED, ABORTED_BLOCKS
from storage.disk.view import ReadView, WriteBatch
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position

SEGMENTS = 4
"""Blocks of one level that a block of the next level covers."""

WHOLE = 64
"""The level of the record for the whole set, the open segment included."""

RANGE = Struct(">QQQQQQ")
"""First ledger and entry, last ledger and entry, transactions, messages."""


class AbortedBlock(NamedTuple):
    """Range and sums of some segments; level -1 for a segment, sealed or open, that is read itself."""

    level: int
    number: int
    first: Position
    last: Position
    transactions: int
    messages: int

    def touches(self, after: Position, through: Position) -> bool:
        """Whether a position of (after, through] lies in the range."""
        return self.first <= through and self.last > after

    def is_within(self, after: Position, through: Position) -> bool:
        """Whether the whole range lies in (after, through]."""
        return self.first > after and self.last <= through


def _block(level: int, number: int, payload: memoryview) -> AbortedBlock:
    bounds = RANGE.unpack_from(payload)
    return AbortedBlock(level, number, Position(*bounds[:2]), Position(*bounds[2:4]), bounds[4], bounds[5])


def _find(view: ReadView, topic_id: int, level: int, number: int) -> AbortedBlock | None:
    payload = view.get(ABORTED_BLOCKS, key3(topic_id, level, number))
    return None if payload is None else _block(level, number, payload)


def find_segment(view: ReadView, topic_id: int, segment: int) -> AbortedBlock | None:
    """The range and the sums of one segment, read from the segment itself; None if there is none."""
    payload = view.get(ABORTED, key2(topic_id, segment))
    return None if payload is None else _block(-1, segment, payload)


def first_segment(view: ReadView, topic_id: int, open_segment: int) -> int:
    """The number of the first segment that trimming left; of the open segment if there is none."""
    record = view.first(ABORTED, key1(topic_id))
    return open_segment if record is None else int.from_bytes(record[0][8:], "big")


def seal(batch: WriteBatch, topic_id: int, segment: int) -> None:
    """Write the blocks that a segment completes, which was just sealed."""
    sealed = find_segment(batch, topic_id, segment)
    assert sealed is not None, "a segment that is sealed is there"
    put(batch, topic_id, sealed._replace(level=0))
    _put_larger(batch, topic_id, segment)


def _put_larger(batch: WriteBatch, topic_id: int, segment: int) -> None:
    """Write the blocks of several segments that end with a segment, if all of their parts are there."""
    level, end = 1, segment + 1
    while end % SEGMENTS == 0:
        end //= SEGMENTS
        if _find(batch, topic_id, level, end - 1) is None:
            parts = [
                _find(batch, topic_id, level - 1, (end - 1) * SEGMENTS + part) for part in range(SEGMENTS)
            ]
            complete_parts = [part for part in parts if part is not None]
            if len(complete_parts) < SEGMENTS:
                return
            put(batch, topic_id, _sum(complete_parts, level, end - 1))
        level += 1


def is_complete(view: ReadView, topic_id: int, open_segment: int) -> bool:
    """Whether no segment was sealed by an earlier release: such segments are the first ones."""
    first = first_segment(view, topic_id, open_segment)
    return (first == open_segment or _find(view, topic_id, 0, first) is not None) and (
        whole(view, topic_id) is not None or find_segment(view, topic_id, first) is None
    )


def complete(batch: WriteBatch, topic_id: int, open_segment: int, limit: int) -> bool:
    """Write the blocks that the segments of an earlier release lack, of at most so many; whether more are left."""
    for segment in range(first_segment(batch, topic_id, open_segment), open_segment):
        if _find(batch, topic_id, 0, segment) is None:
            if not limit:
                return True
            limit -= 1
            sealed = find_segment(batch, topic_id, segment)
            if sealed is None:
                raise corrupt(ABORTED, key2(topic_id, segment), "it is not there")
            put(batch, topic_id, sealed._replace(level=0))
        _put_larger(batch, topic_id, segment)
    sum_whole(batch, topic_id, open_segment)
    return False


def _sum(parts: Sequence[AbortedBlock], level: int, number: int) -> AbortedBlock:
    """The block of a level that consists of some blocks, at least one."""
    return AbortedBlock(
        level, number, min(part.first for part in parts), max(part.last for part in parts),
        sum(part.transactions for part in parts), sum(part.messages for part in parts),
    )  # fmt: skip


def put(batch: WriteBatch, topic_id: int, block: AbortedBlock) -> None:
    """Write the record of a block."""
    payload = RANGE.pack(*block.first, *block.last, block.transactions, block.messages)
    batch.put(ABORTED_BLOCKS, key3(topic_id, block.level, block.number), payload)


def whole(view: ReadView, topic_id: int) -> AbortedBlock | None:
    """Range and sums of the whole set; None for an empty set, and for one that an earlier release left."""
    return _find(view, topic_id, WHOLE, 0)


def extend_whole(batch: WriteBatch, topic_id: int, open_segment: int, added: AbortedBlock) -> None:
    """Take an aborted transaction into the record for the whole set, which may not be there: then sum all blocks.

    Args:
        added: a block of the one transaction, which is in the open segment already.
    """
    before = whole(batch, topic_id)
    if before is None:
        sum_whole(batch, topic_id, open_segment)
    else:
        put(batch, topic_id, _sum([before, added], WHOLE, 0))


def sum_whole(batch: WriteBatch, topic_id: int, open_segment: int) -> None:
    """Write the record for the whole set anew, from all blocks and the open segment."""
    covering = every_segment(batch, topic_id, open_segment)
    if covering:
        put(batch, topic_id, _sum(covering, WHOLE, 0))
    else:
        batch.delete(ABORTED_BLOCKS, key3(topic_id, WHOLE, 0))


def every_segment(view: ReadView, topic_id: int, open_segment: int) -> list[AbortedBlock]:
    """The largest blocks that cover the sealed segments, and the open segment last, unless it is empty.

    Raises:
        CorruptStore: a sealed segment is missing.
    """
    last = find_segment(view, topic_id, open_segment)
    sealed = list(sealed_blocks(view, topic_id, open_segment))
    return sealed if last is None else [*sealed, last]


def forget(batch: WriteBatch, topic_id: int, segment: int) -> None:
    """Remove the blocks with a segment that is trimmed, the first one left.

    Where the block of a level is not there, none of the next levels is: it would consist of that block.
    """
    level = 0
    while batch.delete(ABORTED_BLOCKS, key3(topic_id, level, segment)):
        level, segment = level + 1, segment // SEGMENTS


def sealed_blocks(view: ReadView, topic_id: int, open_segment: int) -> Iterator[AbortedBlock]:
    """Yield the largest blocks that cover the sealed segments, in order; a segment without a block for itself.

    Raises:
        CorruptStore: a segment is missing.
    """
    segment = first_segment(view, topic_id, open_segment)
    while segment < open_segment:
        block = _largest(view, topic_id, segment, open_segment)
        yield block
        segment = segments_of(block).stop


def segments_of(block: AbortedBlock) -> range:
    """The numbers of the segments of a block."""
    size = SEGMENTS ** max(block.level, 0)
    return range(block.number * size, (block.number + 1) * size)


def _largest(view: ReadView, topic_id: int, segment: int, end: int) -> AbortedBlock:
    level = 0
    while segment % SEGMENTS ** (level + 1) == 0 and segment + SEGMENTS ** (level + 1) <= end:
        level += 1
    for size in range(level, -1, -1):
        block = _find(view, topic_id, size, segment // SEGMENTS**size)
        if block is not None:
            return block
    alone = find_segment(view, topic_id, segment)
    if alone is None:
        raise corrupt(ABORTED, key2(topic_id, segment), "it is not there")
    return alone


def parts(view: ReadView, topic_id: int, block: AbortedBlock, first: int) -> Iterator[AbortedBlock]:
    """Yield the blocks of the next lower level that a block consists of, without trimmed ones.

    Args:
        first: the first segment that trimming left.

    Raises:
        CorruptStore: a segment is missing.
    """
    for part in range(block.number * SEGMENTS, (block.number + 1) * SEGMENTS):
        smaller = _find(view, topic_id, block.level - 1, part)
        if smaller is not None:
            yield smaller
            continue
        size = SEGMENTS ** (block.level - 1)
        for segment in range(max(part * size, first), (part + 1) * size):
            whole = find_segment(view, topic_id, segment)
            if whole is None:
                raise corrupt(ABORTED, key2(topic_id, segment), "it is not there")
            yield whole


def every(view: ReadView, topic_id: int) -> Iterator[AbortedBlock]:
    """Yield all blocks of a topic, by level and number."""
    for key, payload in view.scan(ABORTED_BLOCKS, key1(topic_id)):
        yield _block(int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:], "big"), payload)

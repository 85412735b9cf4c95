"""A topic's ledgers: append, roll over, read, count.

Invariant 5: positions are dense within a ledger and never reused; entries do not change; an open ledger that rolls
over is closed for good. The log knows nothing of transactions but the id in the header of an entry, and the one rule
that with no open transaction maxReadPosition is lastConfirmedEntry.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from storage import faults
from storage.disk.codec import corrupt, key1, key2, key3, key_through, missing, pack, unpack_first
from storage.disk.schema import ENTRIES, HEADS, LEDGERS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import CorruptStore
from storage.limits import PAGE_BYTES, PAGE_ENTRIES
from storage.topic import state as states, written_positions
from storage.topic.entry import IN_ORDER, MESSAGES, NS_PER_MS, Entry, encode
from storage.topic.open_topic import OpenTopic
from storage.topic.state import TopicState
from storage.values.counters import MESSAGES_WRITTEN
from storage.values.ledger_ids import is_next
from storage.values.position import Position, as_position


def append(topic: OpenTopic[WriteBatch], kind: int, count: int, txn: int, body: bytes) -> Position:
    """Write the next entry of a topic, under the topic's epoch.

    Args:
        count: messages in the entry; 0 for a marker.
        txn: the transaction of the entry; 0 for none.
    """
    faults.reach("ledger.before_append")
    batch, state = topic.view, topic.state
    now_ms = batch.now_ms
    if _is_due_to_roll(state, now_ms):
        roll(topic, now_ms)
    # Of the batch's one reading of the clock: no publish time is later than its timestamp.
    timestamp = batch.superblock.issue_timestamp(batch.wall_ns)
    flags = _order_flag(topic, now_ms) if timestamp // NS_PER_MS > now_ms else 0
    payload = encode(
        kind, count, txn, state.epoch, now_ms, timestamp, state.messages, state.bytes, body, flags
    )
    position = as_position((state.ledger_id, state.next_entry))
    batch.put(ENTRIES, key3(topic.topic_id, state.ledger_id, state.next_entry), payload)
    state.next_entry += 1
    state.entries += 1
    state.bytes += len(payload)
    if kind == MESSAGES:
        state.messages += count
        batch.counted[MESSAGES_WRITTEN] += count
        state.last_publish_ms = now_ms
    else:
        state.markers += 1
    if not state.open_txns:
        if state.max_read > position:
            why = f"its maxReadPosition {state.max_read} lies behind the next entry {position}"
            raise corrupt(HEADS, key1(topic.topic_id), why)
        state.max_read = position
    return position


def _order_flag(topic: OpenTopic[WriteBatch], publish_ms: int) -> int:
    """The flag of an entry whose publish time is behind the timestamps: IN_ORDER where the wall clock was not set back
    since the ledger's last entry.
    """
    if topic.state.next_entry == 0:
        return IN_ORDER
    previous = read(topic.view, topic.topic_id, topic.state.last_confirmed)
    is_later = previous is not None and previous.is_in_order and previous.publish_time <= publish_ms
    return IN_ORDER if is_later else 0


def _is_due_to_roll(state: TopicState, now_ms: int) -> bool:
    return state.next_entry > 0 and (
        state.next_entry >= state.ledger_entries_max
        or state.bytes - state.ledger_bytes_before >= state.ledger_bytes_max
        or now_ms - state.ledger_opened_ms >= state.ledger_age_max_ms
    )


def next_position(state: TopicState, now_ms: int) -> Position:
    """The position of an entry that would be appended now."""
    return (
        Position(state.ledger_id + 1, 0)
        if _is_due_to_roll(state, now_ms)
        else Position(state.ledger_id, state.next_entry)
    )


def roll(topic: OpenTopic[WriteBatch], now_ms: int, ledger_id: int | None = None) -> None:
    """Close the open ledger and open the next, of a given id or the following. A ledger is never closed empty."""
    state = topic.state
    assert state.next_entry > 0, "an empty ledger stays open"
    record = [
        state.next_entry, state.ledger_opened_ms, now_ms, state.ledger_messages_before,
        state.messages - state.ledger_messages_before, state.ledger_bytes_before,
        state.bytes - state.ledger_bytes_before,
    ]  # fmt: skip
    topic.view.put(LEDGERS, key2(topic.topic_id, state.ledger_id), pack(record))
    state.ledger_id = state.ledger_id + 1 if ledger_id is None else ledger_id
    state.next_entry = 0
    state.ledger_opened_ms = now_ms
    state.ledger_messages_before = state.messages
    state.ledger_bytes_before = state.bytes
    if not state.open_txns:
        state.max_read = state.last_confirmed
    faults.reach("ledger.after_roll")


class LedgerInfo:
    """A ledger of a topic: counts, and the wall times of opening and closing (None for the open ledger)."""

    __slots__ = ("bytes", "closed_ms", "entries", "ledger_id", "messages", "opened_ms")

    def __init__(
        self, ledger_id: int, entries: int, times: tuple[int, int | None], messages: int, size: int
    ) -> None:
        self.ledger_id = ledger_id
        self.entries = entries
        self.opened_ms, self.closed_ms = times
        self.messages = messages
        self.bytes = size


def closed_ledgers(view: ReadView, topic_id: int, state: TopicState) -> Iterator[LedgerInfo]:
    """Yield the closed ledgers of a topic in order.

    Raises:
        CorruptStore: the record of a closed ledger is missing.
    """
    expected = state.first_ledger
    for key, payload in view.scan(LEDGERS, key1(topic_id), key2(topic_id, expected)):
        entries, opened, closed, _, messages, _, size = unpack_first(payload, 7)
        ledger_id = int.from_bytes(key[8:], "big")
        if not is_next(expected - 1, ledger_id):
            break
        expected = ledger_id + 1
        yield LedgerInfo(ledger_id, entries, (opened, closed), messages, size)
    if not is_next(expected - 1, state.ledger_id):
        raise missing(LEDGERS, key2(topic_id, expected))


def open_ledger(state: TopicState) -> LedgerInfo:
    """The ledger that the next entry goes to, unless it rolls over first."""
    return LedgerInfo(
        state.ledger_id, state.next_entry, (state.ledger_opened_ms, None),
        state.messages - state.ledger_messages_before, state.bytes - state.ledger_bytes_before,
    )  # fmt: skip


def ledgers(view: ReadView, topic_id: int, state: TopicState) -> list[LedgerInfo]:
    """Return the ledgers of a topic in order, the open one last.

    Raises:
        CorruptStore: the record of a closed ledger is missing.
    """
    return [*closed_ledgers(view, topic_id, state), open_ledger(state)]


def read(view: ReadView, topic_id: int, position: Position) -> Entry | None:
    """The entry at a position; None where no entry was written.

    Raises:
        CorruptStore: the entry was written, and is missing.
    """
    if position[1] < 0:
        return None
    key = key3(topic_id, *position)
    payload = view.get(ENTRIES, key)
    if payload is not None:
        return Entry(key, payload)
    if written_positions.is_written(view, topic_id, position):
        raise _missing(topic_id, position)
    return None


def stored(view: ReadView, topic_id: int, position: Position) -> Entry:
    """The entry at a position that a record names.

    Raises:
        CorruptStore: the entry is missing.
    """
    entry = read(view, topic_id, position)
    if entry is None:
        raise _missing(topic_id, position)
    return entry


def _missing(topic_id: int, position: Position) -> CorruptStore:
    return missing(ENTRIES, key3(topic_id, *position))


def scan(view: ReadView, topic_id: int, after: Position, through: Position) -> Iterator[Entry]:
    """Yield the entries after one position, up to and including a second, in order: all that were written.

    Raises:
        CorruptStore: an entry does not follow the entry before, or the log ends before the last entry.
    """
    reached = after
    for entry in walk(view, topic_id, after, through):
        reached = entry.position
        yield entry
    _check_end(view, topic_id, reached, through)


def _check_end(view: ReadView, topic_id: int, reached: Position, through: Position) -> None:
    """Check that no entry was written between the last entry found and a position."""
    if reached < through:
        expected = written_positions.following(view, topic_id, reached)
        if expected is not None and expected <= through:
            why = f"the log ends at {reached[0]}:{reached[1]} before it"
            raise corrupt(ENTRIES, key3(topic_id, *expected), why)


def walk(view: ReadView, topic_id: int, after: Position, through: Position) -> Iterator[Entry]:
    """Yield the entries that are found after one position, up to and including a second, in order.

    The walk ends where the entries end. `scan` checks the end too; verify makes its own report.

    Raises:
        CorruptStore: an entry does not follow the entry before.
    """
    after = max(after, _before_first(view, topic_id))
    if through <= after:
        return
    start, previous = key3(topic_id, after[0], after[1] + 1), None
    for key, payload in view.scan(ENTRIES, key1(topic_id), start, key_through(topic_id, through)):
        entry = Entry(key, payload)
        if previous is None:
            _check_next(view, topic_id, after, entry)
        elif not _follows(previous, entry):
            raise corrupt(ENTRIES, key, f"it does not follow {previous.position}")
        previous = entry
        yield entry


def _before_first(view: ReadView, topic_id: int) -> Position:
    """The position before the first ledger: entries of trimmed ledgers may still be on disk."""
    return Position(states.load(view, topic_id).first_ledger, -1)


def _check_next(view: ReadView, topic_id: int, after: Position, entry: Entry | None) -> None:
    """Check that the first entry found after a position is the first that was written there."""
    if entry is not None and entry.position == (after[0], after[1] + 1):
        return
    expected = written_positions.following(view, topic_id, after)
    if entry is None:
        if expected is not None:
            raise _missing(topic_id, expected)
    elif entry.position != expected:
        raise corrupt(ENTRIES, entry.key, f"it does not follow {after[0]}:{after[1]}")


def _follows(previous: Entry, entry: Entry) -> bool:
    """Whether an entry is the next one: dense within a ledger, with counts that go on."""
    if entry.ledger_id == previous.ledger_id:
        is_dense = entry.entry_id == previous.entry_id + 1
    else:
        is_dense = is_next(previous.ledger_id, entry.ledger_id) and entry.entry_id == 0
    return (
        is_dense
        and entry.messages_before == previous.messages_before + previous.count
        and entry.bytes_before == previous.bytes_before + previous.size
    )


def page(
    view: ReadView, topic_id: int, after: Position, through: Position, entries_max: int = PAGE_ENTRIES
) -> list[Entry]:
    """Return the next entries, about as many as fit a page: the share that a reader takes out of one view.

    Raises:
        as `scan`
    """
    entries, room = [], PAGE_BYTES
    for entry in islice(walk(view, topic_id, after, through), min(entries_max, PAGE_ENTRIES)):
        entries.append(entry)
        room -= entry.size
        if room <= 0:
            return entries
    if len(entries) < min(entries_max, PAGE_ENTRIES):
        _check_end(view, topic_id, entries[-1].position if entries else after, through)
    return entries


def messages_through(view: ReadView, topic_id: int, state: TopicState, position: Position) -> int:
    """Count the messages of the topic up to and including a position, from the beginning, without a scan."""
    return counts_through(view, topic_id, state, position)[0]


def counts_through(view: ReadView, topic_id: int, state: TopicState, position: Position) -> tuple[int, int]:
    """Count messages and bytes of the topic up to and including a position, without a scan."""
    if position >= state.last_confirmed:
        return state.messages, state.bytes
    # Of what was trimmed, entries that are still on disk count no more.
    position = max(position, Position(state.first_ledger, -1))
    entry = read(view, topic_id, position)
    if entry is not None:
        return entry.messages_through, entry.bytes_before + entry.size
    # L:-1, or a position that was trimmed away: the next entry carries the counts before it.
    following = next_entry(view, topic_id, position)
    return (following.messages_before, following.bytes_before) if following else (state.messages, state.bytes)


def next_entry(view: ReadView, topic_id: int, position: Position) -> Entry | None:
    """The first entry after a position; None at the end of the log.

    Raises:
        CorruptStore: the first entry that was written there is missing.
    """
    position = max(position, _before_first(view, topic_id))
    record = view.first(ENTRIES, key1(topic_id), key3(topic_id, position[0], position[1] + 1))
    entry = Entry(*record) if record else None
    _check_next(view, topic_id, position, entry)
    return entry


def previous_position(view: ReadView, topic_id: int, position: Position) -> Position:
    """The position just before: in the previous ledger if need be, `L:-1` if there is none."""
    if position[1] > 0:
        return Position(position[0], position[1] - 1)
    return written_positions.preceding(view, topic_id, position) or Position(position[0], -1)


def first_entry(view: ReadView, topic_id: int) -> Entry | None:
    """The first entry that the topic still has."""
    return next_entry(view, topic_id, Position(0, -1))

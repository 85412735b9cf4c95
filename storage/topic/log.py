"""A topic's ledgers: append, roll over, read, count.

Invariant 5: positions are dense within a ledger and never reused; entries do not change; an open ledger that rolls
over is closed for good. The ledger knows nothing of transactions but the id in the header, and the one rule that
with no open transaction maxReadPosition is lastConfirmedEntry.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage import faults
from storage.disk.codec import corrupt, key1, key2, key3, key_through, pack, unpack
from storage.disk.schema import ENTRIES, LEDGERS
from storage.disk.view import ReadView, WriteBatch
from storage.limits import PAGE_BYTES, PAGE_ENTRIES
from storage.topic.entry import MESSAGES, Entry, encode
from storage.topic.state import TopicState
from storage.values.position import Position


def append(
    batch: WriteBatch,
    topic_id: int,
    head: TopicState,
    kind: int,
    count: int,
    txn: int,
    epoch: int,
    body: bytes,
) -> Position:
    """Write the next entry of a topic. The caller saves `head`.

    Args:
        count: messages in the entry; 0 for a marker.
        txn: the transaction it belongs to; 0 for none.
    """
    faults.reach("ledger.before_append")
    now_ms = batch.now_ms
    if _is_due_to_roll(head, now_ms):
        _roll(batch, topic_id, head, now_ms)
    payload = encode(kind, count, txn, epoch, now_ms, batch.timestamp(), head.messages, head.bytes, body)
    position = Position(head.ledger_id, head.next_entry)
    batch.put(ENTRIES, key3(topic_id, head.ledger_id, head.next_entry), payload)
    head.next_entry += 1
    head.entries += 1
    head.bytes += len(payload)
    if kind == MESSAGES:
        head.messages += count
        head.last_publish_ms = now_ms
    else:
        head.markers += 1
    if not head.open_txns:
        assert head.max_read <= position, "maxReadPosition never moves backwards"
        head.max_read = position
    return position


def _is_due_to_roll(head: TopicState, now_ms: int) -> bool:
    return head.next_entry > 0 and (
        head.next_entry >= head.ledger_entries_max
        or head.bytes - head.ledger_bytes_before >= head.ledger_bytes_max
        or now_ms - head.ledger_opened_ms >= head.ledger_age_max_ms
    )


def next_position(head: TopicState, now_ms: int) -> Position:
    """Where an entry that is appended now goes."""
    return (
        Position(head.ledger_id + 1, 0)
        if _is_due_to_roll(head, now_ms)
        else Position(head.ledger_id, head.next_entry)
    )


def _roll(batch: WriteBatch, topic_id: int, head: TopicState, now_ms: int) -> None:
    """Close the open ledger and open the next. A ledger is never closed empty."""
    record = [
        head.next_entry, head.ledger_opened_ms, now_ms, head.ledger_messages_before,
        head.messages - head.ledger_messages_before, head.ledger_bytes_before,
        head.bytes - head.ledger_bytes_before,
    ]  # fmt: skip
    batch.put(LEDGERS, key2(topic_id, head.ledger_id), pack(record))
    head.ledger_id += 1
    head.next_entry = 0
    head.ledger_opened_ms = now_ms
    head.ledger_messages_before = head.messages
    head.ledger_bytes_before = head.bytes
    faults.reach("ledger.after_roll")


class LedgerInfo:
    """One ledger of a topic: how many entries, messages and bytes it has, and when it was open."""

    __slots__ = ("bytes", "closed_ms", "entries", "ledger_id", "messages", "opened_ms")

    def __init__(
        self, ledger_id: int, entries: int, opened_ms: int, closed_ms: int | None, messages: int, size: int
    ) -> None:
        self.ledger_id = ledger_id
        self.entries = entries
        self.opened_ms = opened_ms
        self.closed_ms = closed_ms
        self.messages = messages
        self.bytes = size


def ledgers(view: ReadView, topic_id: int, head: TopicState) -> list[LedgerInfo]:
    """The ledgers of a topic in order, the open one last."""
    found = []
    for key, payload in view.scan(LEDGERS, key1(topic_id)):
        entries, opened, closed, _, messages, _, size = unpack(payload)[:7]
        found.append(LedgerInfo(int.from_bytes(key[8:], "big"), entries, opened, closed, messages, size))
    found.append(
        LedgerInfo(
            head.ledger_id, head.next_entry, head.ledger_opened_ms, None,
            head.messages - head.ledger_messages_before, head.bytes - head.ledger_bytes_before,
        )
    )  # fmt: skip
    return found


def read(view: ReadView, topic_id: int, position: tuple[int, int]) -> Entry | None:
    """The entry at a position, or None."""
    if position[1] < 0:
        return None
    key = key3(topic_id, *position)
    payload = view.get(ENTRIES, key)
    return None if payload is None else Entry(key, payload)


def scan(view: ReadView, topic_id: int, after: tuple[int, int], through: tuple[int, int]) -> Iterator[Entry]:
    """Entries after one position, up to and including another, in order.

    Every record has its checksum, but none says that another is missing: so each entry must follow the one before it.

    Raises:
        CorruptStore: one does not.
    """
    if through <= after:
        return
    start, previous = key3(topic_id, after[0], after[1] + 1), None
    for key, payload in view.scan(ENTRIES, key1(topic_id), start, key_through(topic_id, through)):
        entry = Entry(key, payload)
        if previous is None:
            if entry.ledger_id == after[0] and entry.entry_id != after[1] + 1:
                raise corrupt(ENTRIES, key, f"it does not follow {after[0]}:{after[1]}")
        elif not _follows(previous, entry):
            raise corrupt(ENTRIES, key, f"it does not follow {previous.position}")
        previous = entry
        yield entry


def _follows(previous: Entry, entry: Entry) -> bool:
    """Whether an entry is the next one: dense within a ledger, and its counts go on."""
    if entry.ledger_id == previous.ledger_id:
        is_next = entry.entry_id == previous.entry_id + 1
    else:
        is_next = entry.ledger_id == previous.ledger_id + 1 and entry.entry_id == 0
    return (
        is_next
        and entry.messages_before == previous.messages_before + previous.count
        and entry.bytes_before == previous.bytes_before + previous.size
    )


def page(view: ReadView, topic_id: int, after: tuple[int, int], through: tuple[int, int]) -> list[Entry]:
    """The next entries, about as many as fit a page: what a reader takes out of one view.

    Raises:
        CorruptStore: the log ends before `through`, which is a position that was written.
    """
    found, room = [], PAGE_BYTES
    for entry in scan(view, topic_id, after, through):
        found.append(entry)
        room -= entry.size
        if room <= 0 or len(found) >= PAGE_ENTRIES:
            return found
    last = found[-1].position if found else after
    if through[1] >= 0 and last < through:
        raise corrupt(ENTRIES, key3(topic_id, *through), f"the log ends at {last[0]}:{last[1]} before it")
    return found


def messages_through(view: ReadView, topic_id: int, head: TopicState, position: tuple[int, int]) -> int:
    """Messages of the topic up to and including a position, counted from its beginning, without a scan."""
    return counts_through(view, topic_id, head, position)[0]


def counts_through(
    view: ReadView, topic_id: int, head: TopicState, position: tuple[int, int]
) -> tuple[int, int]:
    """Messages and bytes of the topic up to and including a position, without a scan."""
    if position >= head.last_confirmed:
        return head.messages, head.bytes
    entry = read(view, topic_id, position)
    if entry is not None:
        return entry.messages_through, entry.bytes_before + entry.size
    # L:-1, or a position that was trimmed away: what stands before the next entry.
    following = next_entry(view, topic_id, position)
    return (following.messages_before, following.bytes_before) if following else (head.messages, head.bytes)


def next_entry(view: ReadView, topic_id: int, position: tuple[int, int]) -> Entry | None:
    """The first entry after a position."""
    found = view.first(ENTRIES, key1(topic_id), key3(topic_id, position[0], position[1] + 1))
    return Entry(*found) if found else None


def previous_position(view: ReadView, topic_id: int, position: tuple[int, int]) -> Position:
    """The position just before: in the previous ledger if need be, `L:-1` if there is none."""
    if position[1] > 0:
        return Position(position[0], position[1] - 1)
    found = view.last(ENTRIES, key1(topic_id), key3(topic_id, position[0], 0))
    if found is not None and found[0] == key3(topic_id, position[0], 0):
        found = view.last(ENTRIES, key1(topic_id), key3(topic_id, position[0] - 1, (1 << 64) - 1))
    if found is None:
        return Position(position[0], -1)
    return Position(int.from_bytes(found[0][8:16], "big"), int.from_bytes(found[0][16:], "big"))


def first_entry(view: ReadView, topic_id: int) -> Entry | None:
    """The first entry that the topic still has."""
    found = view.first(ENTRIES, key1(topic_id))
    return Entry(*found) if found else None

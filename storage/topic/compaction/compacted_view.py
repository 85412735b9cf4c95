"""The compacted view of a topic: read, write, and remove the records of earlier generations.

The view is complete at every commit: it has the newest committed message of each key up to the horizon. A step of
compaction (`storage/txn/compaction.py`) moves the horizon and takes out what newer messages replace, in one batch. So a
reader that goes through the view page by page, and then through the log from the horizon on, has met at the end a
message of every key that is not older than the newest one at the begin, whatever was compacted meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.codec import U64X2, U64X3, key1, key2, missing
from storage.disk.schema import COMPACTED, COMPACTED_KEYS, ENTRIES, TOMBSTONES
from storage.disk.view import ReadView, WriteBatch
from storage.limits import PAGE_BYTES
from storage.topic import log, state as states
from storage.topic.compaction import compaction_state
from storage.topic.compaction.compacted_entry import (
    KEY,
    PLACE,
    CompactedEntry,
    Gathering,
    Place,
    message_key,
    position_of,
    standing,
)
from storage.topic.compaction.compaction_state import CompactionState
from storage.topic.entry import Entry
from storage.values.position import Position

PAGE_MESSAGES = 5000
_QUEUED_AT = U64X3.size
_LAST_INDEX = (1 << 32) - 1


def _key_from(topic_id: int, generation: int, at: Position) -> bytes:
    """The first key of the messages at a position; `L:-1` stands before the ledger."""
    return KEY.pack(topic_id, generation, at[0], max(at[1], 0), 0)


def entries(
    view: ReadView, topic_id: int, state: CompactionState, after: Position, through: Position
) -> Iterator[CompactedEntry]:
    """Yield the entries of the view after one position, up to and including a second, entry by entry in order."""
    prefix, gathering = key2(topic_id, state.generation), None
    start = _key_from(topic_id, state.generation, Position(after[0], after[1] + 1))
    stop = (
        KEY.pack(topic_id, state.generation, through[0], through[1], _LAST_INDEX) if through[1] >= 0 else None
    )
    if stop is None:
        stop = _key_from(topic_id, state.generation, Position(through[0], 0))[:-12]
    for key, payload in view.scan(COMPACTED, prefix, start, stop):
        position = position_of(key)
        if gathering is not None and gathering.position != position:
            yield gathering.entry()
            gathering = None
        if gathering is None:
            gathering = Gathering(position)
        gathering.gather(key, payload)
    if gathering is not None:
        yield gathering.entry()


def page(
    view: ReadView, topic_id: int, state: CompactionState, after: Position, through: Position
) -> list[CompactedEntry]:
    """Return the next entries of the view, about as many as fit a page."""
    taken, room, size = list[CompactedEntry](), PAGE_MESSAGES, PAGE_BYTES
    for entry in entries(view, topic_id, state, after, through):
        taken.append(entry)
        room, size = room - entry.count, size - entry.size
        if room <= 0 or size <= 0:
            break
    return taken


def read(view: ReadView, topic_id: int, at: Position) -> CompactedEntry | None:
    """The messages of the view from the entry at a position; None if there are none."""
    state = compaction_state.load(view, topic_id)
    if state is None or state.horizon is None or at > state.horizon or at[1] < 0:
        return None
    return next(entries(view, topic_id, state, Position(at[0], at[1] - 1), at), None)


def first_after(view: ReadView, topic_id: int, at: Position) -> Position | None:
    """The first position after `at` at which the view has a message; None at the horizon."""
    state = compaction_state.load(view, topic_id)
    if state is None or state.horizon is None:
        return None
    start = _key_from(topic_id, state.generation, Position(at[0], at[1] + 1))
    record = view.first(COMPACTED, key2(topic_id, state.generation), start)
    position = None if record is None else position_of(record[0])
    return None if position is None or position > state.horizon else position


def before_first(view: ReadView, topic_id: int) -> Position:
    """The position before the first message of view and log: where reading compacted begins."""
    begin = Position(states.load(view, topic_id).first_ledger, -1)
    first = first_after(view, topic_id, Position(0, -1))
    return begin if first is None else min(begin, Position(first[0], first[1] - 1))


def read_anywhere(view: ReadView, topic_id: int, at: Position) -> Entry | None:
    """The entry at a position of the log; where the log was trimmed, the messages in the view. None without either.

    Raises:
        CorruptStore: the entry was written, is not trimmed, and is missing.
    """
    if at[0] >= states.load(view, topic_id).first_ledger:
        return log.read(view, topic_id, at)
    entry = read(view, topic_id, at)
    return None if entry is None else entry.expanded()


def stored_anywhere(view: ReadView, topic_id: int, at: Position) -> Entry:
    """As `read_anywhere`, of a position that a record names.

    Raises:
        CorruptStore: there is no such entry.
    """
    entry = read_anywhere(view, topic_id, at)
    if entry is None:
        raise missing(ENTRIES, U64X3.pack(topic_id, *at))
    return entry


# Writing


def put(batch: WriteBatch, topic_id: int, state: CompactionState, place: Place, payload: bytes) -> None:
    """Put a message into the view."""
    facts = standing(payload)
    batch.put(COMPACTED, KEY.pack(topic_id, state.generation, *place), payload)
    state.messages += 1
    state.bytes += facts.bytes
    if facts.is_tombstone:
        batch.put(TOMBSTONES, _queued(topic_id, state, facts.entered_ms, place), b"")
        state.tombstones += 1


def take_out(batch: WriteBatch, topic_id: int, state: CompactionState, place: Place) -> None:
    """Take a message out of the view, for a newer message of the key.

    Raises:
        CorruptStore: the view does not have the message.
    """
    key = KEY.pack(topic_id, state.generation, *place)
    payload = batch.get(COMPACTED, key)
    if payload is None:
        raise missing(COMPACTED, key)
    facts = standing(payload)
    if facts.is_tombstone:
        batch.delete(TOMBSTONES, _queued(topic_id, state, facts.entered_ms, place))
        state.tombstones -= 1
    state.messages -= 1
    state.bytes -= facts.bytes
    batch.delete(COMPACTED, key)


def key_at(view: ReadView, topic_id: int, state: CompactionState, place: Place) -> bytes:
    """The key of a message of the view that has one.

    Raises:
        CorruptStore: the view does not have the message.
    """
    key = KEY.pack(topic_id, state.generation, *place)
    payload = view.get(COMPACTED, key)
    message = None if payload is None else message_key(key, payload)
    if message is None:
        raise missing(COMPACTED, key)
    return message


def place_of(view: ReadView, topic_id: int, state: CompactionState, digest: bytes) -> Place | None:
    """The message that the view has of a key, by the key's digest."""
    payload = view.get(COMPACTED_KEYS, key2(topic_id, state.generation) + digest)
    return None if payload is None else PLACE.unpack(payload)


def put_place(batch: WriteBatch, topic_id: int, state: CompactionState, digest: bytes, place: Place) -> None:
    """Note the message that the view has of a key."""
    batch.put(COMPACTED_KEYS, key2(topic_id, state.generation) + digest, PLACE.pack(*place))


def delete_place(batch: WriteBatch, topic_id: int, state: CompactionState, digest: bytes) -> None:
    """Forget a key of which the view has nothing."""
    batch.delete(COMPACTED_KEYS, key2(topic_id, state.generation) + digest)


def _queued(topic_id: int, state: CompactionState, entered_ms: int, place: Place) -> bytes:
    return U64X3.pack(topic_id, state.generation, entered_ms) + PLACE.pack(*place)


def tombstones_entered(
    view: ReadView, topic_id: int, state: CompactionState, through_ms: int, limit: int
) -> list[Place]:
    """The tombstones that entered the view at or before a time, the oldest first."""
    due: list[Place] = []
    if not state.tombstones:
        return due
    for key in view.keys(TOMBSTONES, key2(topic_id, state.generation)):
        if len(due) >= limit or int.from_bytes(key[16:_QUEUED_AT], "big") > through_ms:
            break
        due.append(PLACE.unpack(key[_QUEUED_AT:]))
    return due


def purge_step(batch: WriteBatch, topic_id: int, limit: int) -> int:
    """Remove at most `limit` records of earlier generations; return the number removed."""
    state = compaction_state.load(batch, topic_id)
    if state is None or state.generation == 1:
        return 0
    removed = 0
    for database in (COMPACTED, COMPACTED_KEYS, TOMBSTONES):
        while removed < limit and (record := batch.first(database, key1(topic_id))) is not None:
            generation = U64X2.unpack(record[0][:16])[1]
            if generation >= state.generation:
                break
            removed += batch.delete_prefix(database, key2(topic_id, generation), limit - removed)
    return removed


def has_remains(view: ReadView, topic_id: int) -> bool:
    """Whether records of earlier generations are left."""
    state = compaction_state.load(view, topic_id)
    if state is None or state.generation == 1:
        return False
    records = (view.first(database, key1(topic_id)) for database in (COMPACTED, COMPACTED_KEYS, TOMBSTONES))
    return any(
        record is not None and U64X2.unpack(record[0][:16])[1] < state.generation for record in records
    )

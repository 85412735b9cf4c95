"""The catalogue of topics: create, find, list, delete.

A topic's id is new with every creation: the same name created again is a new topic (a new *incarnation*), but ledger
ids and epoch go on counting. Deleting removes the name at once; the large rest is purged afterwards in bounded steps,
which any process may finish.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from storage import faults
from storage.actions import Action, Hint
from storage.disk.codec import corrupt, key1, pack, unpack_first
from storage.disk.schema import (
    ABORTED,
    ABORTED_BLOCKS,
    COMPACTED,
    COMPACTED_KEYS,
    ENTRIES,
    HEADS,
    LEDGERS,
    OWNERS,
    PRODUCERS,
    PURGES,
    SEQUENCES,
    SESSION_INDEX,
    SUBSCRIPTIONS,
    TABLES,
    TIMED,
    TIMED_BLOCKS,
    TOMBSTONES,
    TOPICS,
    TXN_RUNS,
)
from storage.disk.view import ReadView, WriteBatch
from storage.errors import AlreadyExists, InvalidValue, TopicNotFound
from storage.limits import LEDGER_AGE_MAX_MS, LEDGER_BYTES_MAX, LEDGER_ENTRIES_MAX, PURGE_STEP_RECORDS
from storage.topic import descent, former_topics, retention, state as states
from storage.topic.compaction import compaction_state
from storage.topic.state import TopicState
from storage.values.names import full_topic_name, short_topic_name

PURGED = (
    ENTRIES, LEDGERS, OWNERS, SEQUENCES, TXN_RUNS, ABORTED, ABORTED_BLOCKS, COMPACTED, COMPACTED_KEYS, TOMBSTONES,
    TIMED, TIMED_BLOCKS,
)  # fmt: skip
"""Records of a deleted topic that are removed in steps."""


class Topic:
    """A topic in the catalogue."""

    __slots__ = ("created_ms", "full_name", "name", "properties", "topic_id")

    def __init__(self, full_name: str, topic_id: int, created_ms: int, properties: dict[str, str]) -> None:
        self.full_name = full_name
        self.name = short_topic_name(full_name)
        self.topic_id = topic_id
        self.created_ms = created_ms
        self.properties = properties


class LedgerLimits:
    """The limits at which a topic's ledger rolls over: entries, bytes, age in ms."""

    __slots__ = ("age_max_ms", "bytes_max", "entries_max")

    def __init__(
        self, entries_max: int | None = None, bytes_max: int | None = None, age_max_ms: int | None = None
    ) -> None:
        self.entries_max = LEDGER_ENTRIES_MAX if entries_max is None else entries_max
        self.bytes_max = LEDGER_BYTES_MAX if bytes_max is None else bytes_max
        self.age_max_ms = LEDGER_AGE_MAX_MS if age_max_ms is None else age_max_ms
        for name, value in (
            ("entries", self.entries_max),
            ("bytes", self.bytes_max),
            ("age", self.age_max_ms),
        ):
            if type(value) is not int or not 1 <= value < 1 << 62:
                raise InvalidValue(f"a ledger's limit of {name} must be at least 1, not {value!r}")


def find(view: ReadView, name: str) -> Topic | None:
    """Find the topic of a name, full or short, or None."""
    full = full_topic_name(name)
    payload = view.get(TOPICS, full.encode("ascii"))
    if payload is None:
        return None
    topic_id, created_ms, properties = unpack_first(payload, 3)
    return Topic(full, topic_id, created_ms, properties) if topic_id else None


def get(view: ReadView, name: str) -> Topic:
    """Find the topic of a name.

    Raises:
        TopicNotFound: with near names if there are any.
    """
    topic = find(view, name)
    if topic is None:
        raise _not_found(view, name)
    return topic


def _not_found(view: ReadView, name: str) -> TopicNotFound:
    from difflib import get_close_matches

    short, known = short_topic_name(name), list(every(view))
    near = get_close_matches(short, [topic.name for topic in known], 3)
    key = short.encode("ascii")
    owners = [topic.name for topic in known if view.has(SUBSCRIPTIONS, key1(topic.topic_id) + key)]
    if owners:
        hint = f"{short} is a subscription of {', '.join(owners[:3])}: name the topic, and the subscription after it."
    elif view.has(TABLES, key):
        hint = Hint("{} is a table: `{}`.", short, Action("store.table", short))
    elif near:
        hint = f"Did you mean {', '.join(near)}?"
    else:
        hint = Hint("Create it with `{}`.", Action("store.create_topic", name))
    return TopicNotFound(f"there is no topic {name}", hint=hint, topic=full_topic_name(name))


def every(view: ReadView) -> Iterator[Topic]:
    """Yield all topics by name."""
    for key, payload in view.scan(TOPICS):
        topic_id, created_ms, properties = unpack_first(payload, 3)
        if topic_id:
            yield Topic(key.decode("ascii"), topic_id, created_ms, properties)


def exists(view: ReadView, topic_id: int) -> bool:
    """Whether the topic of an id was not deleted."""
    return view.has(HEADS, key1(topic_id))


def create(
    batch: WriteBatch, name: str, limits: LedgerLimits, properties: dict[str, str] | None = None
) -> Topic:
    """Create an empty topic.

    Raises:
        AlreadyExists, InvalidName
    """
    full = full_topic_name(name)
    key = full.encode("ascii")
    ledger_id, epoch = former_topics.first_ids(batch)
    payload = batch.get(TOPICS, key)
    if payload is not None:
        topic_id, _, _, former_ledger_id, epoch = unpack_first(payload, 5)
        # In a new life of the store every topic begins behind the ledgers of the life before.
        ledger_id = max(ledger_id, former_ledger_id)
        if topic_id:
            raise AlreadyExists(f"there is a topic {short_topic_name(full)} already", topic=full)
    batch.superblock.last_topic += 1
    topic = Topic(full, batch.superblock.last_topic, batch.now_ms, properties or {})
    batch.put(TOPICS, key, pack([topic.topic_id, topic.created_ms, topic.properties, ledger_id, epoch]))
    first_state = TopicState.new(
        ledger_id, epoch, topic.created_ms, (limits.entries_max, limits.bytes_max, limits.age_max_ms)
    )  # fmt: skip
    states.create(batch, topic.topic_id, first_state)
    return topic


def find_or_create(batch: WriteBatch, name: str) -> Topic:
    """Find the topic of a name, or create one with the usual limits, which a refusal of the batch undoes.

    Raises:
        InvalidName
    """
    topic = find(batch, name)
    if topic is None:
        tombstone = batch.get(TOPICS, full_topic_name(name).encode("ascii"))
        before = None if tombstone is None else bytes(tombstone)
        topic = create(batch, name, LedgerLimits())
        batch.undo_if_refused(partial(_take_back, batch, topic, before))
    return topic


def _take_back(batch: WriteBatch, topic: Topic, before: bytes | None) -> None:
    """Undo the creation of a topic in the batch that has created the topic, with the sessions of its producers."""
    assert topic.topic_id == batch.superblock.last_topic, "no topic was created since"
    key = topic.full_name.encode("ascii")
    if before is None:
        batch.delete(TOPICS, key)
    else:
        batch.put(TOPICS, key, before)
    states.delete(batch, topic.topic_id)
    for database in (PRODUCERS, SESSION_INDEX, OWNERS):
        batch.delete_prefix(database, key1(topic.topic_id))
    batch.superblock.last_topic -= 1


def unborn(name: str) -> Topic:
    """A topic to be created by the first message; it has no number yet.

    Raises:
        InvalidName
    """
    return Topic(full_topic_name(name), 0, 0, {})


def delete(batch: WriteBatch, topic: Topic) -> None:
    """Remove name and state; `purge_step` removes the rest. Nothing may hold the topic any more."""
    state = states.load(batch, topic.topic_id)
    if state.open_txns:
        why = f"it counts {state.open_txns} open transactions, and none is found"
        raise corrupt(HEADS, key1(topic.topic_id), why)
    tombstone = [0, batch.now_ms, {}, state.ledger_id + 1, state.epoch]
    batch.put(TOPICS, topic.full_name.encode("ascii"), pack(tombstone))
    states.delete(batch, topic.topic_id)
    retention.forget(batch, topic.topic_id)
    descent.forget(batch, topic.topic_id)
    for database in (PRODUCERS, SESSION_INDEX):
        batch.delete_prefix(database, key1(topic.topic_id))
    compaction_state.forget(batch, topic.topic_id)
    batch.put(PURGES, key1(topic.topic_id), b"")


def purged_ids(view: ReadView) -> Iterator[int]:
    """Yield the ids of deleted topics with remains."""
    for key in view.keys(PURGES):
        if key >= key1(1 << 63):
            return  # of subscriptions
        yield int.from_bytes(key, "big")


def purge_step(batch: WriteBatch) -> bool:
    """Remove some records of deleted topics; whether more are left to remove."""
    topic_id = next(purged_ids(batch), None)
    if topic_id is None:
        return False
    key, room = key1(topic_id), PURGE_STEP_RECORDS
    for database in PURGED:
        room -= batch.delete_prefix(database, key, room)
        if room <= 0:
            break
    else:
        batch.delete(PURGES, key)
    faults.reach("topic.between_purge_steps")
    return True

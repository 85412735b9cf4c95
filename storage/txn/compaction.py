"""Compaction: keep the newest committed message of each key, in steps that are one batch each.

A step reads a stretch of the log behind the horizon, up to maxReadPosition at most, so that every transaction in it is
decided; aborted messages are left out. For each key of the stretch the newest message goes into the view and replaces
the older message in the view; messages without a key are kept. Then the horizon moves. All of it is one batch: after a
kill the view is as before the step or as after it, and any process goes on from there. Two processes that compact a
topic do each other's work: a step that finds the horizon moved is prepared anew.

A step may end inside an entry of many messages (`partial`). The messages then in the view lie behind the horizon, where
no reader of the view looks: readers take the log from the horizon on.

A tombstone replaces the value of its key at once. It is removed itself once it has been in the view for the tombstone
retention, so that a reader which saw the value before has that time to see the tombstone. No tombstone goes while wall
clock and boot clock disagree. Invariants 2, 5 and 22. Decision 0043 has the rejected ways.
"""

from __future__ import annotations

from storage import faults
from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.disk.view import ReadView, WriteBatch
from storage.disk.wall_clock import clocks_agree
from storage.limits import (
    COMPACTION_ON_THE_WAY_NS,
    COMPACTION_STEP_BYTES,
    COMPACTION_STEP_MESSAGES,
    TRIM_STEP_ENTRIES,
)
from storage.topic import catalogue as topics, log
from storage.topic.compaction import compacted_view, compaction_state
from storage.topic.compaction.compacted_entry import Place, encode, key_digest
from storage.topic.compaction.compaction_state import CompactionState
from storage.topic.entry import MESSAGES, Entry
from storage.topic.open_topic import OpenTopic
from storage.txn.aborted import AbortedSet
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position

_BEFORE_ALL = Position(0, -1)


class PreparedStep(NamedTuple):
    """A prepared step: messages for the view, and the place up to which the log was read.

    Attributes:
        begin: the place at which the view must be for the step to fit; see `CompactionState.begin`.
        rows: digest of the key (None without a key), place and record of each message, in the order of the log.
        horizon, partial: the place reached.
        examined: messages read, aborted ones not counted.
    """

    begin: tuple[int, Position | None, int]
    rows: list[tuple[bytes | None, Place, bytes]]
    horizon: Position
    partial: int
    examined: int


class CompactionEffects(NamedTuple):
    """The effects of compaction: messages and bytes of the log examined, messages and tombstones removed."""

    examined: int
    replaced: int
    tombstones_removed: int

    def plus(self, other: CompactionEffects) -> CompactionEffects:
        """The sum of both."""
        return CompactionEffects(*map(sum, zip(self, other, strict=True)))


NOTHING = CompactionEffects(0, 0, 0)


def bytes_behind(topic: OpenTopic[ReadView], state: CompactionState | None) -> int:
    """Bytes of the decided log behind the horizon."""
    view, topic_id, log_state = topic.view, topic.topic_id, topic.state
    done = _BEFORE_ALL if state is None or state.horizon is None else state.horizon
    through = log.counts_through(view, topic_id, log_state, log_state.max_read)[1]
    return max(through - log.counts_through(view, topic_id, log_state, done)[1], 0)


def is_due(topic: OpenTopic[ReadView], state: CompactionState | None) -> bool:
    """Whether more than the topic's threshold lies behind the horizon."""
    return state is not None and state.threshold is not None and bytes_behind(topic, state) > state.threshold


def prepare(
    topic: OpenTopic[ReadView],
    state: CompactionState,
    through: Position,
    aborted: AbortedSet,
    page: list[Entry],
) -> PreparedStep | None:
    """Read the next stretch of the log; None where the view has everything up to `through`.

    A first step is there also where nothing is to be read: from then on the topic keeps what is not compacted yet.

    Args:
        aborted: loaded by nothing but views and batches that were committed.
        page: entries read ahead by an earlier call, of the same `aborted`; the next call goes on with what is left.
    """
    view, begin, skip = topic.view, state.begin, state.partial
    horizon = state.horizon if state.horizon is not None else Position(topic.state.first_ledger, -1)
    through = min(through, topic.state.max_read)
    page[:] = [entry for entry in page if entry.position > horizon]
    if not page:
        page[:] = log.page(view, topic.topic_id, horizon, through) if horizon < through else ()
        if not page:
            return None if state.has_view else PreparedStep(begin, [], through, 0, 0)
        aborted.load(topic, horizon, page[-1].position)
    gathered = _Gathered()
    for entry in page:
        if entry.kind == MESSAGES and entry.txn not in aborted.ids:
            skip = gathered.take_in(entry, skip)
            if skip:
                break
        horizon, skip = entry.position, 0
        if gathered.is_full:
            break
    return PreparedStep(begin, gathered.rows(view.clock.wall_ms()), horizon, skip, gathered.examined)


class _Gathered:
    """The newest message of each key in a stretch, and the messages without a key."""

    __slots__ = ("_newest", "_room", "examined")

    def __init__(self) -> None:
        self._newest: dict[object, tuple[Entry, int]] = {}
        self._room = COMPACTION_STEP_BYTES
        self.examined = 0

    @property
    def is_full(self) -> bool:
        return self._room <= 0 or len(self._newest) >= COMPACTION_STEP_MESSAGES

    def take_in(self, entry: Entry, start: int) -> int:
        """Add the messages of an entry from an index on; return the index to go on at, 0 after the whole entry."""
        keys, newest = entry.keys, self._newest
        while start < entry.count:
            if self.is_full:
                return start
            stop = min(start + COMPACTION_STEP_MESSAGES, entry.count)
            indexes = range(start, stop)
            if keys is None:
                newest.update(((entry.position, index), (entry, index)) for index in indexes)
            else:
                part = keys[start:stop]
                for key, index in dict(zip(part, indexes, strict=True)).items():
                    if key is not None:
                        newest[key] = entry, index
                if None in part:
                    plain = (index for key, index in zip(part, indexes, strict=True) if key is None)
                    newest.update(((entry.position, index), (entry, index)) for index in plain)
            self.examined += stop - start
            start = stop
        self._room -= entry.size
        return 0

    def rows(self, now_ms: int) -> list[tuple[bytes | None, Place, bytes]]:
        """The rows of a step, in the order of the log."""
        rows = [
            (
                key_digest(key) if isinstance(key, bytes) else None,
                (entry.ledger_id, entry.entry_id, index),
                encode(entry, index, now_ms),
            )
            for key, (entry, index) in self._newest.items()
        ]
        return sorted(rows, key=lambda row: row[1])


def apply(batch: WriteBatch, topic_id: int, stretch: PreparedStep) -> CompactionEffects:
    """Write a prepared step, unless the view has moved since."""
    state = compaction_state.load_or_add(batch, topic_id)
    if state.begin != stretch.begin:
        return NOTHING
    replaced = 0
    for digest, place, payload in stretch.rows:
        if digest is not None:
            before = compacted_view.place_of(batch, topic_id, state, digest)
            if before is not None:
                compacted_view.take_out(batch, topic_id, state, before)
                replaced += 1
            compacted_view.put_place(batch, topic_id, state, digest, place)
        compacted_view.put(batch, topic_id, state, place, payload)
    faults.reach("topic.half_compacted")
    state.horizon, state.partial = stretch.horizon, stretch.partial
    state.compacted_ms = batch.now_ms
    return CompactionEffects(stretch.examined, replaced, 0)


def expire_tombstones(batch: WriteBatch, topic_id: int, limit: int = COMPACTION_STEP_MESSAGES) -> int:
    """Remove tombstones that have been in the view for the tombstone retention, at most so many; their number."""
    state = compaction_state.load(batch, topic_id)
    if state is None or not state.tombstones or not clocks_agree(batch):
        return 0
    due = compacted_view.tombstones_entered(batch, topic_id, state, batch.now_ms - state.tombstone_ms, limit)
    for place in due:
        key = compacted_view.key_at(batch, topic_id, state, place)
        compacted_view.take_out(batch, topic_id, state, place)
        compacted_view.delete_place(batch, topic_id, state, key_digest(key))
    return len(due)


class Compaction:
    """The compaction of one topic by a caller that has time for it: prepared in views, each step a batch."""

    def __init__(self, connection: Connection, topic_id: int) -> None:
        self._connection = connection
        self._topic_id = topic_id
        self._aborted = AbortedSet()
        self._page: list[Entry] = []

    def compact(self) -> CompactionEffects:
        """Compact up to the present maxReadPosition; remove tombstones that are due, and remains."""
        total, through = NOTHING, None
        while True:
            stretch, through = self._prepare(through)
            if stretch is None:
                break
            total = total.plus(self._write(stretch))
            faults.reach("topic.between_compaction_steps")
        while removed := self._connection.write(self._expire, share=ReserveShare.WHOLE):
            total = total.plus(CompactionEffects(0, 0, removed))
        while self._connection.write(self._purge, share=ReserveShare.WHOLE):
            pass
        return total

    def _prepare(self, through: Position | None) -> tuple[PreparedStep | None, Position]:
        """The next step, and the end of the run, which the first call fixes."""
        with self._connection.view() as view:
            if not topics.exists(view, self._topic_id):
                return None, through or _BEFORE_ALL
            topic = OpenTopic.load(view, self._topic_id)
            state = compaction_state.load(view, self._topic_id) or CompactionState()
            through = through or topic.state.max_read
            return prepare(topic, state, through, self._aborted, self._page), through

    def _write(self, stretch: PreparedStep) -> CompactionEffects:
        def change(batch: WriteBatch) -> CompactionEffects:
            return apply(batch, self._topic_id, stretch) if topics.exists(batch, self._topic_id) else NOTHING

        return self._connection.write(change)

    def _expire(self, batch: WriteBatch) -> int:
        return expire_tombstones(batch, self._topic_id)

    def _purge(self, batch: WriteBatch) -> int:
        return compacted_view.purge_step(batch, self._topic_id, TRIM_STEP_ENTRIES)


class Compactor:
    """Compacts topics beyond their threshold on the way of other writes, one topic at a time, in turn."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def compact_some(self, batch: WriteBatch) -> bool:
        """Compact for a few milliseconds; whether there is more to do."""
        for topic_id in self._turn(batch):
            self._last = topic_id
            if self._compact(batch, topic_id):
                self._last = topic_id - 1
                return True
        return False

    def _turn(self, view: ReadView) -> list[int]:
        ids = list(compaction_state.topic_ids(view))
        return [topic_id for topic_id in ids if topic_id > self._last] + [
            topic_id for topic_id in ids if topic_id <= self._last
        ]

    def _compact(self, batch: WriteBatch, topic_id: int) -> bool:
        until_ns = batch.clock.boot_ns() + COMPACTION_ON_THE_WAY_NS
        topic, state = OpenTopic.load(batch, topic_id), compaction_state.load(batch, topic_id)
        # Not shared between batches: one that is dropped may have aborted transactions that commit later.
        aborted, page = AbortedSet(), list[Entry]()
        while state is not None and is_due(topic, state):
            stretch = prepare(topic, state, topic.state.max_read, aborted, page)
            if stretch is None:
                break
            apply(batch, topic_id, stretch)
            if batch.clock.boot_ns() >= until_ns:
                return True
        return bool(
            expire_tombstones(batch, topic_id)
            or compacted_view.purge_step(batch, topic_id, TRIM_STEP_ENTRIES)
        )

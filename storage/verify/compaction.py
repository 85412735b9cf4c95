"""Check the compacted view of a topic against its counters, its indexes and the log: invariants 2, 5, 22 and 23."""

from __future__ import annotations

from storage.disk.codec import U64X2, U64X3, key1, key2
from storage.disk.schema import COMPACTED, COMPACTED_KEYS, TOMBSTONES
from storage.disk.view import ReadView
from storage.topic import log
from storage.topic.catalogue import Topic
from storage.topic.compaction import compaction_state
from storage.topic.compaction.compacted_entry import (
    KEY,
    PLACE,
    Place,
    encode,
    key_digest,
    message_key,
    standing,
)
from storage.topic.compaction.compaction_state import CompactionState
from storage.topic.entry import MESSAGES
from storage.topic.state import TopicState
from storage.txn import aborted
from storage.values.position import Position
from storage.verify.problem import Report

_ENTERED = slice(1, 9)
"""The bytes of a record that the log does not have: the time of entering the view."""


def check_compaction(view: ReadView, topic: Topic, topic_state: TopicState, report: Report) -> None:
    """Check the view of one topic, reading the log up to the horizon."""
    state = compaction_state.load(view, topic.topic_id)
    _check_generations(view, topic, state, report)
    if state is not None:
        CompactionCheck(view, topic, topic_state, state, report).check()


def _check_generations(view: ReadView, topic: Topic, state: CompactionState | None, report: Report) -> None:
    newest = 0 if state is None else state.generation
    for database in (COMPACTED, COMPACTED_KEYS, TOMBSTONES):
        beyond = view.first(database, key1(topic.topic_id), key2(topic.topic_id, newest + 1))
        if beyond is not None:
            generation = U64X2.unpack(beyond[0][:16])[1]
            report(
                6,
                topic.name,
                f"has records in {database.name} of generation {generation}, which is not begun",
            )


class CompactionCheck:
    """The check of one view."""

    def __init__(
        self, view: ReadView, topic: Topic, topic_state: TopicState, state: CompactionState, report: Report
    ) -> None:
        self._view = view
        self._topic_id = topic.topic_id
        self._topic_state = topic_state
        self._state = state
        self._prefix = key2(topic.topic_id, state.generation)
        self._label = f"{topic.name} compacted view"
        self._report = report
        self._places: dict[bytes, Place] = {}
        self._expected: dict[bytes, Place] = {}

    def check(self) -> None:
        """Check counters, indexes and, where the log is still there, every message."""
        horizon = self._state.horizon
        if horizon is not None and horizon > self._topic_state.max_read:
            self._problem(
                2, f"ends at {horizon}, beyond maxReadPosition {self._topic_state.max_read_position}"
            )
        self._check_index()
        self._check_log()
        self._check_messages()

    def _problem(self, invariant: int, message: str) -> None:
        self._report(invariant, self._label, message)

    def _check_index(self) -> None:
        for key, payload in self._view.scan(COMPACTED_KEYS, self._prefix):
            place: Place = PLACE.unpack(payload)
            self._places[bytes(key[16:])] = place

    def _is_inside(self, place: Place) -> bool:
        horizon, partial = self._state.horizon, self._state.partial
        position = Position(*place[:2])
        if horizon is not None and position <= horizon:
            return True
        following = log.next_entry(self._view, self._topic_id, horizon or Position(0, -1))
        return following is not None and position == following.position and place[2] < partial

    def _check_log(self) -> None:
        """Find the newest committed message of each key, and compare it with the view."""
        view, state = self._view, self._state
        dropped = {row[0] for row in aborted.rows(view, self._topic_id)}
        through = state.horizon or Position(self._topic_state.first_ledger, -1)
        if state.partial:
            following = log.next_entry(view, self._topic_id, through)
            through = through if following is None else following.position
        tombstones = set[bytes]()
        for entry in log.scan(view, self._topic_id, Position(0, -1), through):
            if entry.kind != MESSAGES or entry.txn in dropped:
                continue
            stop = entry.count
            if state.horizon is None or entry.position > state.horizon:
                stop = min(stop, state.partial)
            for index in range(stop):
                key, place = entry.keys[index] if entry.keys else None, (*entry.position, index)
                if key is None:
                    self._check_same(place, encode(entry, index, 0))
                    continue
                digest = key_digest(key)
                self._expected[digest] = place
                (tombstones.add if entry.values[index] is None else tombstones.discard)(digest)
                if self._places.get(digest) == place:
                    self._check_same(place, encode(entry, index, 0))
        for digest, place in self._expected.items():
            has = self._places.get(digest)
            if has != place and not (has is None and digest in tombstones):
                self._problem(22, f"has {has} for a key whose newest message is {place}")

    def _check_same(self, place: Place, original: bytes) -> None:
        stored = self._view.get(COMPACTED, KEY.pack(self._topic_id, self._state.generation, *place))
        if stored is None:
            self._problem(22, f"does not have the message at {place}")
            return
        copy = bytearray(stored)
        copy[_ENTERED] = original[_ENTERED]
        if copy != original:
            self._problem(5, f"has another message at {place} than the log")

    def _check_messages(self) -> None:
        """Recount the view, and compare each message with the indexes."""
        messages = size = keyed = 0
        tombstones = set[bytes]()
        for key, payload in self._view.scan(COMPACTED, self._prefix):
            place: Place = KEY.unpack(key)[2:]
            facts, message = standing(payload), message_key(key, payload)
            messages, size = messages + 1, size + facts.bytes
            if not self._is_inside(place):
                self._problem(2, f"has a message at {place}, beyond its end")
            if message is not None:
                keyed += 1
                if self._places.get(key_digest(message)) != place:
                    self._problem(22, f"has a second message of a key, at {place}")
            if facts.is_tombstone:
                tombstones.add(
                    U64X3.pack(self._topic_id, self._state.generation, facts.entered_ms) + PLACE.pack(*place)
                )
        queued = set(map(bytes, self._view.keys(TOMBSTONES, self._prefix)))
        if queued != tombstones:
            self._problem(23, f"queues {len(queued)} tombstones; there are {len(tombstones)}")
        if keyed != len(self._places):
            self._problem(23, f"indexes {len(self._places)} keys; there are {keyed}")
        state = self._state
        if (state.messages, state.bytes, state.tombstones) != (messages, size, len(tombstones)):
            self._problem(23, f"counts {state.messages} messages, {state.bytes} bytes and {state.tombstones} "
                              f"tombstones; there are {messages}, {size} and {len(tombstones)}")  # fmt: skip

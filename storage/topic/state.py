"""The state of a topic: all that an append changes, in one record, so that an append writes one record more.

Invariant 1: max_read never moves backwards, and equals its formula. Invariant 23: every counter equals a recount.
"""

from __future__ import annotations

import builtins
from struct import Struct

from storage.actions import Action, Hint
from storage.disk.codec import key1, missing, unpack
from storage.disk.schema import HEADS, TOPICS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import TopicNotFound
from storage.values.position import Position, as_position

_STATE = Struct(">QqQQQQQQQqqqQQQQQQQQQQQQQQQ")


class TopicState:
    """Counters and positions of one topic.

    Attributes:
        ledger_id, next_entry: the position of the next entry, unless the ledger rolls over first.
        ledger_opened_ms, ledger_messages_before, ledger_bytes_before: of the open ledger.
        messages, bytes, entries, markers: totals since the topic was created; markers count as entries, not messages.
        epoch: the topic epoch; -1 as long as the topic had no exclusive owner.
        max_read: maxReadPosition.
        open_txns, uncommitted: the number of open transactions with messages on the topic, and of these messages.
        aborted_txns, aborted_messages: totals of the aborted set.
        aborted_segment: the number of the open segment of the aborted set.
        first_ledger, messages_trimmed, bytes_trimmed: the first ledger that trimming left, and the totals of the rest.
        ledger_entries_max, ledger_bytes_max, ledger_age_max_ms: the limits at which the ledger rolls over.
        owner_session: the session that owns the topic, or owned the topic last and may resume; 0 once that session was
            closed or fenced, or a publish through a different session followed.
        publish_session: the session of the last plain or transactional publish; 0 for a publish without a session.
        session_changes: grows with the end of every session, so that a producer need not look up its session again.
    """

    __slots__ = (
        "aborted_messages", "aborted_segment", "aborted_txns", "bytes", "bytes_trimmed", "entries", "epoch",
        "first_ledger", "last_publish_ms", "ledger_age_max_ms", "ledger_bytes_before", "ledger_bytes_max",
        "ledger_entries_max", "ledger_id", "ledger_messages_before", "ledger_opened_ms", "markers", "max_read",
        "messages", "messages_trimmed", "next_entry", "open_txns", "owner_session", "publish_session",
        "session_changes", "uncommitted",
    )  # fmt: skip

    aborted_messages: int
    aborted_segment: int
    aborted_txns: int
    bytes: int
    bytes_trimmed: int
    entries: int
    epoch: int
    first_ledger: int
    last_publish_ms: int
    ledger_age_max_ms: int
    ledger_bytes_before: int
    ledger_bytes_max: int
    ledger_entries_max: int
    ledger_id: int
    ledger_messages_before: int
    ledger_opened_ms: int
    markers: int
    max_read: Position
    messages: int
    messages_trimmed: int
    next_entry: int
    open_txns: int
    owner_session: int
    publish_session: int
    session_changes: int
    uncommitted: int

    @classmethod
    def new(cls, ledger_id: int, epoch: int, opened_ms: int, limits: tuple[int, int, int]) -> TopicState:
        """Make the state of an empty topic whose first ledger is `ledger_id`."""
        state = cls.__new__(cls)
        state.ledger_id = state.first_ledger = ledger_id
        state.next_entry = 0
        state.ledger_opened_ms = opened_ms
        state.ledger_messages_before = state.ledger_bytes_before = 0
        state.messages = state.bytes = state.entries = state.markers = 0
        state.epoch = epoch
        state.max_read = Position(ledger_id, -1)
        state.open_txns = state.uncommitted = state.aborted_txns = state.aborted_messages = (
            state.aborted_segment
        ) = 0
        state.messages_trimmed = state.bytes_trimmed = state.last_publish_ms = 0
        state.ledger_entries_max, state.ledger_bytes_max, state.ledger_age_max_ms = limits
        state.owner_session = state.publish_session = state.session_changes = 0
        return state

    def encode(self) -> builtins.bytes:
        return _STATE.pack(
            self.ledger_id, self.next_entry, self.ledger_opened_ms, self.ledger_messages_before,
            self.ledger_bytes_before, self.messages, self.bytes, self.entries, self.markers, self.epoch,
            self.max_read[0], self.max_read[1], self.open_txns, self.uncommitted,
            self.aborted_txns, self.aborted_segment, self.aborted_messages, self.first_ledger,
            self.messages_trimmed, self.bytes_trimmed, self.last_publish_ms,
            self.ledger_entries_max, self.ledger_bytes_max, self.ledger_age_max_ms,
            self.owner_session, self.publish_session, self.session_changes,
        )  # fmt: skip

    @classmethod
    def decode(cls, payload: memoryview) -> TopicState:
        state = cls.__new__(cls)
        (
            state.ledger_id, state.next_entry, state.ledger_opened_ms, state.ledger_messages_before,
            state.ledger_bytes_before, state.messages, state.bytes, state.entries, state.markers, state.epoch,
            max_ledger, max_entry, state.open_txns, state.uncommitted,
            state.aborted_txns, state.aborted_segment, state.aborted_messages, state.first_ledger,
            state.messages_trimmed, state.bytes_trimmed, state.last_publish_ms, state.ledger_entries_max,
            state.ledger_bytes_max, state.ledger_age_max_ms,
            state.owner_session, state.publish_session, state.session_changes,
        ) = _STATE.unpack(payload)  # fmt: skip
        state.max_read = as_position((max_ledger, max_entry))
        return state

    def has_publisher(self, session: int) -> bool:
        """Whether the last publish was of this session, and no former owner may resume the topic.

        The next publish of the session then changes no record of sessions.
        """
        return self.publish_session == session and self.owner_session in (0, session)

    @property
    def last_confirmed(self) -> Position:
        """lastConfirmedEntry: the last entry written, markers included; `L:-1` in an empty topic."""
        return as_position((self.ledger_id, self.next_entry - 1))

    @property
    def max_read_position(self) -> Position:
        return self.max_read

    @property
    def last_confirmed_position(self) -> Position:
        return self.last_confirmed


def load(view: ReadView, topic_id: int) -> TopicState:
    """Return the state of a topic. Within a batch all callers share one object, and the batch writes its changes.

    Raises:
        TopicNotFound: the topic was deleted meanwhile.
        CorruptStore: the topic exists, and its state is missing.
    """
    state = view.open(HEADS, key1(topic_id), TopicState.decode)
    if state is None:
        if any(unpack(payload, 1)[0] == topic_id for _, payload in view.scan(TOPICS)):
            raise missing(HEADS, key1(topic_id))
        raise TopicNotFound(
            "the topic was deleted meanwhile",
            hint=Hint("`{}` shows what there is.", Action("store.reports.list_topics")),
        )
    return state


def create(batch: WriteBatch, topic_id: int, state: TopicState) -> None:
    """Write the state of a topic that is new."""
    batch.put(HEADS, key1(topic_id), state.encode())


def delete(batch: WriteBatch, topic_id: int) -> None:
    """Remove the state of a topic."""
    batch.remove(HEADS, key1(topic_id))

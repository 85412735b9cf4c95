"""The head of a topic: all that an append changes, in one record, so that an append touches one record more.

Invariant 1: max_read never moves backwards, and equals its formula. Invariant 23: every counter equals a recount.
"""

from __future__ import annotations

import builtins
from struct import Struct

from storage.disk.codec import key1
from storage.disk.schema import HEADS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import TopicNotFound
from storage.values.position import Position

_HEAD = Struct(">QqQQQQQQQqqqQQQQQQQQQQQQQQQ")


class TopicState:
    """Counters and positions of one topic.

    Attributes:
        ledger_id, next_entry: where the next entry goes, unless the ledger rolls over first.
        ledger_opened_ms, ledger_messages_before, ledger_bytes_before: of the open ledger.
        messages, bytes, entries, markers: all that was ever appended; markers count as entries, not as messages.
        epoch: the topic epoch; -1 while there was no exclusive owner.
        max_read: maxReadPosition.
        open_txns, uncommitted: open transactions with messages here, and how many messages.
        aborted_txns, aborted_messages: what the aborted set holds.
        aborted_segment: number of its open segment.
        first_ledger, messages_trimmed, bytes_trimmed: what trimming left.
        ledger_entries_max, ledger_bytes_max, ledger_age_max_ms: when the ledger rolls over.
        owner_session: the session that owns the topic, or did last and may resume; 0 once it closed, was fenced, or
            somebody else has produced.
        publish_session: the session of the last plain or transactional publish; 0 if it had none.
        session_changes: grows whenever a session ends, so that a producer knows without a look that its own is there.
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
    max_read: tuple[int, int]
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
        """The head of an empty topic whose first ledger is `ledger_id`."""
        head = cls.__new__(cls)
        head.ledger_id = head.first_ledger = ledger_id
        head.next_entry = 0
        head.ledger_opened_ms = opened_ms
        head.ledger_messages_before = head.ledger_bytes_before = 0
        head.messages = head.bytes = head.entries = head.markers = 0
        head.epoch = epoch
        head.max_read = (ledger_id, -1)
        head.open_txns = head.uncommitted = head.aborted_txns = head.aborted_messages = (
            head.aborted_segment
        ) = 0
        head.messages_trimmed = head.bytes_trimmed = head.last_publish_ms = 0
        head.ledger_entries_max, head.ledger_bytes_max, head.ledger_age_max_ms = limits
        head.owner_session = head.publish_session = head.session_changes = 0
        return head

    def encode(self) -> builtins.bytes:
        return _HEAD.pack(
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
        head = cls.__new__(cls)
        (
            head.ledger_id, head.next_entry, head.ledger_opened_ms, head.ledger_messages_before,
            head.ledger_bytes_before, head.messages, head.bytes, head.entries, head.markers, head.epoch,
            max_ledger, max_entry, head.open_txns, head.uncommitted,
            head.aborted_txns, head.aborted_segment, head.aborted_messages, head.first_ledger,
            head.messages_trimmed, head.bytes_trimmed, head.last_publish_ms, head.ledger_entries_max,
            head.ledger_bytes_max, head.ledger_age_max_ms,
            head.owner_session, head.publish_session, head.session_changes,
        ) = _HEAD.unpack(payload)  # fmt: skip
        head.max_read = (max_ledger, max_entry)
        return head

    @property
    def last_confirmed(self) -> tuple[int, int]:
        """lastConfirmedEntry: the last entry written, markers included; `L:-1` in an empty topic."""
        return (self.ledger_id, self.next_entry - 1)

    @property
    def max_read_position(self) -> Position:
        return Position(*self.max_read)

    @property
    def last_confirmed_position(self) -> Position:
        return Position(self.ledger_id, self.next_entry - 1)


def load(view: ReadView, topic_id: int) -> TopicState:
    """The head of a topic.

    Raises:
        TopicNotFound: it was deleted meanwhile.
    """
    payload = view.get(HEADS, key1(topic_id))
    if payload is None:
        raise TopicNotFound(
            "the topic was deleted meanwhile", hint="`txnctl topics list` shows what there is."
        )
    return TopicState.decode(payload)


def save(batch: WriteBatch, topic_id: int, head: TopicState) -> None:
    """Write the head of a topic."""
    batch.put(HEADS, key1(topic_id), head.encode())

"""The compaction of topics: settings, and horizon and counters of the compacted view."""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.topic import catalogue as topics
from storage.topic.compaction import compaction_state
from storage.topic.open_topic import OpenTopic
from storage.txn import compaction
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position


class CompactionRow(NamedTuple):
    """The compaction of one topic.

    Attributes:
        horizon: the view has every key up to here; None before the first compaction.
        generation: of the view; a truncation of the topic begins the next one.
        uncompacted_bytes: bytes of the decided log behind the horizon.
    """

    threshold_bytes: int | None
    tombstone_retention_ms: int
    horizon: Position | None
    generation: int
    messages: int
    bytes: int
    tombstones: int
    uncompacted_bytes: int
    compacted_at_ms: int | None


class TopicCompaction(NamedTuple):
    """A topic with its compaction; None for a topic that was never compacted and has no threshold."""

    topic: str
    compaction: CompactionRow | None


def row_of(view: ReadView, topic_id: int) -> CompactionRow | None:
    """The compaction of a topic; None for a topic that was never compacted and has no threshold."""
    state = compaction_state.load(view, topic_id)
    if state is None:
        return None
    return CompactionRow(
        threshold_bytes=state.threshold, tombstone_retention_ms=state.tombstone_ms, horizon=state.horizon,
        generation=state.generation, messages=state.messages, bytes=state.bytes, tombstones=state.tombstones,
        uncompacted_bytes=compaction.bytes_behind(OpenTopic.load(view, topic_id), state),
        compacted_at_ms=state.compacted_ms or None,
    )  # fmt: skip


def topic_compaction(connection: Connection, name: str) -> TopicCompaction:
    """The compaction of one topic.

    Raises:
        TopicNotFound, InvalidName
    """
    with connection.view() as view:
        topic = topics.get(view, name)
        return TopicCompaction(topic.full_name, row_of(view, topic.topic_id))

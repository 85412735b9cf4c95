"""Collect garbage of compacted views: compact topics beyond their threshold, remove tombstones that are due, and the
records of earlier generations."""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.disk.wall_clock import clocks_agree
from storage.topic.compaction import compacted_view, compaction_state
from storage.topic.open_topic import OpenTopic
from storage.txn import compaction
from storage.txn.compaction import Compaction


def collect(connection: Connection) -> int:
    """Compact the topics with work, and clean up; return the number of topics with work."""
    with connection.view() as view:
        due = topics_with_work(view)
    for topic_id in due:
        Compaction(connection, topic_id).compact()
    return len(due)


def topics_with_work(view: ReadView) -> list[int]:
    """The topics beyond their threshold, with tombstones to remove, or with remains."""
    return [topic_id for topic_id in compaction_state.topic_ids(view) if _has_work(view, topic_id)]


def _has_work(view: ReadView, topic_id: int) -> bool:
    state = compaction_state.load(view, topic_id)
    if state is None:
        return False
    through_ms = view.clock.wall_ms() - state.tombstone_ms
    return (
        compaction.is_due(OpenTopic.load(view, topic_id), state)
        or compacted_view.has_remains(view, topic_id)
        or (
            (clocks_agree(view) or not view.is_clock_running)
            and bool(compacted_view.tombstones_entered(view, topic_id, state, through_ms, 1))
        )
    )

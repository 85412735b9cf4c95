"""Compact a topic now, set its threshold and tombstone retention, or remove the compacted view."""

from __future__ import annotations

from storage.admin.audited_change import Changed, ChangeRequest, run_change
from storage.disk.reserve import ReserveShare
from storage.disk.view import ReadView, WriteBatch
from storage.engine import Engine
from storage.errors import InvalidValue
from storage.json_form import Flat
from storage.limits import RETENTION_BYTES_MAX, RETENTION_MS_MAX, TRIM_STEP_ENTRIES
from storage.reports.compaction import CompactionRow, row_of
from storage.topic import catalogue as topics, log
from storage.topic.compaction import compacted_view, compaction_state
from storage.topic.compaction.compaction_state import CompactionState
from storage.topic.open_topic import OpenTopic
from storage.txn import aborted, compaction
from storage.txn.reaper import EVERY
from storage.values.durations import duration_text, given_duration
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position

_BEFORE_ALL = Position(0, -1)
_UNSET = "unset"


class TopicCompacted(NamedTuple):
    """The effects of compacting a topic.

    Attributes:
        examined: committed messages of the log that were read, or would be.
        replaced: messages of the view replaced by newer messages, or removed with the view; None in a dry run.
        tombstones_removed: tombstones that went for their age, or with the view; None in a dry run.
        view: the view afterwards; in a dry run the present one.
    """

    topic: str
    examined: int
    replaced: int | None
    tombstones_removed: int | None
    view: Flat[CompactionRow]


class CompactionSet(NamedTuple):
    """The compaction of a topic after a change of its settings, and the settings before."""

    topic: str
    threshold_bytes: int | None
    tombstone_retention_ms: int
    threshold_bytes_before: int | None
    tombstone_retention_ms_before: int


def compact_topic(engine: Engine, name: str, dry_run: bool, reason: str | None) -> Changed[TopicCompacted]:
    """Compact up to the present maxReadPosition; see `TopicAdmin.compact_topic`."""
    connection = engine.connection
    with connection.view() as view:
        topic = topics.get(view, name)
        examined = _committed_behind(OpenTopic.load(view, topic.topic_id))
    done = None if dry_run else compaction.Compaction(connection, topic.topic_id).compact()

    def change(batch: WriteBatch) -> TopicCompacted:
        topic = topics.get(batch, name)
        row = row_of(batch, topic.topic_id) or row_of_none(batch, topic.topic_id)
        if done is None:
            return TopicCompacted(topic.full_name, examined, None, None, row)
        return TopicCompacted(topic.full_name, *done, row)

    return run_change(engine, ChangeRequest("topics compact", name, dry_run, reason), change, naming=EVERY)


def row_of_none(view: ReadView, topic_id: int) -> CompactionRow:
    """The row of a topic without a compaction."""
    state = CompactionState()
    behind = compaction.bytes_behind(OpenTopic.load(view, topic_id), None)
    return CompactionRow(None, state.tombstone_ms, None, state.generation, 0, 0, 0, behind, None)


def _committed_behind(topic: OpenTopic[ReadView]) -> int:
    """Count the committed messages that the next run examines."""
    view, topic_id, state = topic.view, topic.topic_id, topic.state
    compacted = compaction_state.load(view, topic_id)
    done = _BEFORE_ALL if compacted is None or compacted.horizon is None else compacted.horizon
    stored = log.messages_through(view, topic_id, state, state.max_read)
    stored -= log.messages_through(view, topic_id, state, done)
    dropped = aborted.messages_between(view, topic_id, state, done, state.max_read)
    return max(stored - dropped - (0 if compacted is None else compacted.partial), 0)


def set_compaction(
    engine: Engine,
    name: str,
    threshold: int | str | None,
    tombstone_retention_ms: int | None,
    dry_run: bool,
    reason: str | None,
) -> Changed[CompactionSet]:
    """Set threshold and tombstone retention; see `TopicAdmin.set_compaction`."""
    _check("threshold", threshold, 1, RETENTION_BYTES_MAX, "bytes")
    _check("tombstone retention", tombstone_retention_ms, 0, RETENTION_MS_MAX, "ms")

    def change(batch: WriteBatch) -> CompactionSet:
        topic = topics.get(batch, name)
        state = compaction_state.load_or_add(batch, topic.topic_id)
        before = state.threshold, state.tombstone_ms
        if threshold is not None:
            state.threshold = None if isinstance(threshold, str) else threshold
        if tombstone_retention_ms is not None:
            state.tombstone_ms = tombstone_retention_ms
        return CompactionSet(topic.full_name, state.threshold, state.tombstone_ms, *before)

    return run_change(engine, ChangeRequest("topics config", name, dry_run, reason), change, naming=EVERY)


def _check(what: str, value: object, least: int, most: int, unit: str) -> None:
    is_word = unit == "bytes" and value == _UNSET
    if value is None or is_word or (type(value) is int and least <= value <= most):
        return
    if unit == "ms":
        bounds = f"{duration_text(least)} to {duration_text(most)}"
        raise InvalidValue(f"a compaction {what} is {bounds}, not {given_duration(value)}")
    raise InvalidValue(f"a compaction {what} is {least} to {most} bytes, or {_UNSET}, not {value!r}")


def remove_view(engine: Engine, name: str, dry_run: bool, reason: str | None) -> Changed[TopicCompacted]:
    """Remove the compacted view and the threshold; see `TopicAdmin.remove_compacted`."""

    def change(batch: WriteBatch) -> TopicCompacted:
        topic = topics.get(batch, name)
        state = compaction_state.load_or_add(batch, topic.topic_id)
        messages, tombstones = state.messages, state.tombstones
        state.threshold = None
        if state.has_view or state.messages:
            state.restart()
        row = row_of(batch, topic.topic_id) or row_of_none(batch, topic.topic_id)
        return TopicCompacted(topic.full_name, 0, messages, tombstones, row)

    def purge(batch: WriteBatch) -> int:
        topic = topics.find(batch, name)
        return 0 if topic is None else compacted_view.purge_step(batch, topic.topic_id, TRIM_STEP_ENTRIES)

    result = run_change(engine, ChangeRequest("topics compact", name, dry_run, reason), change, naming=EVERY)
    while not dry_run and engine.connection.write(purge, share=ReserveShare.WHOLE):
        pass
    return result

"""The space that topics and tables take, and the changes that would free some of it.

A topic has a row for each change that would free more than the row before: trimming to the limits, letting go of
acknowledged messages, acknowledging for the subscription that holds the rest, and truncation. Messages count with the
bytes in the log; rows of tables are not read, so the size of a table is a share of the pages, by records.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.actions import Action
from storage.disk.connection import Connection
from storage.disk.schema import PURGES, ROWS, TABLE_PURGES, VERSIONS, Database
from storage.disk.view import ReadView
from storage.subscription import trimming
from storage.table import catalogue as tables, state as table_states
from storage.topic import catalogue as topics, log, retention, trim
from storage.topic.compaction import compaction_state
from storage.topic.open_topic import OpenTopic
from storage.topic.retention import RetentionLimits
from storage.values.named_tuple import NamedTuple

_NOTHING_KEPT = RetentionLimits(0, 0)
_DESTROYING = {
    "store.admin.subscriptions.clear_backlog",
    "store.admin.topics.remove_compacted",
    "store.admin.topics.truncate_topic",
    "store.admin.tables.delete_table",
}


class Freeable(NamedTuple):
    """A change that frees space.

    Attributes:
        kind: `topic`, `table`, `store`, or `backlog`: a subscription holds the topic.
        name: of the topic or table; empty for the remains of deleted ones.
        size_bytes: the size of the object; None where only a walk would tell.
        freed_bytes: the part that the change frees; None where only a walk would tell. For clearing a backlog, the part
            that the subscription holds back: trimming frees it then, as far as no other subscription holds it too.
        held_by: the subscription or transaction that holds the rest back from trimming.
        action: the change.
    """

    kind: str
    name: str
    size_bytes: int | None
    freed_bytes: int | None
    held_by: str | None
    action: Action


def list_freeable(connection: Connection) -> list[Freeable]:
    """The changes that free space: changes without a loss for a subscription first, then the largest objects."""
    with connection.view() as view:
        objects = [*_of_topics(view), *_of_tables(view)]
        remains = view.count(PURGES) + view.count(TABLE_PURGES)
    objects.sort(key=lambda row: (row.action.call in _DESTROYING, -(row.size_bytes or 0)))
    collect = Action("store.maintenance.collect_garbage")
    return [Freeable("store", "", None, None, None, collect)] * bool(remains) + objects


def _of_topics(view: ReadView) -> Iterator[Freeable]:
    for entry in topics.every(view):
        topic = OpenTopic.load(view, entry.topic_id, entry.name)
        state = topic.state
        size = state.bytes - state.bytes_trimmed
        hold = trimming.find_hold(view, entry.topic_id, state)
        held_by = None if hold is None else f"{hold.kind} {hold.name}"
        limits = trimming.trusted(view, retention.of_topic(view, entry.topic_id), trust_clock=False)
        has_remains = bool(trim.remains(view, entry.topic_id, state, 1))
        due, acknowledged = freed_by(topic, limits), freed_by(topic, _NOTHING_KEPT)
        if retention.has_letters(view, entry.topic_id):
            acknowledged = due  # letters that nobody has seen go by truncation alone, which says what is lost
        name = entry.name
        if due or has_remains:
            action = Action("store.admin.topics.trim_topic", name)
            yield Freeable("topic", name, size, due or None, held_by, action)
        if acknowledged > due:
            action = Action("store.admin.topics.set_retention", name, size="0")
            yield Freeable("topic", name, size, acknowledged, held_by, action)
        if size > acknowledged and hold is not None and hold.kind == "subscription":
            action = Action("store.admin.subscriptions.clear_backlog", name, hold.name)
            yield Freeable("backlog", name, size, size - acknowledged, held_by, action)
        compacted = compaction_state.load(view, entry.topic_id)
        if compacted is not None and compacted.bytes:
            action = Action("store.admin.topics.remove_compacted", name)
            yield Freeable("topic", name, size + compacted.bytes, compacted.bytes, None, action)
        if size > acknowledged:
            action = Action("store.admin.topics.truncate_topic", name)
            yield Freeable("topic", name, size, size, held_by, action)


def freed_by(topic: OpenTopic[ReadView], limits: RetentionLimits) -> int:
    """Return the bytes that trimming to some limits would free; each ledger is read."""
    first_kept = trimming.plan_all(topic, limits, topic.view.clock.wall_ms(), 1 << 62)
    ledgers = (*log.closed_ledgers(topic.view, topic.topic_id, topic.state), log.open_ledger(topic.state))
    return sum(ledger.bytes for ledger in ledgers if ledger.ledger_id < first_kept)


def _of_tables(view: ReadView) -> Iterator[Freeable]:
    for entry in tables.every(view):
        state = table_states.find(view, entry.table_id)
        if state is not None and (state.rows or state.versions):
            size = share_of_pages(view, ROWS, state.rows) + share_of_pages(view, VERSIONS, state.versions)
            action = Action("store.admin.tables.delete_table", entry.name)
            yield Freeable("table", entry.name, size, size, None, action)


def share_of_pages(view: ReadView, database: Database, records: int) -> int:
    """The bytes of some records of a database, by their share of all that lie in the same pages."""
    figures = view.figures_of(database)
    pages = figures["branch_pages"] + figures["leaf_pages"] + figures["overflow_pages"]
    return figures["psize"] * pages * records // max(figures["entries"], 1)

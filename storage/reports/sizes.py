"""The sizes of topics and tables: bytes of entries or rows, bytes of further records, and the part that a trim frees.

Entries are counted on the way, so the bytes are exact at no cost. Further records have no counter, and are walked: at
most `RECORDS_MAX` of an object and `ALL_RECORDS_MAX` of the store. Beyond, the size of a topic is a lower bound, and
for a table the mean of the walked rows stands for all; without a walked row, its share of the pages.

Bytes are those of keys and values; of entries those of values, without 28 bytes of key and checksum. Pages are shared
by the objects of a store and never quite full, so the pages in use have more bytes than all sizes together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from storage.disk import schema
from storage.disk.codec import key1
from storage.disk.connection import Connection
from storage.disk.schema import Database
from storage.disk.view import ReadView
from storage.reports import freeable
from storage.subscription import catalogue as subscriptions, trimming
from storage.table import catalogue as tables, state as table_states
from storage.topic import catalogue as topics, retention
from storage.topic.compaction import compaction_state
from storage.topic.open_topic import OpenTopic
from storage.values.named_tuple import NamedTuple

RECORDS_MAX = 5_000
ALL_RECORDS_MAX = 200_000

_OF_TOPIC = (
    schema.LEDGERS, schema.PRODUCERS, schema.SESSION_INDEX, schema.OWNERS, schema.SEQUENCES, schema.TXN_RUNS,
    schema.OPEN_FIRST, schema.ABORTED, schema.ABORTED_BLOCKS, schema.SUBSCRIPTIONS, schema.MARKS, schema.COMPACTED_KEYS,
    schema.TOMBSTONES, schema.TIMED, schema.TIMED_BLOCKS,
)  # fmt: skip
_OF_SUBSCRIPTION = (
    schema.CURSORS, schema.ACKS, schema.DELIVERIES, schema.AWAITED, schema.HELD, schema.DELAYED, schema.DELAYED_DUE,
    schema.MARK_BOUNDS, schema.CONSUMERS, schema.PENDING,
)  # fmt: skip


class ObjectSize(NamedTuple):
    """The size of a topic or table.

    Attributes:
        kind: `topic` or `table`.
        size_bytes: entries or rows, and other records.
        content_bytes: entries of a topic with its compacted view; newest rows of a table.
        other_bytes: ledgers, sequence ids, cursors, deliveries, acknowledgements and so on; versions and changes of a
            table.
        is_exact: whether every record was counted.
        freed_bytes: what a trim to the limits set would free now; None for a table.
        held_by: what holds the rest of a topic back from trimming.
    """

    kind: str
    name: str
    size_bytes: int
    content_bytes: int
    other_bytes: int
    is_exact: bool
    freed_bytes: int | None
    held_by: str | None


class _RecordWalk:
    """Counts bytes of records within the bounds."""

    def __init__(self, view: ReadView) -> None:
        self._view = view
        self._left_of_all = ALL_RECORDS_MAX
        self._left = 0

    def begin(self) -> None:
        """Begin with the records of the next object."""
        self._left = min(RECORDS_MAX, self._left_of_all)

    def measure(self, databases: Sequence[Database], prefix: bytes) -> tuple[int, int, bool]:
        """Return the bytes and the number of the records under a prefix, and whether all were walked."""
        size = number = 0
        for database in databases:
            if self._view.lacks(database):
                continue
            for key, value in self._view.stored(database, prefix):
                if key[: len(prefix)] != prefix:
                    break
                if not self._left:
                    return size, number, False
                self._left -= 1
                self._left_of_all -= 1
                size += len(key) + len(value)
                number += 1
        return size, number, True


def list_sizes(connection: Connection, limit: int | None = None) -> list[ObjectSize]:
    """Return the sizes of topics and tables, the largest first.

    Args:
        limit: the most rows; None for all.
    """
    with connection.view() as view:
        walk = _RecordWalk(view)
        rows = [*_topics(view, walk), *_tables(view, walk)]
    rows.sort(key=lambda row: (-row.size_bytes, row.kind, row.name))
    return rows[:limit]


def _topics(view: ReadView, walk: _RecordWalk) -> Iterator[ObjectSize]:
    opened = [OpenTopic.load(view, entry.topic_id, entry.name) for entry in topics.every(view)]
    opened.sort(key=lambda topic: topic.state.bytes_trimmed - topic.state.bytes)
    for topic in opened:
        walk.begin()
        topic_id, state = topic.topic_id, topic.state
        other, _, is_exact = walk.measure(_OF_TOPIC, key1(topic_id))
        for member in subscriptions.every(view, topic_id):
            size, _, is_whole = walk.measure(_OF_SUBSCRIPTION, key1(member.subscription_id))
            other, is_exact = other + size, is_exact and is_whole
        compacted = compaction_state.load(view, topic_id)
        content = state.bytes - state.bytes_trimmed + (compacted.bytes if compacted is not None else 0)
        hold = trimming.find_hold(view, topic_id, state)
        limits = trimming.trusted(view, retention.of_topic(view, topic_id), trust_clock=False)
        yield ObjectSize(
            "topic", topic.name, content + other, content, other, is_exact, freeable.freed_by(topic, limits),
            None if hold is None else f"{hold.kind} {hold.name}",
        )  # fmt: skip


def _tables(view: ReadView, walk: _RecordWalk) -> Iterator[ObjectSize]:
    for entry in tables.every(view):
        state = table_states.find(view, entry.table_id)
        if state is None:
            continue
        walk.begin()
        prefix = key1(entry.table_id)
        rows, is_exact = _of_records(view, walk, schema.ROWS, prefix, state.rows)
        versions, has_versions = _of_records(view, walk, schema.VERSIONS, prefix, state.versions)
        changes, _, has_changes = walk.measure((schema.CHANGES,), prefix)
        exact = is_exact and has_versions and has_changes
        yield ObjectSize(
            "table", entry.name, rows + versions + changes, rows, versions + changes, exact, None, None
        )


def _of_records(
    view: ReadView, walk: _RecordWalk, database: Database, prefix: bytes, records: int
) -> tuple[int, bool]:
    """Return the bytes of the records of a table, and whether all were walked; else an estimate."""
    size, number, is_whole = walk.measure((database,), prefix)
    if is_whole:
        return size, True
    if not number:
        return freeable.share_of_pages(view, database, records), False
    return size * records // number, False

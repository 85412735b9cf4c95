"""Collect garbage: reader slots of dead processes, remains of deleted topics and tables, messages past their retention,
old versions of rows."""

from __future__ import annotations

from contextlib import suppress

from storage import audit_trail
from storage.admin.limit_forecast import LetGo, forecast
from storage.admin.purge import purge_deleted
from storage.disk.reserve import ReserveShare
from storage.disk.schema import TABLE_PURGES
from storage.engine import Engine
from storage.errors import StoreFull
from storage.json_form import Flat
from storage.maintenance import compaction_gc, record_gc, table_gc, topic_gc
from storage.maintenance.record_gc import Forgotten
from storage.maintenance.table_gc import TableCollected
from storage.process.identity import is_running
from storage.subscription import subscription_purge
from storage.topic import catalogue as topics
from storage.values.named_tuple import NamedTuple


class Collected(NamedTuple):
    """The garbage collected; `purge_steps` is None for a dry run."""

    readers_freed: int
    deleted_topics: int
    deleted_tables: int
    purge_steps: int | None
    ledgers_trimmed: int
    messages_trimmed: int
    bytes_trimmed: int
    messages_lost: int
    messages_expired: int
    subscriptions_expired: int
    transactions_aborted: int
    topics_compacted: int
    forgotten: Flat[Forgotten]
    tables: Flat[TableCollected]


class AuditedCollection(NamedTuple):
    """A collection as the audit trail stores it."""

    collected: Flat[Collected]
    trust_clock: bool


class CollectResult(NamedTuple):
    """The result of a run or a dry run."""

    collected: Flat[Collected]
    dry_run: bool


def collect_garbage(
    engine: Engine, trust_clock: bool = False, dry_run: bool = False, reason: str | None = None
) -> CollectResult:
    """Free reader slots of dead processes, remains of deleted topics and tables, messages past their retention, and
    versions out of the window.

    Build directories that killed builders left in the store or beside it are removed on the way, and aborted sets of an
    earlier release get the records that lead readers through them.

    Raises:
        BadInput, OldFormat
    """
    audit_trail.check_reason(reason)
    connection = engine.connection
    connection.check_writable()
    with connection.view() as view:
        deleted_topics = sum(1 for _ in topics.purged_ids(view))
        deleted_tables = view.count(TABLE_PURGES)
    if dry_run:
        slots = connection.environment.reader_slots()
        dead = sum(not is_running(slot.pid) for slot in slots)
        with connection.view() as view:
            compacted = compaction_gc.topics_with_work(view)
        forecasted = forecast(engine, trust_clock=trust_clock, compacted=compacted)
        kept = LetGo.counted(forecasted.step)
        tables = table_gc.forecast(connection, trust_clock)
        forgotten = record_gc.forecast(connection, forecasted.kept, trust_clock)
        collected = Collected(
            dead, deleted_topics, deleted_tables, None, *kept[:7], len(compacted), forgotten, tables
        )
        return CollectResult(collected, dry_run=True)
    writer = connection.environment.writer
    writer.trims_on_the_way = False
    try:
        collected = _collect(engine, trust_clock, reason, deleted_topics, deleted_tables)
    finally:
        writer.trims_on_the_way = True
    return CollectResult(collected, dry_run=False)


def _collect(
    engine: Engine, trust_clock: bool, reason: str | None, deleted_topics: int, deleted_tables: int
) -> Collected:
    connection = engine.connection
    freed = connection.environment.free_dead_readers()
    steps = purge_deleted(connection)
    connection.environment.remove_leftovers()
    table_gc.settle_clocks(connection, trust_clock)
    # What a view has taken over may be trimmed at once. On a full disk trimming makes the room for compaction.
    compacted = None
    with suppress(StoreFull):
        compacted = compaction_gc.collect(connection)
    # Outcomes of transactions go once their messages are gone.
    kept = LetGo.counted(topic_gc.collect(engine, trust_clock))
    steps += subscription_purge.finish(connection)
    topic_gc.complete_aborted_blocks(connection)
    if compacted is None:
        compacted = compaction_gc.collect(connection)
    forgotten = record_gc.collect(connection)
    tables = table_gc.collect(connection)
    collected = Collected(
        freed, deleted_topics, deleted_tables, steps, *kept[:7], compacted, forgotten, tables
    )
    counts = (freed, deleted_topics, deleted_tables, *kept[:7], compacted, *forgotten, *tables.counts)
    if trust_clock or any(counts):
        audited, process = AuditedCollection(collected, trust_clock), engine.process
        connection.write(
            lambda batch: audit_trail.record(batch, process, "store gc", "store", reason, audited),
            share=ReserveShare.WHOLE,
        )
    return collected

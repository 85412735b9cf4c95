"""`txnctl store gc`: free unused records, pages and files."""

from __future__ import annotations

from typing import NamedTuple

from storage.values.timestamps import rfc3339
from txnctl.cli.decorators import administrative, changes_store, example, option, output
from txnctl.fields.change import DRY_RUN
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural, size
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.json_form import Flat, TimeText
    from storage.maintenance.table_gc import TableCounts
    from txnctl.cli.context import Context


class GarbageCollected(NamedTuple):
    """The garbage collected in a store, and beside the data file."""

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
    sequence_ranges_forgotten: int
    topic_names_forgotten: int
    topics_compacted: int
    counts: Flat[TableCounts]
    staged_writes: int
    table_window_start_at_ms: TimeText
    clocks_disagree: bool
    dry_run: bool


COLLECTED = fields_of(
    GarbageCollected,
    {
        "readers_freed": "Slots of the reader table that dead processes had.",
        "deleted_topics": "Deleted topics of which something was left.",
        "deleted_tables": "Deleted tables of which something was left.",
        "purge_steps": "Commits that removed it; null in a dry run.",
        "ledgers_trimmed": "Ledgers past the retention of their topic.",
        "messages_trimmed": "Their messages.",
        "bytes_trimmed": Help("Their bytes.", kind="size"),
        "messages_lost": "Messages that hard retention took from a subscription, counted for each.",
        "messages_expired": "Messages acknowledged for their age, counted for each subscription.",
        "subscriptions_expired": "Subscriptions without a consumer for too long, deleted.",
        "transactions_aborted": "Open transactions in the way of hard retention.",
        "sequence_ranges_forgotten": "Ranges of sequence ids of trimmed messages, unused for long.",
        "topic_names_forgotten": "Names of topics deleted a month ago or longer.",
        "topics_compacted": "Topics compacted beyond their threshold, or whose compacted view was cleaned up.",
        "intents_finalized": "Write intents of ended transactions that became values, or nothing.",
        "versions_removed": "Versions of table rows that were older than what is kept.",
        "tombstones_removed": "Keys deleted so long ago that nothing needs to know of them.",
        "outcomes_removed": "Ended transactions whose outcome nothing names any more.",
        "staged_writes": "Writes by Spark that were never ended, whose staged files went.",
        "table_window_start_at_ms": Help("The time from which on tables can be read (--at).", kind="text"),
        "clocks_disagree": "Whether the wall clock was moved: then nothing is removed for its age.",
        **DRY_RUN,
    },
    part="storage.maintenance.table_gc:TableCounts",
)


@option(
    "--trust-clock",
    is_flag=True,
    help="Remove old messages and versions although the wall clock was moved: it was looked at, and is right.",
)
@changes_store()
@administrative
@output(COLLECTED, name_field="purgeSteps")
@example("txnctl store gc --dry-run")
@example("txnctl store gc --reason 'topics delete was killed'")
def gc(context: Context, trust_clock: bool) -> None:
    """Free unused records, pages and files.

    Removes the rest of a `topics delete` or `tables delete` that was killed; reader slots of dead processes, whose
    pages are not reused until then; acknowledged messages past the retention of their topic, and what hard retention, a
    ttl or an expiry lets go (`topics config`); messages of compacted views that newer ones replace, of topics beyond
    their compaction threshold, and tombstones due; write intents of transactions that have ended; versions of table
    rows older than `store config table-retention` says; unfinished stores (`.NAME.PID.new`) that killed or failed
    backups left beside the store or in it, and unfinished copies (`.NAME.copy`) without a write for a week; and files
    staged in the store's directory by Spark writes that were killed a day ago or longer. Safe at any time, and worth a
    line in cron where tables are written much, or topics have a retention.

    Where the wall clock and the time since the start of the machine have drifted apart, nothing is removed for age,
    until you confirm the wall clock with --trust-clock.

    A dry run shows the numbers of the real run, as long as no write happens in between.
    """
    row = context.store.maintenance.collect_garbage(
        trust_clock=trust_clock, dry_run=context.dry_run, reason=context.reason
    )
    collected, tables = row.collected, row.collected.tables
    skips_old_files = tables.clocks_disagree and not trust_clock
    context.show(
        GarbageCollected(
            readers_freed=collected.readers_freed,
            deleted_topics=collected.deleted_topics,
            deleted_tables=collected.deleted_tables,
            purge_steps=collected.purge_steps,
            ledgers_trimmed=collected.ledgers_trimmed,
            messages_trimmed=collected.messages_trimmed,
            bytes_trimmed=collected.bytes_trimmed,
            messages_lost=collected.messages_lost,
            messages_expired=collected.messages_expired,
            subscriptions_expired=collected.subscriptions_expired,
            transactions_aborted=collected.transactions_aborted,
            sequence_ranges_forgotten=collected.forgotten.sequence_ranges_forgotten,
            topic_names_forgotten=collected.forgotten.topic_names_forgotten,
            topics_compacted=collected.topics_compacted,
            counts=tables.counts,
            staged_writes=0 if skips_old_files else _staged_writes(context),
            table_window_start_at_ms=tables.table_window_start_at_ms,
            clocks_disagree=tables.clocks_disagree,
            dry_run=row.dry_run,
        ),
        table=_collected,
    )


def _staged_writes(context: Context) -> int:
    """Remove staged files of old Spark writes; return the number of writes. Nothing is loaded where none ever were."""
    import os
    from importlib.util import find_spec

    if context.store.connection.environment.has_directory:
        place = os.path.join(os.path.abspath(context.store.path), "staging")
    else:
        from txnctl.spark.sink.temporary_staging import temporary_staging_path

        place = temporary_staging_path()
    if not os.path.isdir(place) or find_spec("pyarrow") is None:
        return 0
    from txnctl.spark.sink.staging import Staging

    now_ms = context.store.connection.clock.wall_ms()
    return len(Staging.at(place).collect(now_ms, dry_run=context.dry_run))


def _ended(row: GarbageCollected) -> Iterator[str]:
    """What was not acknowledged, and went all the same."""
    tense = "would be " if row.dry_run else ""
    for number, noun, what in (
        (row.messages_lost, "message", "lost to a subscription that had not acknowledged it"),
        (row.messages_expired, "message", "acknowledged for its age"),
        (row.subscriptions_expired, "subscription", "deleted: no consumer for too long"),
        (row.transactions_aborted, "open transaction", "aborted: in the way of hard retention"),
    ):
        if number:
            yield f"{plural(number, noun)} {tense}{what}."


def _collected(row: GarbageCollected) -> Iterator[str]:
    if row.dry_run:
        yield from ("DRY RUN: nothing was changed.", "")
    would = "Would free" if row.dry_run else "Freed"
    slots, topics = plural(row.readers_freed, "reader slot"), plural(row.deleted_topics, "deleted topic")
    if row.deleted_tables:
        topics += f" and {plural(row.deleted_tables, 'deleted table')}"
    steps = "" if row.purge_steps is None else f", in {plural(row.purge_steps, 'step')}"
    remove = "remove" if row.dry_run else "removed"
    yield f"{would} {slots} of dead processes; {remove} what {topics} left{steps}."
    if row.ledgers_trimmed:
        trimmed = "Would trim" if row.dry_run else "Trimmed"
        ledgers, messages = plural(row.ledgers_trimmed, "ledger"), plural(row.messages_trimmed, "message")
        yield f"{trimmed} {ledgers} past their retention: {messages}, {size(row.bytes_trimmed)}."
    yield from _ended(row)
    if row.topics_compacted:
        compacted = "Would compact" if row.dry_run else "Compacted"
        yield f"{compacted} {plural(row.topics_compacted, 'topic')}."
    would = "Would finalise" if row.dry_run else "Finalised"
    intents = plural(row.counts.intents_finalized, "write intent")
    versions = plural(row.counts.versions_removed, "old version")
    keys = plural(row.counts.tombstones_removed, "deleted key")
    window_start = rfc3339(row.table_window_start_at_ms)
    yield (
        f"{would} {intents}; {remove} {versions} and {keys} of tables, "
        f"which can be read from {window_start} on."
    )
    if row.counts.outcomes_removed:
        forget = "Would forget" if row.dry_run else "Forgot"
        outcomes = plural(row.counts.outcomes_removed, "transaction")
        yield f"{forget} the outcome of {outcomes} that nothing names any more."
    if row.sequence_ranges_forgotten or row.topic_names_forgotten:
        forget = "Would forget" if row.dry_run else "Forgot"
        ranges = plural(row.sequence_ranges_forgotten, "range")
        names = plural(row.topic_names_forgotten, "name")
        yield f"{forget} {ranges} of sequence ids and {names} of deleted topics."
    if row.staged_writes:
        yield f"{remove.capitalize()} what {plural(row.staged_writes, 'write')} by Spark had staged."
    if row.clocks_disagree:
        yield "The wall clock was moved: nothing was removed for its age."
        yield f"If it is right now: {line('store gc', trust_clock=True)}"

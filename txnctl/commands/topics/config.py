"""`txnctl topics config`: the retention limits of one topic, and its compaction."""

from __future__ import annotations

from typing import NamedTuple

from storage.limits import TOMBSTONE_RETENTION_MS
from txnctl.cli.decorators import administrative, argument, example, names_store, option, output
from txnctl.cli.retention_values import COMPACTION_THRESHOLD, RETENTION_SIZE, RETENTION_TIME
from txnctl.cli.value_types import DURATION_MS, TOPIC
from txnctl.fields.change import DRY_RUN
from txnctl.fields.topic import NAMES, RETENTION
from txnctl.output.field import Help, fields_of
from txnctl.output.human import duration, size
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.cli.context import Context


class TopicConfig(NamedTuple):
    """The retention limits in force for a topic, whether each is the topic's own, and the settings of compaction."""

    topic: str
    name: str
    retention_time_ms: int | None
    retention_bytes: int | None
    own_retention_time: bool
    own_retention_size: bool
    compaction_threshold_bytes: int | None
    tombstone_retention_ms: int
    dry_run: bool


OWN = ", set for this topic"
_SETUP = "txnctl topics create orders"


@argument("topic", type=TOPIC, help="The topic.")
@option(
    "--retention-time",
    type=RETENTION_TIME,
    metavar="DURATION",
    help="Keep acknowledged messages at least so long; 0, `unset` or `store`.",
)
@option(
    "--retention-size",
    type=RETENTION_SIZE,
    metavar="SIZE",
    help="Keep at least so much of what is acknowledged; 0, `unset` or `store`.",
)
@option(
    "--compaction-threshold",
    type=COMPACTION_THRESHOLD,
    metavar="SIZE",
    help="Compact when so much of the log is not compacted; or `unset`: by hand.",
)
@option(
    "--tombstone-retention",
    type=DURATION_MS,
    metavar="DURATION",
    help="Keep a tombstone in the compacted view at least so long. [default: 24h]",
)
@names_store(effect="writes")
@administrative
@output(
    fields_of(
        TopicConfig,
        {
            **NAMES,
            **RETENTION,
            "own_retention_time": Help("Whether the time is the topic's own, not the store's.", heading=""),
            "own_retention_size": Help("Whether the size is the topic's own, not the store's.", heading=""),
            "compaction_threshold_bytes": Help(
                "Bytes not compacted from which on writers compact the topic; null for never.",
                kind="size",
                heading="COMPACTION THRESHOLD",
            ),
            "tombstone_retention_ms": Help(
                "The time for which the compacted view keeps a tombstone at least.",
                heading="TOMBSTONE RETENTION",
            ),
            **DRY_RUN,
        },
    ),
    name_field="name",
)
@example("txnctl topics config orders", setup=_SETUP)
@example("txnctl topics config orders --retention-time 7d --retention-size 10G", setup=_SETUP)
@example(
    "txnctl topics config orders --retention-time unset --reason 'audit asks for all of it'", setup=_SETUP
)
@example("txnctl topics config orders --compaction-threshold 64M --tombstone-retention 7d", setup=_SETUP)
def config(
    context: Context,
    topic: str,
    retention_time: int | str | None,
    retention_size: int | str | None,
    compaction_threshold: int | str | None,
    tombstone_retention: int | None,
) -> None:
    """Show or set how long a topic keeps what every subscription has acknowledged.

    Everything is kept unless a limit is set. A limit keeps acknowledged messages at least that long or that large; with
    both, the first one reached lets a ledger go. 0 keeps nothing once it is acknowledged, `unset` keeps everything, and
    `store` takes the limit of `txnctl store config`. Never removed is what a subscription has not acknowledged or an
    open transaction holds. A reader without a subscription holds nothing back, and a topic without a subscription keeps
    nothing beyond its limits. A dead-letter topic takes dead-letter-retention-time and -size of `txnctl store config`.

    With a compaction threshold, processes that write compact the topic on their way, a few milliseconds a write, while
    more than the threshold is not compacted; so does `txnctl store gc`. Messages that are not in the compacted view yet
    are kept, whatever the limits say.
    """
    is_retention = retention_time is not None or retention_size is not None
    is_compaction = compaction_threshold is not None or tombstone_retention is not None
    is_change = is_retention or is_compaction
    with context.open_store(context.store_path, read_only=not is_change) as store:
        compacted = store.reports.topic_compaction(topic).compaction
        threshold = None if compacted is None else compacted.threshold_bytes
        tombstone_ms = TOMBSTONE_RETENTION_MS if compacted is None else compacted.tombstone_retention_ms
        if is_compaction:
            changed = store.admin.topics.set_compaction(
                topic,
                threshold=compaction_threshold,
                tombstone_retention_ms=tombstone_retention,
                dry_run=context.dry_run,
                reason=context.reason,
            ).effects
            threshold, tombstone_ms = changed.threshold_bytes, changed.tombstone_retention_ms
        if is_retention:
            effects = store.admin.topics.set_retention(
                topic,
                time_ms=retention_time,
                size=retention_size,
                dry_run=context.dry_run,
                reason=context.reason,
            ).effects
            full, own, limits = effects.topic, effects.own, effects.in_force
        else:
            shown = store.reports.topic_retention(topic)
            full, own, limits = shown.topic, shown.own, shown.in_force
        has_letters = store.reports.topic_retention(topic).has_letters
    from storage.values.names import short_topic_name

    row = TopicConfig(
        topic=full,
        name=short_topic_name(full),
        retention_time_ms=limits.time_ms,
        retention_bytes=limits.bytes,
        own_retention_time=own.time_ms is not None,
        own_retention_size=own.bytes is not None,
        compaction_threshold_bytes=threshold,
        tombstone_retention_ms=tombstone_ms,
        dry_run=is_change and context.dry_run,
    )
    general = ", as the store has it for dead letters" if has_letters else ", as the store has it"
    context.show(row, table=lambda row: _lines(context, row, general))


def _lines(context: Context, row: TopicConfig, general: str) -> Iterator[str]:
    yield from dry_run_heading(context, row.dry_run)
    time = "no limit" if row.retention_time_ms is None else duration(row.retention_time_ms)
    space = "no limit" if row.retention_bytes is None else size(row.retention_bytes)
    yield f"Topic {row.name}"
    yield f"  retention time  {time}{OWN if row.own_retention_time else general}"
    yield f"  retention size  {space}{OWN if row.own_retention_size else general}"
    if row.compaction_threshold_bytes is not None:
        kept = duration(row.tombstone_retention_ms)
        yield f"  compaction      at {size(row.compaction_threshold_bytes)}, tombstones stay {kept}"
    if row.retention_time_ms is None and row.retention_bytes is None:
        yield "Every message is kept."
        return
    yield "What every subscription has acknowledged goes at the first limit reached, by"
    yield "whole ledgers. Readers without a subscription hold nothing back."

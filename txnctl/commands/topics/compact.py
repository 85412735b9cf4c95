"""`txnctl topics compact`: keep the newest committed message of each key in a compacted view."""

from __future__ import annotations

from txnctl.cli.decorators import administrative, argument, asks, changes_store, example, option, output
from txnctl.cli.value_types import TOPIC
from txnctl.fields.change import DRY_RUN
from txnctl.fields.topic import COMPACTED
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural, size
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.admin.audited_change import Changed
    from storage.admin.compaction import TopicCompacted
    from txnctl.cli.context import Context

_SETUP = (
    "txnctl topics create orders",
    "txnctl produce orders -k colour -m red",
    "txnctl produce orders -k colour -m blue",
)

FIELDS = fields_of(
    "storage.admin.compaction:Changed[TopicCompacted]",
    {
        "topic": Help("The topic's full name.", kind="id"),
        "examined": "Committed messages of the log that were read.",
        "replaced": "Messages of the view replaced by newer messages, or taken by --remove; null in a dry run.",
        "tombstones_removed": "Tombstones that went for their age, or with --remove; null in a dry run.",
        **COMPACTED,
        **DRY_RUN,
    },
    part="storage.reports.compaction:CompactionRow",
)


@argument("topic", type=TOPIC, help="The topic.")
@option("--remove", is_flag=True, help="Remove the compacted view and the threshold instead.")
@changes_store()
@administrative
@asks
@output(FIELDS, name_field="topic")
@example("txnctl topics compact orders", setup=_SETUP)
@example("txnctl topics compact orders --dry-run", setup=_SETUP)
@example("txnctl topics compact orders --remove --yes", setup=(*_SETUP, "txnctl topics compact orders"))
def compact(context: Context, topic: str, remove: bool) -> None:
    """Keep the newest committed message of each key in a compacted view.

    The view ends at the present maxReadPosition, and has nothing of an open or aborted transaction. Messages without
    a key stay, and a tombstone (a null value) stays for `topics config --tombstone-retention` at least. Positions stay
    as they are, and the log is not changed: `txnctl consume --read-compacted` reads the view, and the log behind.
    Messages of the view may be trimmed from the log by the topic's retention; the log behind the view is kept.

    Producers and consumers go on meanwhile. Each step is one short commit that leaves a complete view; after a kill the
    next run goes on. `topics config --compaction-threshold` has writers do so on their way.

    --remove takes the view away, with the messages that were trimmed from the log, and asks first.
    """
    if remove:
        _remove(context, topic)
        return
    done = context.store.admin.topics.compact_topic(topic, dry_run=context.dry_run, reason=context.reason)
    context.show(done, table=lambda row: _lines(context, row))


def _lines(context: Context, row: Changed[TopicCompacted]) -> Iterator[str]:
    from storage.values.names import short_topic_name

    yield from dry_run_heading(context, row.dry_run)
    effects, view = row.effects, row.effects.view
    name, examined = short_topic_name(effects.topic), plural(effects.examined, "message")
    if row.dry_run:
        yield f"Would compact {examined} of {name}, {size(view.uncompacted_bytes)}."
        return
    yield f"Compacted {examined} of {name}."
    if effects.tombstones_removed:
        yield f"Removed {plural(effects.tombstones_removed, 'tombstone')} for their age."
    yield f"The view has {plural(view.messages, 'message')}, {size(view.bytes)}, up to {view.horizon or 'nothing'}."


def _remove(context: Context, topic: str) -> None:
    remove_compacted = context.store.admin.topics.remove_compacted
    done = remove_compacted(topic, dry_run=True)
    context.confirm(f"Remove the compacted view of topic {topic}?", plan=list(_removal(done)))
    if not context.dry_run:
        done = remove_compacted(topic, reason=context.reason)
    context.show(done, table=_removal)


def _removal(row: Changed[TopicCompacted]) -> Iterator[str]:
    removes = "removes" if row.dry_run else "removed"
    yield f"  {removes} {plural(row.effects.replaced or 0, 'message')} of the compacted view"

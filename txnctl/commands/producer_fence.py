"""`txnctl producers fence`: what it would do, and doing it."""

from __future__ import annotations

from txnctl.commands.producer_fields import NAMES
from txnctl.options import administrative, argument, changes_store, example, output
from txnctl.output.field import Field
from txnctl.params import TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from txnctl.context import Context

    Row = dict[str, Any]

FENCED = (
    *NAMES,
    Field("topicEpochBefore", "integer", "The epoch before; null if there was none."),
    Field("topicEpoch", "integer", "The epoch now."),
    Field(
        "evicted", "list", "The producers evicted, waiting ones too, each with what `producers list` tells."
    ),
    Field("transactionsAborted", "list", "Open transactions with messages of theirs, aborted."),
    Field("dryRun", "boolean", "Whether nothing was changed."),
)

_SETUP = ("txnctl topics create orders", "txnctl producers open orders --producer loader")


@argument("topic", type=TOPIC, help="The topic.")
@changes_store(effect="destroys")
@administrative
@output(FENCED, name_field="topicEpoch")
@example("txnctl producers fence orders --dry-run", setup=_SETUP)
@example("txnctl producers fence orders --yes --reason 'the loader hangs'", setup=_SETUP)
def fence(context: Context, topic: str) -> None:
    """Evict all producers of a topic, waiting ones too: none of them ever publishes there again.

    For one that hangs or is stopped, or of which nobody knows where it runs. It is as if an owner had taken the topic
    over and left at once: the epoch grows by one, the open transactions with messages of older epochs are aborted, and
    the topic is free for the next. Who was evicted learns of it at its next publish (`producer-fenced`), and has to
    connect anew.
    """
    fence_producers = context.store.admin.fence_producers
    if not context.yes and not context.dry_run:
        plan = fence_producers(topic, dry_run=True)
        context.confirm(f"Fence the producers of {topic}?", plan=list(_lines(plan, done=False)))
    row = fence_producers(topic, dry_run=context.dry_run, reason=context.reason)
    row["dryRun"] = context.dry_run
    context.show(row, table=lambda shown: _report(context, shown))


def _report(context: Context, row: Row) -> Iterator[str]:
    from storage.names import short_topic_name

    if row["dryRun"]:
        yield context.style("DRY RUN: nothing was changed.", "bold")
        yield ""
    name = short_topic_name(row["topic"])
    yield f"{'Fence' if row['dryRun'] else 'Fenced'} the producers of {name}"
    yield from _lines(row, done=not row["dryRun"])
    if row["dryRun"]:
        yield ""
        yield f'Run: txnctl producers fence {name} --yes --reason "..."'


def _lines(row: Row, *, done: bool) -> Iterator[str]:
    """What happens, one kind a line."""
    from txnctl.commands.producer_fields import alive

    before = "none" if row["topicEpochBefore"] is None else row["topicEpochBefore"]
    yield f"  {'raised' if done else 'raises':8}  the epoch {before} -> {row['topicEpoch']}"
    evicts = "evicted" if done else "evicts"
    if not row["evicted"]:
        yield f"  {evicts:8}  nobody: no producer was connected"
    for each in row["evicted"]:
        waits = ", waiting" if each["isWaiting"] else ""
        is_there = alive(each)
        word = "alive" if is_there == "yes" else is_there
        process = str(each["owner"]).partition(" (")[0]
        yield f"  {evicts:8}  {each['producerName']} ({each['accessMode']}{waits}, {process}, {word})"
    if row["transactionsAborted"]:
        aborts = "aborted" if done else "aborts"
        yield f"  {aborts:8}  {', '.join([str(each) for each in row['transactionsAborted']])}"

"""`txnctl producers fence`: evict the connected producers of a topic."""

from __future__ import annotations

from txnctl.cli.decorators import administrative, argument, asks, changes_store, example, option, output
from txnctl.cli.value_types import TOPIC
from txnctl.fields.change import DRY_RUN
from txnctl.fields.producer import NAMES, alive
from txnctl.output.field import fields_of
from txnctl.output.human import plural
from txnctl.output.screen import dry_run_heading
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.admin.audited_change import Changed
    from storage.admin.producers import ProducersFenced
    from storage.reports.producers import ProducerRow
    from txnctl.cli.context import Context

    Fenced = Changed[ProducersFenced]

FENCED = fields_of(
    "storage.admin.producers:Changed[ProducersFenced]",
    {
        **NAMES,
        "topic_epoch_before": "The epoch before; null if there was none.",
        "topic_epoch": "The epoch now.",
        "evicted": "The producers evicted, each with what `producers list` tells.",
        "waiting": "Those that wait, the next one first: it owns the topic once it has looked.",
        "transactions_aborted": "Open transactions with messages of theirs, aborted.",
        "messages_discarded": "Messages of theirs, on all topics.",
        "acknowledgements_released": "Acknowledgements of theirs that are taken back.",
        "unblocks": "By subscription of the topic visibleBefore, visibleAfter, blockedBefore, blockedAfter.",
        **DRY_RUN,
    },
)

_SETUP = ("txnctl topics create orders", "txnctl producers open orders --producer loader")


@argument("topic", type=TOPIC, help="The topic.")
@option("--waiting", is_flag=True, help="Evict those that wait for their turn as well.")
@changes_store(effect="destroys")
@administrative
@asks
@output(FENCED, name_field="topicEpoch")
@example("txnctl producers fence orders --dry-run", setup=_SETUP)
@example("txnctl producers fence orders --yes --reason 'the loader hangs'", setup=_SETUP)
def fence(context: Context, topic: str, waiting: bool) -> None:
    """Evict the connected producers of a topic, and raise the topic epoch.

    For a producer that hangs, is stopped, or runs on an unknown machine. The effect is that of an owner leaving at
    once: the epoch grows by one, open transactions with messages of older epochs are aborted, and the first waiting
    producer gets the topic. An evicted producer fails at the next publish (`producer-fenced`) and never publishes on
    the topic again without connecting anew. Waiting producers stay in the queue, stopped ones too; --waiting evicts
    the queue as well.
    """
    fence_producers = context.store.admin.producers.fence_producers
    if not context.yes and not context.dry_run:
        plan = fence_producers(topic, waiting=waiting, dry_run=True)
        context.confirm(f"Fence the producers of {topic}?", plan=list(_lines(plan.effects, done=False)))
    row = fence_producers(topic, waiting=waiting, dry_run=context.dry_run, reason=context.reason)
    context.show(row, table=lambda shown: _report(context, shown, waiting))


def _report(context: Context, row: Fenced, waiting: bool) -> Iterator[str]:
    yield from dry_run_heading(context, row.dry_run)
    name = row.effects.name
    yield f"{'Fence' if row.dry_run else 'Fenced'} the producers of {name}"
    yield from _lines(row.effects, done=not row.dry_run)
    if row.dry_run:
        yield ""
        yield f"Run: {line('producers fence', name, waiting=waiting, yes=True, reason=...)}"


def _lines(row: ProducersFenced, *, done: bool) -> Iterator[str]:
    """The effects, a kind a line."""
    before = "none" if row.topic_epoch_before is None else row.topic_epoch_before
    yield f"  {'raised' if done else 'raises':8}  the epoch {before} -> {row.topic_epoch}"
    evicts = "evicted" if done else "evicts"
    if not row.evicted:
        yield f"  {evicts:8}  nobody: no producer was connected"
    for producer in row.evicted:
        yield f"  {evicts:8}  {_described(producer)}"
    for producer in row.waiting:
        yield f"  {'keeps':8}  {_described(producer)}"
    if row.waiting:
        yield f"  {'next':8}  {_next(row.waiting[0])}"
    if row.transactions_aborted:
        aborts = "aborted" if done else "aborts"
        yield f"  {aborts:8}  {', '.join([str(txn) for txn in row.transactions_aborted])}"
        yield f"  {'discards':8}  {plural(row.messages_discarded, 'message')}"
    if row.acknowledgements_released:
        yield f"  {'releases':8}  {plural(row.acknowledgements_released, 'acknowledgement')}"
    for name, counts in row.unblocks.items():
        freed = counts.blocked_before - counts.blocked_after
        if freed:
            seen = f"{name} {counts.visible_before:,} -> {counts.visible_after:,} visible"
            yield f"  {'unblocks':8}  {freed:,} of {counts.blocked_before:,}  {seen}"


def _described(producer: ProducerRow) -> str:
    """`loader (Exclusive, anna@db-2:48211, stopped)`."""
    waits = ", waiting" if producer.is_waiting else ""
    is_there = alive(producer)
    word = "alive" if is_there == "yes" else is_there
    return f"{producer.producer_name} ({producer.access_mode}{waits}, {producer.owner.address}, {word})"


def _next(producer: ProducerRow) -> str:
    """The next owner of the topic, and the command for a stopped one."""
    if producer.state == "stopped":
        return f"{producer.producer_name}, once it is continued: kill -CONT {producer.pid}; or --waiting evicts it"
    return f"{producer.producer_name} owns the topic within a second"

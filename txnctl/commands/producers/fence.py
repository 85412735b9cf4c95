"""`txnctl producers fence`: evict the connected producers of a topic."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import administrative, argument, changes_store, example, option, output
from txnctl.cli.value_types import TOPIC
from txnctl.fields.producer import NAMES, alive
from txnctl.output.field import Field
from txnctl.output.human import plural
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

FENCED = (
    *NAMES,
    Field("topicEpochBefore", "integer", "The epoch before; null if there was none."),
    Field("topicEpoch", "integer", "The epoch now."),
    Field("evicted", "list", "The producers evicted, each with what `producers list` tells."),
    Field("waiting", "list", "Those that wait, the next one first: it owns the topic once it has looked."),
    Field("transactionsAborted", "list", "Open transactions with messages of theirs, aborted."),
    Field("messagesDiscarded", "integer", "Messages of theirs, on all topics."),
    Field("acknowledgementsReleased", "integer", "Acknowledgements of theirs that are taken back."),
    Field(
        "unblocks",
        "map",
        "By subscription of the topic visibleBefore, visibleAfter, blockedBefore, blockedAfter.",
    ),
    Field("dryRun", "boolean", "Whether nothing was changed."),
)

_SETUP = ("txnctl topics create orders", "txnctl producers open orders --producer loader")


@argument("topic", type=TOPIC, help="The topic.")
@option("--waiting", is_flag=True, help="Evict those that wait for their turn as well.")
@changes_store(effect="destroys")
@administrative
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
        plan = to_json(fence_producers(topic, waiting=waiting, dry_run=True))
        context.confirm(f"Fence the producers of {topic}?", plan=list(_lines(plan, done=False)))
    row = to_json(fence_producers(topic, waiting=waiting, dry_run=context.dry_run, reason=context.reason))
    context.show(row, table=lambda shown: _report(context, shown, " --waiting" if waiting else ""))


def _report(context: Context, row: Row, option: str) -> Iterator[str]:
    from storage.values.names import short_topic_name

    yield from dry_run_heading(context, row["dryRun"])
    name = short_topic_name(row["topic"])
    yield f"{'Fence' if row['dryRun'] else 'Fenced'} the producers of {name}"
    yield from _lines(row, done=not row["dryRun"])
    if row["dryRun"]:
        yield ""
        yield f'Run: txnctl producers fence {name}{option} --yes --reason "..."'


def _lines(row: Row, *, done: bool) -> Iterator[str]:
    """The effects, a kind a line."""
    before = "none" if row["topicEpochBefore"] is None else row["topicEpochBefore"]
    yield f"  {'raised' if done else 'raises':8}  the epoch {before} -> {row['topicEpoch']}"
    evicts = "evicted" if done else "evicts"
    if not row["evicted"]:
        yield f"  {evicts:8}  nobody: no producer was connected"
    for producer in row["evicted"]:
        yield f"  {evicts:8}  {_described(producer)}"
    for producer in row["waiting"]:
        yield f"  {'keeps':8}  {_described(producer)}"
    if row["waiting"]:
        yield f"  {'next':8}  {_next(row['waiting'][0])}"
    if row["transactionsAborted"]:
        aborts = "aborted" if done else "aborts"
        yield f"  {aborts:8}  {', '.join([str(txn) for txn in row['transactionsAborted']])}"
        yield f"  {'discards':8}  {plural(row['messagesDiscarded'], 'message')}"
    if row["acknowledgementsReleased"]:
        yield f"  {'releases':8}  {plural(row['acknowledgementsReleased'], 'acknowledgement')}"
    for name, producer in row["unblocks"].items():
        freed = producer["blockedBefore"] - producer["blockedAfter"]
        if freed:
            seen = f"{name} {producer['visibleBefore']:,} -> {producer['visibleAfter']:,} visible"
            yield f"  {'unblocks':8}  {freed:,} of {producer['blockedBefore']:,}  {seen}"


def _described(producer: Row) -> str:
    """`loader (Exclusive, anna@db-2:48211, stopped)`."""
    waits = ", waiting" if producer["isWaiting"] else ""
    is_there = alive(producer)
    word = "alive" if is_there == "yes" else is_there
    process = str(producer["owner"]).partition(" (")[0]
    return f"{producer['producerName']} ({producer['accessMode']}{waits}, {process}, {word})"


def _next(producer: Row) -> str:
    """The next owner of the topic, and the command for a stopped one."""
    if producer["state"] == "stopped":
        return f"{producer['producerName']}, once it is continued: kill -CONT {producer['pid']}; or --waiting evicts it"
    return f"{producer['producerName']} owns the topic within a second"

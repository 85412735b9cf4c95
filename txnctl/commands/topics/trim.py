"""`txnctl topics trim`: remove what is past its retention now."""

from __future__ import annotations

from txnctl.cli.decorators import administrative, argument, changes_store, example, option, output
from txnctl.cli.value_types import TOPIC
from txnctl.fields.change import DRY_RUN
from txnctl.fields.topic import ENDED, FIRST_LEFT, HELD_BY, TRIMMED
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural, size
from txnctl.output.limit_lines import losses
from txnctl.output.screen import dry_run_heading
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.admin.audited_change import Changed
    from storage.admin.topics import OffloadedLedgers, TopicTrimmed
    from txnctl.cli.context import Context

_SETUP = ("txnctl topics create orders", "txnctl topics config orders --retention-time 0")


@argument("topic", type=TOPIC, help="The topic.")
@option(
    "--offloaded",
    metavar="DEST",
    help="Trim what `pipeline offload` has written to DEST, whatever the retention is.",
)
@changes_store()
@administrative
@output(
    fields_of(
        "storage.admin.topics:Changed[TopicTrimmed]",
        {
            "topic": Help("The topic's full name.", kind="id"),
            **TRIMMED,
            **FIRST_LEFT,
            **HELD_BY,
            "offloaded_to": Help(
                "Where the trimmed ledgers are still read from, with --offloaded.", heading=""
            ),
            "clocks_disagree": "Whether the wall clock was moved: then nothing goes for its age.",
            **ENDED,
            **DRY_RUN,
        },
    ),
    name_field="topic",
)
@example("txnctl topics trim orders --dry-run", setup=_SETUP)
@example(
    "txnctl topics trim orders --offloaded offloaded",
    setup=(
        "txnctl topics create orders --ledger-entries 1",
        "txnctl produce orders -m one",
        "txnctl produce orders -m two",
        "txnctl pipeline offload orders offloaded",
    ),
)
@example("txnctl topics trim orders --reason 'the disk is nearly full'", setup=_SETUP)
def trim(context: Context, topic: str, offloaded: str | None) -> None:
    """Remove the messages of a topic that are past its retention.

    Writers trim on the way, and `store gc` trims all topics; this command trims one now. Whole ledgers go, from the
    front on: none with a message that a subscription has not acknowledged, or that an open transaction holds, unless
    the limits are hard (`topics config --retention-hard`); then all but what is not compacted yet. The answer names the
    loss of each subscription, each aborted transaction, and else the subscription, transaction or compacted view that
    is furthest back.

    Messages past the time to live (--ttl) are acknowledged first; subscriptions past --expire-after go.

    With --offloaded the closed ledgers go that are in the files of `txnctl pipeline offload TOPIC DEST`, as far as no
    subscription and no transaction holds them, although the retention would keep them. Every file that is needed is
    read again first, and compared with the manifest. Spark reads such ledgers through the option offloadPath; readers,
    `consume` and new subscriptions begin with the first ledger that is left.
    """
    ledgers = None if offloaded is None else _verified(context, topic, offloaded)
    trimmed = context.store.admin.topics.trim_topic(
        topic, offloaded=ledgers, dry_run=context.dry_run, reason=context.reason
    )
    limits = context.store.reports.topic_retention(topic).in_force
    context.show(trimmed, table=lambda row: _lines(context, row, topic, limits.keeps_everything))


def _verified(context: Context, topic: str, path: str) -> OffloadedLedgers:
    """Find the ledgers that sound files hold.

    Raises:
        OffloadInvalid
    """
    from txnctl.spark.runtime import requirements

    requirements.require_package("pyarrow")
    from txnctl.commands.pipeline.offload import Counting
    from txnctl.spark.ledger_files.trimming import verified_ledgers

    with Counting(context, "Verify") as verified:
        return verified_ledgers(context.store, topic, path, verified)


def _lines(context: Context, row: Changed[TopicTrimmed], topic: str, keeps_everything: bool) -> Iterator[str]:
    yield from dry_run_heading(context, row.dry_run)
    effects = row.effects
    verb = "Would trim" if row.dry_run else "Trimmed"
    yield (
        f"{verb} {plural(effects.trimmed.ledgers, 'ledger')} of {topic}: "
        f"{plural(effects.trimmed.messages, 'message')}, {size(effects.trimmed.bytes)}."
    )
    yield from losses(effects.lost, effects.expired, dry_run=row.dry_run)
    aborted, deleted = ("aborts", "deletes") if row.dry_run else ("aborted", "deleted")
    for txn in effects.transactions_aborted:
        yield f"  {aborted} transaction {txn}"
    for name in effects.subscriptions_expired:
        yield f"  {deleted} subscription {name}, which had no consumer for too long"
    yield f"The first position is {effects.first_position}."
    if effects.offloaded_to is not None:
        yield f"Offloaded ledgers are in {effects.offloaded_to}."
        if effects.held_by is not None:
            yield from held_back(effects)
    elif keeps_everything:
        yield "No retention is set: every message is kept. To set one:"
        yield f"  {line('topics config', topic, retention_time='7d')}"
    elif effects.held_by is not None:
        yield from held_back(effects)
    if effects.clocks_disagree:
        yield "The wall clock was moved: nothing goes for its age."
        yield f"If it is right now: {line('store gc', trust_clock=True)}"


def held_back(effects: TopicTrimmed) -> Iterator[str]:
    """The object that holds messages back, and since when."""
    from storage.values.names import short_topic_name
    from storage.values.timestamps import rfc3339

    hold = effects.held_by
    assert hold is not None, "the caller looked"
    since = rfc3339(hold.since_at_ms)
    if hold.kind == "subscription":
        yield f"Held back by subscription {hold.name}, which has acknowledged all up to"
        yield f"{hold.position}; its next message was published at {since}."
    elif hold.kind == "compaction":
        yield f"Held back by the compacted view, which ends at {hold.name}; the next message"
        yield f"was published at {since}: {line('topics compact', short_topic_name(effects.topic))}"
    else:
        yield f"Held back by transaction {hold.name}, open since {since}."

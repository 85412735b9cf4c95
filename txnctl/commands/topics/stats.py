"""`txnctl topics stats`: one screen about one topic, and the next command to type."""

from __future__ import annotations

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.subscription import SHORT_LEVEL, level_of, living
from txnctl.fields.topic import AS_OF, COMPACTION, COUNTS, CREATED, LIMITS, NAMES
from txnctl.output.column import Column
from txnctl.output.field import Help, fields_of
from txnctl.output.human import UNKNOWN, count, duration, plural, size
from txnctl.output.screen import heading, next_command, section, verdict_section
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.reports.compaction import CompactionRow
    from storage.reports.stats import SubscriptionStats, TopicCounts, TopicStats
    from txnctl.cli.context import Context

    NamedSubscription = tuple[str, SubscriptionStats]
    """The name of a subscription, and the statistics."""

STATS = fields_of(
    "storage.reports.stats:TopicStats",
    {
        **NAMES,
        **AS_OF,
        **CREATED,
        **LIMITS,
        **COUNTS,
        "readable_messages": Help("Messages that a READ_COMMITTED reader from the beginning is handed."),
        "skipped_messages": Help("Aborted messages that it passes over."),
        "blocked_messages": Help("Committed messages that wait behind an open transaction."),
        "oldest_blocked_at_ms": Help("When the first of them was published; null if there is none near."),
        "blocked_by": Help(
            "The open transaction that holds maxReadPosition: txnId, firstPosition, beginAt, beginMs, ageMs, owner, "
            "ownerState, lastUser, lastUserState; null if none is open."
        ),
        "waiting_publishers": Help("Producers that wait for their turn."),
        "publishers": Help(
            "The connected producers: accessMode, producerName, sessionId, epoch, owner, state, alive, "
            "connectedSinceAt and -Ms, lastPublishAt and -Ms, leaseEndsInMs, and the rest of `producers list`."
        ),
        "subscriptions": Help(
            "By name: type, subscriptionIsolationLevel, markDeletePosition, readPosition, msgBacklog = visible + "
            "blocked + delayed + uncommitted, pending, unackedMessages, verdict, consumers, and the rest of "
            "`subscriptions stats`."
        ),
        **COMPACTION,
    },
)

_SUBSCRIPTIONS: tuple[Column[NamedSubscription], ...] = (
    Column("SUBSCRIPTION", "id", lambda named: named[0]),
    Column("TYPE", "text", lambda named: named[1].type, rank=4),
    Column("ISOLATION LEVEL", "text", lambda named: level_of(named[1]), rank=3, short=SHORT_LEVEL),
    Column("MARK-DELETE", "position", lambda named: named[1].mark_delete_position, rank=5),
    Column("VISIBLE", "integer", lambda named: named[1].visible),
    Column("BLOCKED", "integer", lambda named: named[1].blocked),
    Column("PENDING", "integer", lambda named: named[1].pending, rank=2),
    Column("CONSUMERS", "integer", lambda named: living(named[1]), rank=1),
    Column("VERDICT", "text", lambda named: named[1].verdict),
)


@reads_store
@argument("topic", type=TOPIC, help="The topic.")
@output(STATS, name_field="name")
@example("txnctl topics stats orders", setup="txnctl topics create orders")
@example("txnctl topics stats orders -o json", setup="txnctl topics create orders")
def stats(context: Context, topic: str) -> None:
    """Show the messages of a topic, readable and blocked, and the blocking transaction.

    Everything comes from one instant of the store. BLOCKED counts committed messages that READ_COMMITTED cannot read
    yet, because an earlier transaction is still open; the line names that transaction.

    Connected producers follow with epoch and owner; `producers show` has every detail.

    The verdict of a subscription is `ok`, `behind` (slow consumers), `stopped` (stopped consumers keep all that
    is visible), `blocked` (an open transaction is in the way), `mixed` (both), or `no-consumer`.
    """
    context.show(context.store.reports.topic_stats(topic), table=lambda row: report(context, row))


def report(context: Context, stats: TopicStats) -> Iterator[str]:
    """The statistics for people."""
    counts, readable = stats.counts, stats.readable
    stored = f"{plural(counts.msg_count, 'message')}, {plural(counts.marker_count, 'marker')}"
    yield heading(context, stats.name, f"{stored}, {size(counts.storage_size)}", stats.as_of_at_ms)
    yield f"  positions   {'   '.join(_positions(counts))}"
    skipped = f" ({count(readable.skipped_messages)} aborted skipped)" if readable.skipped_messages else ""
    yield f"  readable    {count(readable.readable_messages)} committed{skipped}"
    if readable.blocked_messages:
        yield f"  {context.style('BLOCKED', 'bold', 'red')}     {_blocked(stats)}"
    if counts.ongoing_txn_count:
        in_what = plural(counts.ongoing_txn_count, "open transaction")
        yield f"  uncommitted {count(counts.uncommitted_messages)} in {in_what}"
    if stats.compaction is not None and stats.compaction.horizon is not None:
        yield f"  compacted   {_compacted(stats.compaction)}"
    yield from _publishers(context, stats)
    yield from _subscriptions(context, stats.subscriptions)
    advice = _advice(stats)
    if advice is not None:
        yield ""
        yield next_command(context, advice)


def _advice(stats: TopicStats) -> str | None:
    """The next command: about blocked readers first, else about waiting producers."""
    if stats.readable.blocked_messages and stats.blocked_by is not None:
        return line("transactions explain", stats.blocked_by.txn_id)
    if stats.waiting_publishers:
        return line("producers show", stats.name)
    return None


def _positions(counts: TopicCounts) -> Iterator[str]:
    if counts.first_position is not None:
        yield f"first {counts.first_position}"
    yield f"maxReadPosition {counts.max_read_position}"
    yield f"lastConfirmedEntry {counts.last_confirmed_entry}"
    if counts.topic_epoch is not None:
        yield f"topicEpoch {counts.topic_epoch}"


def _blocked(stats: TopicStats) -> str:
    blocked, oldest_ms, waiting = stats.readable.blocked_messages, stats.readable.oldest_blocked_at_ms, ""
    if oldest_ms is not None:
        waiting = f", oldest waiting {duration(max(0, stats.as_of_at_ms - oldest_ms))}"
    behind = stats.blocked_by.txn_id if stats.blocked_by is not None else UNKNOWN
    return f"{count(blocked)} committed{waiting}, behind transaction {behind}"


def _compacted(row: CompactionRow) -> str:
    """The compacted view in words."""
    kept = f"{plural(row.messages, 'message')}, {size(row.bytes)}"
    return f"up to {row.horizon}: {kept}; {size(row.uncompacted_bytes)} behind"


def _publishers(context: Context, stats: TopicStats) -> Iterator[str]:
    """Every connected producer on a line, and how many wait."""
    from txnctl.fields.producer import columns, table

    if stats.publishers:
        yield ""
        yield from section(context, table(context, stats.publishers, columns(stats.as_of_at_ms), indent=2))
    if stats.waiting_publishers:
        if not stats.publishers:
            yield ""
        number = plural(stats.waiting_publishers, "producer")
        yield f"  {number} {'waits' if stats.waiting_publishers == 1 else 'wait'} for the topic"


def _subscriptions(context: Context, subscriptions: dict[str, SubscriptionStats]) -> Iterator[str]:
    """Every subscription on a line; the verdict, the last column, in colour."""
    if not subscriptions:
        return
    yield ""
    yield from verdict_section(
        context, context.table_of(list(subscriptions.items()), _SUBSCRIPTIONS, indent=2)
    )

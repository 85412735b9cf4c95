"""`txnctl topics stats`: one screen about one topic, and the next command to type."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.subscription import level_of
from txnctl.fields.topic import AS_OF, COUNTS, CREATED, LIMITS, NAMES
from txnctl.output.field import Field
from txnctl.output.human import count, duration, plural, size
from txnctl.output.screen import heading, next_command, section, verdict_section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.reports.stats import TopicStats
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

STATS = (
    *NAMES,
    *AS_OF,
    *CREATED,
    *LIMITS,
    *COUNTS,
    Field(
        "readableMessages", "integer", "Messages that a READ_COMMITTED reader from the beginning is handed."
    ),
    Field("skippedMessages", "integer", "Aborted messages that it passes over."),
    Field("blockedMessages", "integer", "Committed messages that wait behind an open transaction."),
    Field("oldestBlockedAt", "time", "When the first of them was published; null if there is none near."),
    Field("oldestBlockedMs", "timeMs", "The same as an integer.", heading=""),
    Field(
        "blockedBy",
        "map",
        "The open transaction that holds maxReadPosition: txnId, firstPosition, beginAt, beginMs, ageMs, owner, "
        "ownerState; null if none is open.",
    ),
    Field("waitingPublishers", "integer", "Producers that wait for their turn."),
    Field(
        "publishers",
        "list",
        "The connected producers: accessMode, producerName, sessionId, epoch, owner, state, alive, connectedSinceAt "
        "and -Ms, lastPublishAt and -Ms, leaseEndsInMs, and the rest of `producers list`.",
    ),
    Field(
        "subscriptions",
        "map",
        "By name: type, subscriptionIsolationLevel, markDeletePosition, readPosition, msgBacklog = visible + blocked "
        "+ uncommitted, pending, unackedMessages, verdict, consumers, and the rest of `subscriptions stats`.",
    ),
)

SUBSCRIPTION_COLUMNS = (
    Field("name", "id", "The subscription.", heading="SUBSCRIPTION"),
    Field("shortType", "text", "Its type.", heading="TYPE"),
    Field("subscriptionIsolationLevel", "text", "Its isolation level.", heading="ISOLATION LEVEL"),
    Field("markDeletePosition", "position", "Everything up to here is acknowledged.", heading="MARK-DELETE"),
    Field("visible", "integer", "Messages it may be handed."),
    Field("blocked", "integer", "Committed messages behind an open transaction."),
    Field("pending", "integer", "Acknowledgements that wait for their transaction."),
    Field("living", "integer", "Consumers attached.", heading="CONSUMERS"),
    Field("verdict", "text", "ok, behind, blocked, mixed, or no-consumer."),
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

    The verdict of a subscription is `ok`, `behind` (slow consumers), `blocked` (an open transaction is in the way),
    `mixed` (both), or `no-consumer`.
    """
    typed = context.store.reports.topic_stats(topic)
    context.show(to_json(typed), table=lambda row: _screen(context, row, typed))


def _screen(context: Context, row: Row, typed: TopicStats) -> Iterator[str]:
    yield heading(
        context,
        row["name"],
        f"{plural(row['msgCount'], 'message')}, {plural(row['markerCount'], 'marker')}, {size(row['storageSize'])}",
        row["asOfMs"],
    )
    yield f"  positions   {'   '.join(_positions(row))}"
    skipped = f" ({count(row['skippedMessages'])} aborted skipped)" if row["skippedMessages"] else ""
    yield f"  readable    {count(row['readableMessages'])} committed{skipped}"
    if row["blockedMessages"]:
        yield f"  {context.style('BLOCKED', 'bold', 'red')}     {_blocked(row)}"
    if row["ongoingTxnCount"]:
        in_what = plural(row["ongoingTxnCount"], "open transaction")
        yield f"  uncommitted {count(row['uncommittedMessages'])} in {in_what}"
    yield from _publishers(context, row, typed)
    yield from _subscriptions(context, row["subscriptions"], typed)
    advice = _advice(row)
    if advice is not None:
        yield ""
        yield next_command(context, advice)


def _advice(row: Row) -> str | None:
    """The next command: about blocked readers first, else about waiting producers."""
    if row["blockedMessages"]:
        return f"txnctl transactions explain {row['blockedBy']['txnId']}"
    if row["waitingPublishers"]:
        return f"txnctl producers show {row['name']}"
    return None


def _positions(row: Row) -> Iterator[str]:
    if row["firstPosition"] is not None:
        yield f"first {row['firstPosition']}"
    yield f"maxReadPosition {row['maxReadPosition']}"
    yield f"lastConfirmedEntry {row['lastConfirmedEntry']}"
    if row["topicEpoch"] is not None:
        yield f"topicEpoch {row['topicEpoch']}"


def _blocked(row: Row) -> str:
    waiting = ""
    if row["oldestBlockedMs"] is not None:
        waiting = f", oldest waiting {duration(max(0, row['asOfMs'] - row['oldestBlockedMs']))}"
    return (
        f"{count(row['blockedMessages'])} committed{waiting}, behind transaction {row['blockedBy']['txnId']}"
    )


def _publishers(context: Context, row: Row, typed: TopicStats) -> Iterator[str]:
    """Every connected producer on a line, and how many wait."""
    from txnctl.fields.producer import columns, table

    if row["publishers"]:
        yield ""
        yield from section(context, table(context, typed.publishers, columns(row["asOfMs"])))
    if row["waitingPublishers"]:
        if not row["publishers"]:
            yield ""
        number = plural(row["waitingPublishers"], "producer")
        yield f"  {number} {'waits' if row['waitingPublishers'] == 1 else 'wait'} for the topic"


def _subscriptions(context: Context, subscriptions: dict[str, Row], typed: TopicStats) -> Iterator[str]:
    """Every subscription on a line; the verdict, the last column, in colour."""
    rows = [
        {
            **subscription,
            "name": name,
            "subscriptionIsolationLevel": level_of(typed.subscriptions[name]),
            "shortType": "Excl." if subscription["type"] == "Exclusive" else subscription["type"],
            "living": sum(
                consumer["state"] in ("alive", "stopped") for consumer in subscription["consumers"]
            ),
        }
        for name, subscription in subscriptions.items()
    ]
    if not rows:
        return
    yield ""
    yield from verdict_section(
        context, [row["verdict"] for row in rows], context.table_of(rows, SUBSCRIPTION_COLUMNS, folds=False)
    )

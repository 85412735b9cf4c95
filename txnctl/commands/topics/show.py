"""`txnctl topics show`: the facts about one topic."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.topic import AS_OF, COMPACTION, COUNTS, CREATED, LIMITS, NAMES, OTHER_LIMITS, RETENTION
from txnctl.output.field import Help, fields_of
from txnctl.output.shell import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.reports.compaction import CompactionRow
    from storage.values.position import Position
    from txnctl.cli.context import Context


class ShownTopic(NamedTuple):
    """A topic with the names of its producers and subscriptions."""

    topic: str
    name: str
    created_at_ms: int
    ledger_entries_max: int | None
    ledger_bytes_max: int | None
    ledger_age_max_ms: int | None
    retention_time_ms: int | None
    retention_bytes: int | None
    retention_hard: str
    ttl_ms: int | None
    expire_after_ms: int | None
    held_by: str | None
    held_since_at_ms: int | None
    held_without_consumer_since_at_ms: int | None
    lets_go_with: str | None
    msg_count: int
    marker_count: int
    storage_size: int
    msg_in_counter: int
    bytes_in_counter: int
    first_position: Position | None
    max_read_position: Position
    last_confirmed_entry: Position
    topic_epoch: int | None
    ongoing_txn_count: int
    uncommitted_messages: int
    aborted_txn_count: int
    aborted_messages: int
    last_publish_at_ms: int | None
    publishers: list[str]
    waiting_publishers: int
    subscriptions: list[str]
    compaction: CompactionRow | None
    as_of_at_ms: int


SHOWN = fields_of(
    ShownTopic,
    {
        **NAMES,
        **CREATED,
        **LIMITS,
        **RETENTION,
        **OTHER_LIMITS,
        "held_by": Help(
            "The subscription, transaction or compacted view that holds messages back; null if none does.",
            heading="HELD BY",
        ),
        "held_since_at_ms": Help(
            "The publish time of the first message that it has not acknowledged or compacted, or the begin.",
            heading="HELD SINCE",
        ),
        "held_without_consumer_since_at_ms": Help(
            "When the last consumer of the holding subscription left; null while one is attached.",
            heading="NO CONSUMER SINCE",
        ),
        "lets_go_with": Help(
            "The command that ends the hold, of a transaction or of a subscription without a consumer.",
            heading="LETS GO WITH",
        ),
        **COUNTS,
        "publishers": Help("The names of the producers connected to it."),
        "waiting_publishers": Help("Producers that wait for their turn.", heading="WAITING PRODUCERS"),
        "subscriptions": Help("The names of its subscriptions."),
        **COMPACTION,
        **AS_OF,
    },
)


@argument("topic", type=TOPIC, help="The topic.")
@reads_store
@output(SHOWN, name_field="name")
@example("txnctl topics show orders", setup="txnctl topics create orders")
def show(context: Context, topic: str) -> None:
    """Show the facts about one topic.

    `topics stats` shows backlogs and blocked messages, `topics stats-internal` the ledgers and cursors.
    """
    stats, retention = context.store.reports.topic_stats(topic), context.store.reports.topic_retention(topic)
    counts, held = stats.counts, retention.held_by
    context.show(
        ShownTopic(
            topic=stats.topic,
            name=stats.name,
            created_at_ms=stats.created_at_ms,
            ledger_entries_max=stats.ledger_entries_max,
            ledger_bytes_max=stats.ledger_bytes_max,
            ledger_age_max_ms=stats.ledger_age_max_ms,
            retention_time_ms=retention.in_force.time_ms,
            retention_bytes=retention.in_force.bytes,
            held_by=None if held is None else f"{held.kind} {held.name}",
            retention_hard=retention.in_force.hard or "off",
            ttl_ms=retention.in_force.ttl_ms,
            expire_after_ms=retention.in_force.expire_after_ms,
            held_since_at_ms=None if held is None else held.since_at_ms,
            held_without_consumer_since_at_ms=retention.held_without_consumer_since_at_ms,
            lets_go_with=None if retention.lets_go_with is None else command(retention.lets_go_with),
            msg_count=counts.msg_count,
            marker_count=counts.marker_count,
            storage_size=counts.storage_size,
            msg_in_counter=counts.msg_in_counter,
            bytes_in_counter=counts.bytes_in_counter,
            first_position=counts.first_position,
            max_read_position=counts.max_read_position,
            last_confirmed_entry=counts.last_confirmed_entry,
            topic_epoch=counts.topic_epoch,
            ongoing_txn_count=counts.ongoing_txn_count,
            uncommitted_messages=counts.uncommitted_messages,
            aborted_txn_count=counts.aborted_txn_count,
            aborted_messages=counts.aborted_messages,
            last_publish_at_ms=counts.last_publish_at_ms,
            publishers=[publisher.producer_name for publisher in stats.publishers],
            waiting_publishers=stats.waiting_publishers,
            subscriptions=list(stats.subscriptions),
            compaction=stats.compaction,
            as_of_at_ms=stats.as_of_at_ms,
        )
    )

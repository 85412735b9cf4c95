"""`txnctl topics`: create topics, look into them, delete them."""

from __future__ import annotations

import click

from txnctl.cli.declaration import Group
from txnctl.cli.decorators import argument, changes_store, example, option, output, reads_store
from txnctl.cli.value_types import DURATION_MS, SIZE, TOPIC
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

topics = Group(
    "topics",
    "Create topics, look into them, delete them.",
    elsewhere={
        "stats": (
            "txnctl.commands.topics.stats:stats",
            "Show what a topic holds, what is readable, and what is blocked by whom.",
        ),
        "stats-internal": (
            "txnctl.commands.topics.stats_internal:stats_internal",
            "Show the ledgers, cursors and aborted transactions of a topic.",
        ),
        "positions": (
            "txnctl.commands.topics.positions:positions",
            "Show how ledgers, maxReadPosition, open transactions and cursors lie to each other.",
        ),
        "peek": (
            "txnctl.commands.topics.messages:peek",
            "Show messages without consuming them.",
        ),
        "log": (
            "txnctl.commands.topics.log:log",
            "Show the entries of a topic as they are stored, transaction markers too.",
        ),
        "last-message-id": (
            "txnctl.commands.topics.messages:last_message_id",
            "Print the id of the last message that is visible.",
        ),
        "delete": (
            "txnctl.commands.topics.delete:delete",
            "Delete a topic with its messages and subscriptions.",
        ),
    },
)

NAMES = (
    Field("topic", "id", "The topic's full name.", heading=""),
    Field("name", "id", "The same, short in the default namespace.", heading="TOPIC"),
)
"""A topic in every report about topics."""

COUNTS = (
    Field("msgCount", "integer", "Messages stored; transaction markers are none.", heading="MESSAGES"),
    Field("markerCount", "integer", "Transaction markers stored.", heading=""),
    Field("storageSize", "size", "Bytes stored.", heading="SIZE"),
    Field("msgInCounter", "integer", "Messages ever appended.", heading=""),
    Field("bytesInCounter", "size", "Bytes ever appended.", heading=""),
    Field("firstPosition", "position", "The first entry still stored; null in an empty topic.", heading=""),
    Field("maxReadPosition", "position", "How far READ_COMMITTED reads."),
    Field(
        "lastConfirmedEntry", "position", "The last entry written, markers included.", heading="LAST ENTRY"
    ),
    Field(
        "topicEpoch",
        "integer",
        "The epoch of the last exclusive producer; null if there was none.",
        heading="EPOCH",
    ),
    Field("ongoingTxnCount", "integer", "Open transactions with messages here.", heading="OPEN TXNS"),
    Field("uncommittedMessages", "integer", "Messages of open transactions.", heading="UNCOMMITTED"),
    Field("abortedTxnCount", "integer", "Aborted transactions with messages here.", heading=""),
    Field("abortedMessages", "integer", "Messages of aborted transactions.", heading=""),
    Field("lastPublishAt", "time", "When the last message was published.", heading="LAST PUBLISH"),
    Field("lastPublishMs", "timeMs", "The same as an integer.", heading=""),
)
"""What every report about a topic counts."""

CREATED = (
    Field("createdAt", "time", "When the topic was created.", heading="CREATED"),
    Field("createdMs", "timeMs", "The same as an integer.", heading=""),
)

LIMITS = (
    Field("ledgerEntriesMax", "integer", "Entries at which a ledger is closed.", heading="LEDGER ENTRIES"),
    Field("ledgerBytesMax", "size", "Bytes at which a ledger is closed.", heading="LEDGER BYTES"),
    Field("ledgerAgeMaxMs", "duration", "Age at which a ledger is closed.", heading="LEDGER AGE"),
)

AS_OF = (
    Field("asOfAt", "time", "The moment of which the report speaks.", heading="AS OF"),
    Field("asOfMs", "timeMs", "The same as an integer.", heading=""),
)


@topics.command("list")
@reads_store
@output((*NAMES, *COUNTS), name_field="name")
@example("txnctl topics list", setup="txnctl topics create orders")
@example("txnctl topics list -o name")
def list_(context: Context) -> None:
    """List the topics."""
    rows = context.store.reports.list_topics()
    if not rows and context.output == "table":
        context.note("there are no topics yet; txnctl topics create makes one")
    context.show_list(rows)


@topics.command("create")
@argument("topic", type=TOPIC, help="The topic: a short name, or persistent://tenant/namespace/topic.")
@option(
    "--ledger-entries",
    type=click.IntRange(1),
    metavar="N",
    help="Close a ledger when it has so many entries. [default: 50000]",
)
@option(
    "--ledger-bytes",
    type=SIZE,
    metavar="SIZE",
    help="Close a ledger when it has so many bytes. [default: 256M]",
)
@option(
    "--ledger-age",
    type=DURATION_MS,
    metavar="DURATION",
    help="Close a ledger when it was opened so long ago. [default: 1d]",
)
@changes_store()
@output(NAMES, name_field="name")
@example("txnctl topics create orders")
@example("txnctl topics create persistent://bank/core/payments --ledger-bytes 64M --ledger-age 1h")
def create(
    context: Context,
    topic: str,
    ledger_entries: int | None,
    ledger_bytes: int | None,
    ledger_age: int | None,
) -> None:
    """Create an empty topic.

    A name is made of letters, digits and -_.=: and `orders` is short for persistent://public/default/orders. A topic
    is a sequence of ledgers: at the first of the three limits a ledger is closed for good, and the next one opened.
    """
    from storage.values.names import full_topic_name, short_topic_name

    context.store.create_topic(
        topic,
        ledger_entries_max=ledger_entries,
        ledger_bytes_max=ledger_bytes,
        ledger_age_max_ms=ledger_age,
    )
    full = full_topic_name(topic)
    context.show(
        {"topic": full, "name": short_topic_name(full)}, table=lambda row: f"Created topic {row['name']}."
    )


SHOWN = (
    *NAMES,
    *CREATED,
    *LIMITS,
    *COUNTS,
    Field("publishers", "list", "The names of the producers connected to it."),
    Field("waitingPublishers", "integer", "Producers that wait for their turn.", heading="WAITING PRODUCERS"),
    Field("subscriptions", "list", "The names of its subscriptions."),
    *AS_OF,
)


@topics.command("show")
@argument("topic", type=TOPIC, help="The topic.")
@reads_store
@output(SHOWN, name_field="name")
@example("txnctl topics show orders", setup="txnctl topics create orders")
def show(context: Context, topic: str) -> None:
    """Show the facts about one topic.

    `topics stats` shows what it holds and who waits for what, `topics stats-internal` how it is stored.
    """
    stats = context.store.reports.topic_stats(topic)
    stats["subscriptions"] = list(stats["subscriptions"])
    stats["publishers"] = [each["producerName"] for each in stats["publishers"]]
    context.show({field.name: stats[field.name] for field in SHOWN})

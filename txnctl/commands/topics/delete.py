"""`txnctl topics delete`."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import administrative, argument, changes_store, example, forcible, output
from txnctl.cli.value_types import TOPIC
from txnctl.output.field import Field
from txnctl.output.human import plural, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

DELETED = (
    Field("topic", "id", "The topic's full name."),
    Field("messages", "integer", "Messages that went with it."),
    Field("bytes", "size", "Their bytes.", heading="SIZE"),
    Field("subscriptions", "list", "Subscriptions that went with it."),
    Field("consumersEvicted", "list", "Consumers that were attached to them."),
    Field("producersEvicted", "list", "Producers that were connected, or waited."),
    Field("transactionsAborted", "list", "Open transactions that held something there, aborted first."),
    Field("dryRun", "boolean", "Whether nothing was changed."),
)


@argument("topic", type=TOPIC, help="The topic.")
@changes_store(effect="destroys")
@administrative
@forcible(
    "Delete it although consumers or producers are there, or open transactions hold something: these are aborted."
)
@output(DELETED, name_field="topic")
@example("txnctl topics delete orders --dry-run", setup="txnctl topics create orders")
@example(
    "txnctl topics delete orders --yes --reason 'moved to the other store'",
    setup="txnctl topics create orders",
)
def delete(context: Context, topic: str) -> None:
    """Delete a topic, the messages and the subscriptions on it.

    The command refuses while consumers are attached or producers connected, and while open transactions have messages
    or acknowledgements on the topic. A new topic under the same name continues the ledger ids and epochs of the
    deleted topic.
    """
    delete_topic = context.store.admin.topics.delete_topic
    plan = to_json(delete_topic(topic, force=context.force, dry_run=True))
    context.confirm(f"Delete topic {topic}?", plan=_lines(plan))
    done = plan
    if not context.dry_run:
        done = to_json(delete_topic(topic, force=context.force, reason=context.reason))
    context.show(done, table=lambda row: _report(row, topic, context.force))


def _report(row: Row, topic: str, force: bool) -> list[str]:
    if not row["dryRun"]:
        return _lines(row)
    command = f'txnctl topics delete {topic}{" --force" if force else ""} --yes --reason "..."'
    return ["DRY RUN: nothing was changed.", "", *_lines(row), "", f"Run: {command}"]


def _lines(row: Row) -> list[str]:
    """The deleted objects, a kind a line: `removes` in a dry run, `removed` afterwards."""
    from storage.values.names import short_topic_name

    tense = "s" if row["dryRun"] else "d"
    went = f"{plural(row['messages'], 'message')}, {size(row['bytes'])}"
    lines = [f"  remove{tense}   topic {short_topic_name(row['topic'])}: {went}"]
    for name, noun, what in (
        ("subscriptions", "subscription", f"remove{tense}"),
        ("consumersEvicted", "consumer", "evicts" if tense == "s" else "evicted"),
        ("producersEvicted", "producer", "evicts" if tense == "s" else "evicted"),
        ("transactionsAborted", "open transaction", "aborts" if tense == "s" else "aborted"),
    ):
        if row[name]:
            lines.append(f"  {what:<9} {plural(len(row[name]), noun)}: {', '.join(row[name])}")
    return lines

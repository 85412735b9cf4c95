"""`txnctl topics delete`."""

from __future__ import annotations

from txnctl.cli.decorators import (
    administrative,
    argument,
    asks,
    changes_store,
    example,
    forcible,
    missing_ok,
    output,
)
from txnctl.cli.value_types import TOPIC
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural, size
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.admin.audited_change import Changed
    from storage.admin.topics import TopicDeleted
    from txnctl.cli.context import Context

_VERBS_OF_PLAN = ("removes", "evicts", "aborts")
_VERBS_OF_CHANGE = ("removed", "evicted", "aborted")

DELETED = fields_of(
    "storage.admin.topics:Changed[TopicDeleted]",
    {
        "topic": Help("The topic's full name.", kind="id"),
        "messages": Help("Messages that went with it."),
        "bytes": Help("Their bytes.", kind="size", heading="SIZE"),
        "compacted_messages": Help("Messages of the compacted view that went with it."),
        "subscriptions": Help("Subscriptions that went with it."),
        "consumers_evicted": Help("Consumers that were attached to them."),
        "producers_evicted": Help("Producers that were connected, or waited."),
        "transactions_aborted": Help("Open transactions that held something there, aborted first."),
        "dry_run": Help("Whether nothing was changed."),
    },
)


@argument("topic", type=TOPIC, help="The topic.")
@changes_store(effect="destroys")
@administrative
@asks
@forcible(
    "Delete it although consumers or producers are there, or open transactions hold something: these are aborted."
)
@missing_ok
@output(DELETED, name_field="topic")
@example("txnctl topics delete orders --dry-run", setup="txnctl topics create orders")
@example(
    "txnctl topics delete orders --yes --reason 'moved to the other store'",
    setup="txnctl topics create orders",
)
@example("txnctl topics delete orders --yes --missing-ok")
def delete(context: Context, topic: str) -> None:
    """Delete a topic, the messages and the subscriptions on it.

    The command refuses while consumers are attached or producers connected, and while open transactions have messages
    or acknowledgements on the topic. A new topic under the same name continues the ledger ids and epochs of the
    deleted topic.
    """
    delete_topic = context.store.admin.topics.delete_topic
    plan = delete_topic(topic, force=context.force, dry_run=True)
    context.confirm(f"Delete topic {topic}?", plan=_lines(plan))
    done = plan
    if not context.dry_run:
        done = delete_topic(topic, force=context.force, reason=context.reason)
    context.show(done, table=lambda row: _report(row, topic, context.force))


def _report(row: Changed[TopicDeleted], topic: str, force: bool) -> list[str]:
    if not row.dry_run:
        return _lines(row)
    command = line("topics delete", topic, force=force, yes=True, reason=...)
    return ["DRY RUN: nothing was changed.", "", *_lines(row), "", f"Run: {command}"]


def _lines(row: Changed[TopicDeleted]) -> list[str]:
    """The deleted objects, a kind a line: `removes` in a dry run, `removed` afterwards."""
    from storage.values.names import short_topic_name

    removes, evicts, aborts = _VERBS_OF_PLAN if row.dry_run else _VERBS_OF_CHANGE
    went = f"{plural(row.effects.messages, 'message')}, {size(row.effects.bytes)}"
    lines = [f"  {removes}   topic {short_topic_name(row.effects.topic)}: {went}"]
    if row.effects.compacted_messages:
        lines.append(f"  {removes}   its compacted view: {plural(row.effects.compacted_messages, 'message')}")
    for names, noun, verb in (
        (row.effects.subscriptions, "subscription", removes),
        (row.effects.consumers_evicted, "consumer", evicts),
        (row.effects.producers_evicted, "producer", evicts),
        (row.effects.transactions_aborted, "open transaction", aborts),
    ):
        if names:
            lines.append(f"  {verb:<9} {plural(len(names), noun)}: {', '.join(map(str, names))}")
    return lines

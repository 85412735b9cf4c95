"""`txnctl topics truncate`: remove every message of a topic."""

from __future__ import annotations

from txnctl.cli.decorators import administrative, argument, asks, changes_store, example, forcible, output
from txnctl.cli.value_types import TOPIC
from txnctl.fields.change import DRY_RUN
from txnctl.fields.topic import FIRST_LEFT, TRIMMED
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.admin.audited_change import Changed
    from storage.admin.topics import TopicTruncated
    from txnctl.cli.context import Context

_SETUP = ("txnctl topics create orders", "txnctl produce orders -m old")


@argument("topic", type=TOPIC, help="The topic.")
@changes_store(effect="destroys")
@administrative
@asks
@forcible("Abort the open transactions that have messages or acknowledgements there.")
@output(
    fields_of(
        "storage.admin.topics:Changed[TopicTruncated]",
        {
            "topic": Help("The topic's full name.", kind="id"),
            **TRIMMED,
            **FIRST_LEFT,
            "subscriptions": "Subscriptions moved to the end.",
            "compacted_messages": "Messages of the compacted view that went with it.",
            "messages_withdrawn": "Messages in flight that were taken back from consumers.",
            "transactions_aborted": "Open transactions that held something there, aborted first.",
            **DRY_RUN,
        },
    ),
    name_field="topic",
)
@example("txnctl topics truncate orders --dry-run", setup=_SETUP)
@example("txnctl topics truncate orders --yes --reason 'test data'", setup=_SETUP)
def truncate(context: Context, topic: str) -> None:
    """Remove every message of a topic, and move every subscription to the end.

    The topic stays, with its subscriptions and producers: positions, epochs and sequence ids go on counting. The
    command refuses while an open transaction has messages or acknowledgements on the topic.
    """
    truncate_topic = context.store.admin.topics.truncate_topic
    plan = truncate_topic(topic, force=context.force, dry_run=True)
    context.confirm(f"Remove every message of topic {topic}?", plan=list(_lines(plan)))
    done = plan
    if not context.dry_run:
        done = truncate_topic(topic, force=context.force, reason=context.reason)
    context.show(done, table=_report)


def _report(row: Changed[TopicTruncated]) -> Iterator[str]:
    if row.dry_run:
        yield from ("DRY RUN: nothing was changed.", "")
    yield from _lines(row)


def _lines(row: Changed[TopicTruncated]) -> Iterator[str]:
    effects, is_plan = row.effects, row.dry_run
    removed, moved, aborted = ("removes", "moves", "aborts") if is_plan else ("removed", "moved", "aborted")
    went = f"{plural(effects.trimmed.messages, 'message')}, {size(effects.trimmed.bytes)}"
    yield f"  {removed:<8} {went}; the first position is {effects.first_position}"
    if effects.compacted_messages:
        yield f"  {removed:<8} the compacted view: {plural(effects.compacted_messages, 'message')}"
    if effects.subscriptions:
        names = ", ".join(effects.subscriptions)
        yield f"  {moved:<8} {plural(len(effects.subscriptions), 'subscription')} to the end: {names}"
    if effects.transactions_aborted:
        ids = ", ".join(map(str, effects.transactions_aborted))
        yield f"  {aborted:<8} {plural(len(effects.transactions_aborted), 'open transaction')}: {ids}"

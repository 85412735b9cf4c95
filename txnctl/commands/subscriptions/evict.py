"""`txnctl subscriptions evict`: detach consumers, release the messages in flight."""

from __future__ import annotations

from txnctl.cli.decorators import administrative, argument, changes_store, example, output
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.fields.change import DRY_RUN
from txnctl.fields.subscription import NAMES, name_of, short_topic
from txnctl.output.field import fields_of
from txnctl.output.human import plural
from txnctl.output.screen import dry_run_heading, next_command
from txnctl.output.shell import command, line, spell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.admin.audited_change import Changed, OfSubscription
    from storage.admin.subscriptions import ConsumersEvicted
    from storage.reports.quiet_consumers import QuietConsumer
    from txnctl.cli.context import Context

    Evicted = Changed[OfSubscription[ConsumersEvicted]]

_SETUP = ("txnctl topics create orders", "txnctl subscriptions create orders billing")

EVICTED = fields_of(
    "storage.admin.subscriptions:Changed[OfSubscription[ConsumersEvicted]]",
    {
        **NAMES,
        "evicted": "The consumers that were detached.",
        "messages_released": "Messages they held in flight, which others are handed now.",
        **DRY_RUN,
    },
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@argument("consumer", required=False, help="Only the consumer of this name. [default: all of them]")
@changes_store()
@administrative
@output(EVICTED, name_field="subscription")
@example("txnctl subscriptions evict orders billing --dry-run", setup=_SETUP)
@example("txnctl subscriptions evict orders billing --reason 'hangs since the deploy'", setup=_SETUP)
def evict(context: Context, topic: str, subscription: str, consumer: str | None) -> None:
    """Detach consumers and redeliver the messages in flight.

    For a consumer that is stopped or hangs and holds messages in flight. Messages received already may be delivered a
    second time, to another consumer; later acknowledgements of the evicted consumer are refused.

    Where all that a consumer is stuck with is of one key, the next worker gets the same message first: look at the
    message before.
    """
    stuck = _stuck_at_one_key(context, topic, subscription, consumer)
    row = context.store.admin.subscriptions.evict_consumers(
        topic, subscription, consumer, dry_run=context.dry_run, reason=context.reason
    )
    context.show(row, table=lambda shown: _evicted(context, shown, [consumer] if consumer else [], stuck))


def _stuck_at_one_key(
    context: Context, topic: str, subscription: str, consumer: str | None
) -> QuietConsumer | None:
    """The consumer to evict that is stuck at one key for longest, before the eviction; None if none is."""
    from contextlib import suppress

    from storage.errors import TopicNotFound

    # The eviction itself names what is missing.
    with suppress(TopicNotFound):
        for row in context.store.reports.list_quiet_consumers(topic):
            is_meant = row.subscription == subscription and consumer in (None, row.consumer_name)
            if is_meant and row.key_messages is not None:
                return row
    return None


def _evicted(
    context: Context, row: Evicted, consumer: list[str], stuck: QuietConsumer | None
) -> Iterator[str]:
    yield from dry_run_heading(context, row.dry_run)
    names, change = row.effects, row.effects.change
    if not change.evicted:
        yield f"Nobody is attached to {name_of(names)}."
        return
    verb = "Would evict" if row.dry_run else "Evicted"
    released = plural(change.messages_released, "message")
    yield f"{verb} {', '.join(change.evicted)} from {name_of(names)}; {released} in flight released."
    if stuck is not None:
        yield from _one_key(context, stuck, dry_run=row.dry_run)
    elif row.dry_run:
        yield ""
        yield f"Run: {line('subscriptions evict', short_topic(names), names.subscription, *consumer, reason=...)}"


def _one_key(context: Context, stuck: QuietConsumer, *, dry_run: bool) -> Iterator[str]:
    """The advice of `doctor` in place of the eviction; after the eviction, the message that the next worker gets."""
    from storage.reports.quiet_findings import peek_of, sentence, why_one_key

    yield ""
    yield f"{sentence(stuck)}."
    yield (
        spell(why_one_key(stuck))
        if dry_run
        else f"The next worker gets {stuck.first_message_id} first and may stick at it too."
    )
    yield ""
    yield next_command(context, command(peek_of(stuck)))

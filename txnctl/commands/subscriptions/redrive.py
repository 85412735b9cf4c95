"""`txnctl subscriptions redrive`: give dead letters back to their subscription."""

from __future__ import annotations

from txnctl.cli.decorators import administrative, argument, changes_store, example, option, output
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.cli.whole_number import WholeNumber
from txnctl.fields.change import DRY_RUN
from txnctl.fields.subscription import NAMES, name_of
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.admin.audited_change import Changed, OfSubscription
    from storage.admin.redrive import DeadLettersRedriven
    from txnctl.cli.context import Context

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing --from earliest --max-redeliver-count 0",
    "txnctl produce orders -m poison",
    "txnctl consume orders -s billing -n 1 --exec false --on-error retry --retry-delay 0s --timeout 1s || true",
    "txnctl consume orders -s billing -n 1 --timeout 0s || true",
)

REDRIVEN = fields_of(
    "storage.admin.redrive:Changed[OfSubscription[DeadLettersRedriven]]",
    {
        **NAMES,
        "dead_letter_topic": Help("The topic with the dead letters."),
        "redriven": Help("Dead letters given back to the subscription."),
        "in_backlog": Help("Dead letters whose message is in the backlog already, after a seek."),
        "originals_gone": Help(
            "Dead letters whose message was trimmed away, or belongs to an aborted transaction."
        ),
        **DRY_RUN,
    },
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@option(
    "-n", "--count", type=WholeNumber(1), metavar="N", help="At most so many, oldest first. [default: all]"
)
@option("--dead-letter-topic", type=TOPIC, help="A former dead-letter topic. [default: the subscription's]")
@changes_store()
@administrative
@output(REDRIVEN, name_field="subscription")
@example("txnctl subscriptions redrive orders billing --dry-run", setup=_SETUP)
@example("txnctl subscriptions redrive orders billing -n 100 --reason 'mended'", setup=_SETUP)
def redrive(
    context: Context, topic: str, subscription: str, count: int | None, dead_letter_topic: str | None
) -> None:
    """Give dead letters back to their subscription.

    The messages are delivered to this subscription again and to no second one, with no redeliveries counted. Each
    dead letter goes back once; the copy stays in the log of the dead-letter topic. Run again after a stop half-way,
    the command goes on behind the last letter given back.
    """
    row = context.store.admin.subscriptions.redrive_dead_letters(
        topic,
        subscription,
        count,
        dead_letter_topic=dead_letter_topic,
        dry_run=context.dry_run,
        reason=context.reason,
    )
    context.show(row, table=lambda shown: _lines(context, shown))


def _lines(context: Context, row: Changed[OfSubscription[DeadLettersRedriven]]) -> Iterator[str]:
    from storage.values.names import short_topic_name

    done = row.effects.change
    yield from dry_run_heading(context, row.dry_run)
    verb, letters = "Would give" if row.dry_run else "Gave", plural(done.redriven, "dead letter")
    yield f"{verb} {letters} of {short_topic_name(done.dead_letter_topic)} back to {name_of(row.effects)}."
    if done.in_backlog:
        yield f"{plural(done.in_backlog, 'message')} in the backlog already."
    if done.originals_gone:
        yield (
            f"{plural(done.originals_gone, 'dead letter')} cannot go back: trimmed away, or of an aborted transaction. "
            "Produce them again."
        )

"""Moving a cursor by hand: the question, the fields and the lines of the report."""

from __future__ import annotations

from txnctl.fields.change import DRY_RUN
from txnctl.fields.subscription import NAMES, name_of
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from storage.admin.audited_change import Changed, OfSubscription
    from storage.admin.subscriptions import MessagesSkipped, SubscriptionSought
    from txnctl.cli.context import Context

    Moved = TypeVar("Moved", MessagesSkipped, SubscriptionSought)
    Skipped = Changed[OfSubscription[MessagesSkipped]]
    Sought = Changed[OfSubscription[SubscriptionSought]]


MOVE = {
    "mark_delete_position_before": Help("Everything up to here was acknowledged."),
    "mark_delete_position_after": Help("Everything up to here is acknowledged now."),
}

SKIPPED = fields_of(
    "storage.admin.subscriptions:Changed[OfSubscription[MessagesSkipped]]",
    {**NAMES, "skipped": Help("Messages acknowledged unread."), **MOVE, **DRY_RUN},
)


def skipped_lines(context: Context, row: Skipped) -> Iterator[str]:
    """The report of `skip` and `clear-backlog`."""
    yield from dry_run_heading(context, row.dry_run)
    verb, skipped = "Would skip" if row.dry_run else "Skipped", row.effects.change
    yield f"{verb} {plural(skipped.skipped, 'message')} of {name_of(row.effects)}: {move(skipped)}."


def asked(
    context: Context,
    change: Callable[..., Changed[OfSubscription[Moved]]],
    question: str,
    is_asked: Callable[[Moved], bool] = lambda _move: True,
) -> Changed[OfSubscription[Moved]]:
    """Ask for confirmation with the plan, then change the cursor."""
    if not context.yes and not context.dry_run:
        plan = change(dry_run=True)
        if is_asked(plan.effects.change):
            context.confirm(question, plan=list(_plan(plan.effects)))
    return change(dry_run=context.dry_run)


def _plan(row: OfSubscription[Moved]) -> Iterator[str]:
    from storage.admin.subscriptions import MessagesSkipped, SubscriptionSought

    moved: MessagesSkipped | SubscriptionSought = row.change
    if isinstance(moved, MessagesSkipped):
        yield f"skips     {plural(moved.skipped, 'message')} of {name_of(row)}"
    yield f"moves     {move(moved)}"
    if isinstance(moved, SubscriptionSought):
        if moved.messages_withdrawn:
            yield f"withdraws {plural(moved.messages_withdrawn, 'message')} in flight"
        if moved.transactions_aborted:
            yield f"aborts    {', '.join([str(txn) for txn in moved.transactions_aborted])}"


def move(row: MessagesSkipped | SubscriptionSought) -> str:
    """`markDeletePosition 1:4 -> 1:9`."""
    before, after = row.mark_delete_position_before, row.mark_delete_position_after
    return f"markDeletePosition {'stays at ' if before == after else f'{before} -> '}{after}"

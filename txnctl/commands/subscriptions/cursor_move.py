"""Moving a cursor by hand: the question, the fields and the lines of the report."""

from __future__ import annotations

from txnctl.fields.change import DRY_RUN
from txnctl.fields.subscription import NAMES, name_of
from txnctl.output.field import Field
from txnctl.output.human import plural
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

MOVE = (
    Field("markDeletePositionBefore", "position", "Everything up to here was acknowledged."),
    Field("markDeletePositionAfter", "position", "Everything up to here is acknowledged now."),
)

SKIPPED = (*NAMES, Field("skipped", "integer", "Messages acknowledged unread."), *MOVE, DRY_RUN)


def skipped_lines(context: Context, row: Row) -> Iterator[str]:
    """The report of `skip` and `clear-backlog`."""
    yield from dry_run_heading(context, row["dryRun"])
    verb = "Would skip" if row["dryRun"] else "Skipped"
    yield f"{verb} {plural(row['skipped'], 'message')} of {name_of(row)}: {move(row)}."


def asked(
    context: Context,
    change: Callable[..., Row],
    question: str,
    is_asked: Callable[[Row], bool] = lambda _row: True,
) -> Row:
    """Ask for confirmation with the plan, then change the cursor."""
    if not context.yes and not context.dry_run:
        plan = change(dry_run=True)
        if is_asked(plan):
            context.confirm(question, plan=list(_plan(plan)))
    return change(dry_run=context.dry_run)


def _plan(row: Row) -> Iterator[str]:
    if "skipped" in row:
        yield f"skips     {plural(row['skipped'], 'message')} of {name_of(row)}"
    yield f"moves     {move(row)}"
    if row.get("messagesWithdrawn"):
        yield f"withdraws {plural(row['messagesWithdrawn'], 'message')} in flight"
    if row.get("transactionsAborted"):
        yield f"aborts    {', '.join(row['transactionsAborted'])}"


def move(row: Row) -> str:
    """`markDeletePosition 1:4 -> 1:9`."""
    before, after = row["markDeletePositionBefore"], row["markDeletePositionAfter"]
    return f"markDeletePosition {'stays at ' if before == after else f'{before} -> '}{after}"

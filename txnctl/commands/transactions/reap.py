"""`txnctl transactions reap`."""

from __future__ import annotations

from txnctl.cli.decorators import administrative, changes_store, example, option, output
from txnctl.cli.whole_number import WholeNumber
from txnctl.fields.transaction import ROW
from txnctl.output.human import plural
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.transactions import TransactionRow
    from txnctl.cli.context import Context

_MOST = 1000


@option(
    "-n",
    "--count",
    "limit",
    type=WholeNumber(1),
    default=_MOST,
    metavar="N",
    help=f"At most so many. [default: {_MOST}]",
)
@changes_store()
@administrative
@output(ROW, name_field="txnId")
@example("txnctl transactions reap --dry-run")
@example("txnctl transactions reap -o name")
def reap(context: Context, limit: int) -> None:
    """Abort every transaction that is overdue or owned by a dead process.

    Every writer does that in passing, a few at a time. In a store without writers, or with a policy of manual aborts,
    run this from cron. A transaction within the deadline and of a living process is never touched.

    A dry run lists the transactions as they are, open, with the reason of the abort that would follow.
    """
    rows = context.store.admin.transactions.reap_transactions(
        limit, dry_run=context.dry_run, reason=context.reason
    )
    if context.output == "table":
        done = "would be aborted (dry run: nothing was changed)" if context.dry_run else "aborted"
        context.note(
            f"{plural(len(rows), 'transaction')} {done}" if rows else "no transaction is overdue or orphaned"
        )
    context.show_list(rows, table=lambda shown: _lines(context, shown, limit))


def _lines(context: Context, rows: Sequence[TransactionRow], limit: int) -> Iterator[str]:
    from txnctl.commands.transactions import layout

    if not context.dry_run:
        yield from layout.ended_list(context, rows)
        return
    yield from layout.due_list(context, rows)
    if rows:
        count = {} if limit == _MOST else {"count": str(limit)}
        yield ""
        yield f"Run: {line('transactions reap', **count, reason=...)}"

"""`txnctl transactions orphans`: open transactions of dead processes."""

from __future__ import annotations

from txnctl.cli.decorators import example, option, output, reads_store
from txnctl.commands.transactions.holding import HOLDING, show_holding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


@option("--exit-code", is_flag=True, help="End with 8 if there is any.")
@reads_store
@output(HOLDING, name_field="txnId")
@example("txnctl transactions orphans")
@example("txnctl transactions orphans -o json")
def orphans(context: Context, exit_code: bool) -> None:
    """List open transactions of dead processes.

    The lock that a living owner holds is released, or the machine was rebooted: the process cannot go on.
    The next writer aborts such transactions, unless the store's policy leaves aborts to `transactions reap`; a command
    that names a transaction by id, such as `transactions commit`, spares that transaction. FREES counts the messages
    held back until then.
    """
    rows = context.store.reports.list_orphaned_transactions()
    if not rows and context.output == "table":
        context.note("no open transaction has lost its process")
    show_holding(context, rows, exit_code)

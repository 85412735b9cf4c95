"""`txnctl transactions orphans`: open transactions of dead processes."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import example, option, output, reads_store
from txnctl.commands.transactions.holding import HOLDING, show_holding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from txnctl.cli.context import Context

    Row = dict[str, Any]


@option("--exit-code", is_flag=True, help="End with 8 if there is any.")
@reads_store
@output(HOLDING, name_field="txnId")
@example("txnctl transactions orphans")
@example("txnctl transactions orphans -o json")
def orphans(context: Context, exit_code: bool) -> None:
    """List open transactions whose process is dead.

    The kernel has released the lock that a living owner holds, or the machine was rebooted: their process cannot go on
    with them. The next writer aborts them, unless the store's policy leaves that to `transactions reap`; a command that
    names one by its id, such as `transactions commit`, does not abort that one. FREES is what they hold back until
    then.
    """
    rows = to_json(context.store.reports.list_orphaned_transactions())
    if not rows and context.output == "table":
        context.note("no open transaction has lost its process")
    show_holding(context, rows, exit_code)

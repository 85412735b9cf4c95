"""`txnctl transactions list`: unfinished or ended transactions."""

from __future__ import annotations

from txnctl.cli.decorators import example, option, output, reads_store
from txnctl.cli.watch import draw_until_interrupted, is_watched, watches
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.transactions.choice import TransactionChoice, chooses_transactions
from txnctl.fields.transaction import ROW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage.reports.transactions import TransactionRow
    from txnctl.cli.context import Context
    from txnctl.cli.watch import Screenful
    from txnctl.output.table_layout import TextTable

    Layout = Callable[[Context, Sequence[TransactionRow]], TextTable]


@option("--ended", is_flag=True, help="Show the committed and aborted ones, the newest first.")
@chooses_transactions
@option("-n", "--count", "limit", type=WholeNumber(1), metavar="N", help="At most so many. [default: all]")
@watches
@reads_store
@output(ROW, name_field="txnId")
@example("txnctl transactions list", setup="txnctl transactions begin --label job=settlement")
@example("txnctl transactions list --label job=settlement --older-than 1h")
@example("txnctl transactions list --ended -n 20 -o json")
def list_(
    context: Context, ended: bool, choice: TransactionChoice, limit: int | None, watch: float | None
) -> None:
    """List the unfinished transactions, the oldest first.

    ALIVE is the proven state of the owning process: `yes`; `stopped` (SIGSTOP), which counts as alive; `ORPHANED`, the
    process is dead, and the next writer aborts the transaction; `detached`, begun by `transactions begin`, held by no
    process, and ended by the deadline at the latest.
    """
    from txnctl.commands.transactions import layout as transaction_tables

    def read() -> list[TransactionRow]:
        return context.store.reports.list_transactions(ended=ended, limit=limit, **choice.given())

    layout = transaction_tables.ended_list if ended else transaction_tables.open_list
    if is_watched(context, watch):
        draw_until_interrupted(context, watch or 0, lambda: _screenful(context, read(), layout))
    rows = read()
    if not rows and context.output == "table":
        context.note(
            f"no {'ended' if ended else 'unfinished'} transactions{choice.words()}{choice.near_label(context.store)}"
        )
    context.show_list(rows, table=lambda shown: layout(context, shown))


def _screenful(context: Context, rows: Sequence[TransactionRow], layout: Layout) -> Screenful:
    from txnctl.cli.watch import Screenful
    from txnctl.commands.transactions.layout import problem
    from txnctl.output.escape import printable_row

    shown = printable_row(list(rows))
    problems = [text for text in [problem(context, row) for row in shown] if text is not None]
    return Screenful(problems, layout(context, shown) if shown else ("There are no such transactions.",))

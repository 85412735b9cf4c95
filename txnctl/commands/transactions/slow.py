"""`txnctl transactions slow`: transactions open for long, and how much each holds back."""

from __future__ import annotations

from txnctl.cli.decorators import example, option, output, reads_store
from txnctl.cli.value_types import DURATION
from txnctl.commands.transactions.holding import HOLDING, show_holding
from txnctl.output.human import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

_SETUP = (
    "txnctl topics create orders",
    "txnctl transactions begin --label job=loader",
    "txnctl produce orders -m half --txn 0:1",
    "txnctl produce orders -m whole",
)
_SLOW_S = 60.0


@option("--over", type=DURATION, help="Only those open for longer. [default: 1m]")
@option("--exit-code", is_flag=True, help="End with 8 if there is any.")
@reads_store
@output(HOLDING, name_field="txnId")
@example("txnctl transactions slow", setup=_SETUP)
@example("txnctl transactions slow --over 0s --exit-code", setup=_SETUP, exit_code=8)
def slow(context: Context, over: float | None, exit_code: bool) -> None:
    """List transactions open for long, and the number of messages each holds back.

    The oldest first. FREES counts the committed messages, on all topics, that become readable after the end of the
    transaction and all earlier transactions; 0 means that no message waits.
    """
    limit = _SLOW_S if over is None else over
    rows = context.store.reports.list_slow_transactions(limit)
    if not rows and context.output == "table":
        context.note(f"no transaction has been open for longer than {duration(int(limit * 1000))}")
    show_holding(context, rows, exit_code)

"""`txnctl transactions slow`: transactions open for long, and how much each holds back."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import example, option, output, reads_store
from txnctl.cli.value_types import DURATION
from txnctl.commands.transactions.holding import HOLDING, show_holding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from txnctl.cli.context import Context

    Row = dict[str, Any]

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
    """List transactions that have been open for long, and what each holds back.

    The oldest first. FREES counts the committed messages, on all topics, that wait for it and can be read when it and
    those before it have ended; 0 says that nobody waits for it.
    """
    from txnctl.output.human import duration

    limit = _SLOW_S if over is None else over
    rows = to_json(context.store.reports.list_slow_transactions(limit))
    if not rows and context.output == "table":
        context.note(f"no transaction has been open for longer than {duration(int(limit * 1000))}")
    show_holding(context, rows, exit_code)

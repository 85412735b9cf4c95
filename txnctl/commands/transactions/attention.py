"""`txnctl transactions slow` and `orphans`: what has been open for long, and what its process left behind."""

from __future__ import annotations

from txnctl.cli.decorators import example, option, output, reads_store
from txnctl.cli.value_types import DURATION
from txnctl.fields.transaction import ROW
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from txnctl.cli.context import Context

    Row = dict[str, Any]

HOLDING = (
    *ROW,
    Field(
        "frees",
        "integer",
        "Committed messages that wait for it, on all topics: readable when it and those before it have ended.",
    ),
)

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
    rows = context.store.reports.list_slow_transactions(limit)
    if not rows and context.output == "table":
        context.note(f"no transaction has been open for longer than {duration(int(limit * 1000))}")
    _show(context, rows, exit_code)


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
    rows = context.store.reports.list_orphaned_transactions()
    if not rows and context.output == "table":
        context.note("no open transaction has lost its process")
    _show(context, rows, exit_code)


def _show(context: Context, rows: Sequence[Row], exit_code: bool) -> None:
    context.show_list(rows, table=lambda shown: _report(context, shown))
    if exit_code and rows:
        from txnctl.cli import exit_codes

        context.exit(exit_codes.CONDITION_FOUND)


def _report(context: Context, rows: Sequence[Row]) -> Iterator[str]:
    """The list, and the next command: about those that nobody needs any more, else about the one that holds most."""
    from txnctl.commands.transactions import layout

    if not rows:
        return
    yield layout.open_list(context, rows, frees=True)
    worst = max(rows, key=lambda row: int(row["frees"]))
    gone = any(row["orphaned"] or row["overdue"] for row in rows)
    command = "txnctl transactions reap" if gone else f"txnctl transactions explain {worst['txnId']}"
    yield ""
    yield f"Next: {context.style(command, 'cyan')}"

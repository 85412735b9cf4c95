"""Transactions with the number of messages each holds back: the fields and the list of `slow` and `orphans`."""

from __future__ import annotations

from txnctl.cli import exit_codes
from txnctl.fields.transaction import ROW_HELP
from txnctl.output.field import fields_of
from txnctl.output.screen import next_command
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.slow_and_orphaned import AttentionRow
    from txnctl.cli.context import Context

HOLDING = fields_of(
    "storage.reports.slow_and_orphaned:AttentionRow",
    {
        **ROW_HELP,
        "frees": "Committed messages that wait for it, on all topics: readable when it and those before it have ended.",
    },
)


def show_holding(context: Context, rows: Sequence[AttentionRow], exit_code: bool) -> None:
    """Print the transactions. With `exit_code`, exit with 8 where the list is not empty."""
    context.show_list(rows, table=lambda shown: _report(context, shown))
    if exit_code and rows:
        context.exit(exit_codes.CONDITION_FOUND)


def _report(context: Context, rows: Sequence[AttentionRow]) -> Iterator[str]:
    """The list, and the next command: reap dead or overdue transactions first, else explain the worst blocker."""
    from txnctl.commands.transactions import layout

    if not rows:
        return
    yield from layout.holding_list(context, rows)
    worst = max(rows, key=lambda row: row.frees)
    gone = any(row.row.orphaned or row.row.overdue for row in rows)
    command = line("transactions reap") if gone else line("transactions explain", worst.row.txn_id)
    yield ""
    yield next_command(context, command)

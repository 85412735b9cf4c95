"""`txnctl transactions`: begin, commit, abort and explain transactions."""

from __future__ import annotations

import click

from txnctl.cli.declaration import Group
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TOPIC, TXN_ID
from txnctl.fields.transaction import FIELDS, ROW, with_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context

    Row = dict[str, Any]

transactions = Group(
    "transactions",
    "Begin, commit, abort and watch transactions.",
    elsewhere={
        "begin": ("txnctl.commands.transactions.begin:begin", "Begin a transaction and print its id, alone."),
        "commit": (
            "txnctl.commands.transactions.commit:commit",
            "Commit a transaction: all of it becomes visible at one instant.",
        ),
        "abort": (
            "txnctl.commands.transactions.abort:abort",
            "Abort a transaction, of somebody else too: all of it is dropped.",
        ),
        "run": (
            "txnctl.commands.transactions.run:run",
            "Run a command in a transaction: commit if it exits 0, else abort.",
        ),
        "wait": (
            "txnctl.commands.transactions.wait:wait",
            "Wait until a transaction is committed or aborted.",
        ),
        "blocked": (
            "txnctl.commands.transactions.blocked:blocked",
            "Show behind which open transactions committed messages wait.",
        ),
        "explain": (
            "txnctl.commands.transactions.explain:explain",
            "Explain a transaction: is its owner alive, whom does it hold up, what to do.",
        ),
        "slow": (
            "txnctl.commands.transactions.attention:slow",
            "List transactions that have been open for long, and what each holds back.",
        ),
        "orphans": (
            "txnctl.commands.transactions.attention:orphans",
            "List open transactions whose process is dead.",
        ),
        "reap": (
            "txnctl.commands.transactions.reap:reap",
            "Abort all transactions that are overdue, or whose process is dead.",
        ),
        "history": (
            "txnctl.commands.transactions.history:history",
            "Show how transactions ended: when, why, by whom, after how long.",
        ),
        "timeline": (
            "txnctl.commands.transactions.timeline:timeline",
            "Draw a topic: its ledgers, open transactions, cursors, and what is blocked.",
        ),
    },
)


@transactions.command("list")
@option("--ended", is_flag=True, help="Show the committed and aborted ones, the newest first.")
@option("--topic", type=TOPIC, help="Only those that produced to this topic.")
@option("-n", "--limit", type=click.IntRange(1), metavar="N", help="At most so many. [default: all]")
@reads_store
@output(ROW, name_field="txnId")
@example("txnctl transactions list", setup="txnctl transactions begin --label job=settlement")
@example("txnctl transactions list --ended -n 20 -o json")
def list_(context: Context, ended: bool, topic: str | None, limit: int | None) -> None:
    """List the unfinished transactions, the oldest first.

    ALIVE says what is proven of the process that owns it: `yes`; `stopped` (SIGSTOP), which counts as alive;
    `ORPHANED`, its process is dead, and the next writer aborts it; `detached`, begun by `transactions begin` and
    held by no process: its deadline alone rules.
    """
    from txnctl.commands.transactions import layout as transaction_tables

    rows = context.store.reports.list_transactions(ended=ended, topic=topic, limit=limit)
    if not rows and context.output == "table":
        on_topic = f" on {topic}" if topic is not None else ""
        context.note(f"no {'ended' if ended else 'unfinished'} transactions{on_topic}")
    layout = transaction_tables.ended_list if ended else transaction_tables.open_list
    context.show_list(rows, table=lambda shown: layout(context, shown))


@transactions.command("show")
@argument(
    "txn",
    type=TXN_ID,
    required=False,
    help="The transaction; the first digits of its number do where they name one. [env: TXNCTL_TXN]",
)
@reads_store
@output(FIELDS, name_field="txnId")
@example("txnctl transactions show 0:1", setup="txnctl transactions begin --label job=settlement")
@example("TXNCTL_TXN=0:1 txnctl transactions show -o json", setup="txnctl transactions begin")
def show(context: Context, txn: TxnID | None) -> None:
    """Show all that is known of a transaction.

    State and version; when it began, was last used, and must end; who owns it, and the evidence that its process
    lives; what it touched, with positions and the first 100 keys of each table; how, when, why and by whom it was
    ended; and, if it lost a key to another transaction, which key and to whom.
    """
    from txnctl.cli.current_transaction import named_or_current
    from txnctl.commands.transactions import layout as transaction_tables

    row = with_keys(found_by_prefix(context, named_or_current(txn), context.store.reports.show_transaction))
    context.show(row, table=lambda shown: transaction_tables.one(context, shown))


def found_by_prefix(context: Context, txn: TxnID, show_one: Callable[[TxnID | str], Row]) -> Row:
    """What `show_one` tells of the transaction of that id; if there is none, of the only one whose id begins so."""
    from storage.errors import TransactionNotFound

    try:
        return show_one(txn)
    except TransactionNotFound:
        rows = context.store.reports.list_transactions() + context.store.reports.list_transactions(ended=True)
        longer = [str(row["txnId"]) for row in rows if str(row["txnId"]).startswith(str(txn))]
        if len(longer) != 1:
            raise
    context.note(f"{txn} is taken for {longer[0]}, the only transaction whose id begins so")
    return show_one(longer[0])

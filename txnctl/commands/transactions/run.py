"""`txnctl transactions run`: a whole shell script as one atomic unit."""

from __future__ import annotations

import click

from storage.errors import NestedTransaction, TransactionNotOpen, TxnctlError
from txnctl.cli.decorators import argument, changes_store, example, passes_arguments
from txnctl.commands.transactions.begin import labels_of, with_kind, with_labels, with_timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage import Transaction, TxnID
    from txnctl.cli.context import Context
    from txnctl.commands.transactions.begin import TransactionKind

_LOAD = ("printf '#!/bin/sh\\n' > load.sh", "chmod +x load.sh")


@argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="CMD [ARG]...", help="What to run."
)
@with_timeout
@with_labels
@with_kind
@passes_arguments
@changes_store()
@example(
    """txnctl transactions run -- sh -c 'txnctl produce debits -m "-100" && txnctl produce credits -m "+100"'""",
    setup=("txnctl topics create debits", "txnctl topics create credits"),
)
@example(
    "txnctl transactions run -- sh -ec 'txnctl tables put accounts B1 \"$(($(txnctl tables get accounts B1) - 5))\"'",
    setup=("txnctl tables create accounts", "txnctl tables put accounts B1 100"),
)
@example("txnctl transactions run --timeout 1h --label job=nightly -- ./load.sh", setup=_LOAD)
def run(
    context: Context,
    timeout: float | None,
    label: Sequence[tuple[str, str]],
    command: Sequence[str],
    kind: TransactionKind,
) -> None:
    """Run a command in a transaction: commit after exit code 0, abort after any failure.

    The environment of the command has the transaction in TXNCTL_TXN and the store in TXNCTL_STORE, so that every
    txnctl inside takes part: messages, acknowledgements and rows become visible at one instant, or never. The exit
    code is the command's own; 128 plus the signal's number after a signal, 127 for a missing command. A commit that
    fails after a successful command gives the exit code of that error.

    SIGTERM, SIGHUP and the like are passed on, and the transaction is aborted whatever the command does; Ctrl-C goes
    to the command, and the exit code of the command decides. If this process is killed outright, the command gets
    SIGTERM, and the next writer aborts the transaction. The transaction's deadline (--timeout) runs meanwhile: after
    the deadline a commit fails.

    A transaction that loses a key of a table is aborted, and the next txnctl in the command, or the commit, ends with
    exit code 4: run the command again, perhaps with a higher --priority.
    """
    _refuse_nesting()
    from os import environ

    from txnctl.cli import supervise

    txn = _begin(context, timeout, labels_of(label), kind)
    try:
        ending = supervise.run(
            command, {**environ, "TXNCTL_TXN": str(txn), "TXNCTL_STORE": context.store.path}
        )
    except BaseException as error:
        _abort(context, txn, f"{command[0]} was not run" if isinstance(error, Exception) else "interrupted")
        raise
    if ending.stopped_by is not None:
        _abort(context, txn, f"{ending.stopped_by.name} was received")
    elif ending.status != 0:
        _abort(context, txn, f"{command[0]} exited with {ending.status}")
    else:
        _commit(context, txn, command[0])
    if ending.stopped_by is not None and ending.status == 0:
        context.exit(128 + ending.stopped_by)
    context.exit(ending.status)


def _begin(
    context: Context, timeout: float | None, labels: dict[str, str], kind: TransactionKind
) -> Transaction | TxnID:
    """A transaction of this process, unless the transaction only reads."""
    from storage import TransactionIsolation

    if kind.isolation is TransactionIsolation.READ_COMMITTED:
        return context.store.begin_transaction(timeout=timeout, labels=labels, **kind.given())
    return context.store.transaction(timeout=timeout, labels=labels, **kind.given())


def _refuse_nesting() -> None:
    from os import environ

    current = environ.get("TXNCTL_TXN")
    if current:
        raise NestedTransaction(
            f"this runs inside transaction {current} already (TXNCTL_TXN), and transactions do not nest",
            hint="Run the command unchanged to take part in that one, or unset TXNCTL_TXN for a new one.",
            transaction=current,
        )


def _commit(context: Context, txn: Transaction | TxnID, name: str) -> None:
    """Commit; when that fails, say that the command had succeeded. The exit code is the error's."""
    try:
        context.store.commit_transaction(txn)
    except TxnctlError as error:
        error.message = f"{name} succeeded, but the commit of its transaction failed: {error.message}"
        raise
    import sys

    if sys.stderr.isatty():
        context.note(f"transaction {txn} is committed")


def _abort(context: Context, txn: Transaction | TxnID, why: str) -> None:
    """Abort, and say so. Nothing is raised: the result of the command counts even if the abort fails."""
    from storage import TxnID

    try:
        if isinstance(txn, TxnID):
            context.store.admin.transactions.abort_transaction(txn, reason=why, force=True)
        else:
            txn.abort(why)
    except TransactionNotOpen:
        context.warn(f"{why}, but transaction {txn} had been committed by then")
    except TxnctlError as error:
        context.warn(
            f"{why}; transaction {txn} could not be aborted yet, a writer will by its deadline: {error.message}"
        )
    else:
        context.note(f"transaction {txn} is aborted: {why}")

"""`txnctl transactions run`: a whole shell script as one atomic unit."""

from __future__ import annotations

import click

from storage.errors import NestedTransaction, ProgramMissing, TransactionNotOpen, TxnctlError
from txnctl.cli.decorators import argument, changes_store, example, option, passes_arguments
from txnctl.cli.value_types import NamedConstant
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.transactions.begin import with_kind, with_labels, with_timeout
from txnctl.input.names_once import named_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage import Transaction, TxnID
    from txnctl.cli.context import Context
    from txnctl.commands.transactions.begin import TransactionKind
    from txnctl.commands.transactions.retries import CommandTry
    from txnctl.commands.transactions.transaction_watch import TransactionWatch

_LOAD = ("printf '#!/bin/sh\\n' > load.sh", "chmod +x load.sh")


@argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="CMD [ARG]...", help="What to run."
)
@option(
    "--retries",
    type=WholeNumber(0),
    default=0,
    help="Run the command again after a lost conflict, at most so often. [default: 0]",
)
@with_timeout
@with_labels
@with_kind
@option(
    "--on-abort",
    type=NamedConstant("on abort", ("term", "continue")),
    default="term",
    help="What to do if an operator aborts the transaction while CMD runs: end it (SIGTERM, after 10 s SIGKILL), or "
    "only say so. [default: term]",
)
@passes_arguments
@changes_store()
@example(
    """txnctl transactions run -- sh -c 'txnctl produce debits -m "-100" && txnctl produce credits -m "+100"'""",
    setup=("txnctl topics create debits", "txnctl topics create credits"),
)
@example(
    "txnctl transactions run -- sh -ec 'txnctl tables put money B1 $(($(txnctl tables get money B1) - 5))'",
    setup=("txnctl tables create money", "txnctl tables put money B1 100"),
)
@example("txnctl transactions run --retries 10 -- ./load.sh < /dev/null", setup=_LOAD)
@example("txnctl transactions run --timeout 1h --label job=nightly -- ./load.sh", setup=_LOAD)
def run(
    context: Context,
    timeout: float | None,
    label: Sequence[tuple[str, str]],
    command: Sequence[str],
    kind: TransactionKind,
    retries: int,
    on_abort: str,
) -> None:
    """Run a command in a transaction: commit after exit code 0, abort after any failure.

    The environment of the command has the transaction in TXNCTL_TXN and the store in TXNCTL_STORE, so that every
    txnctl inside takes part: messages, acknowledgements and rows become visible at one instant, or never. The exit
    code is the command's own; 128 plus the signal's number after a signal, 127 for a missing command. A commit that
    fails after a successful command gives the exit code of that error.

    SIGTERM, SIGHUP and the like are passed on, and the transaction is aborted whatever the command does; Ctrl-C goes
    to the command, and the exit code of the command decides; Ctrl-Z stops both. If this process is killed outright,
    the command gets SIGTERM, and the next writer aborts the transaction. The transaction's deadline (--timeout) runs
    meanwhile: after the deadline a commit fails.

    If an operator aborts the transaction meanwhile, the command and its children get SIGTERM within a second, and
    SIGKILL ten seconds later if they are still there; with --on-abort continue they run on, and the next txnctl in the
    command, or the commit, ends with exit code 4. An abort by the command itself leaves the command alone.

    A transaction that loses a key of a table is aborted, and the next txnctl in the command, or the commit, ends with
    exit code 4. With --retries the command is then run again, each time in a new transaction of a higher priority,
    after a wait of random length that grows with each loss; standard error says so. Nothing but a conflict over a key
    is followed by a further try, and the exit code is that of the last one. Standard input is read from the same
    position each time, so it must be a file or /dev/null. Effects outside of the store are not undone between two
    tries. TXNCTL_RETRIES tells the command how many further tries there may be.
    """
    _refuse_nesting()
    from txnctl.commands.transactions import retries as tries

    labels = named_once(label, "--label: ")

    def run_once(this: CommandTry) -> int:
        kind.priority = this.priority
        this.txn = _begin(context, timeout, labels, kind)
        return _run_once(context, command, this, on_abort)

    context.exit(tries.run(context, retries, kind.priority, run_once))


def _run_once(context: Context, command: Sequence[str], this: CommandTry, on_abort: str) -> int:
    """Run the command in the transaction of a try, which ends as the command does; the exit code."""
    txn = this.txn
    assert txn is not None, "a try has begun its transaction"
    from os import environ

    from storage import TxnID
    from txnctl.cli import running_tries, supervise
    from txnctl.commands.transactions.transaction_watch import TransactionWatch

    environment = running_tries.environment(dict(environ), str(txn), this.retries_left)
    environment["TXNCTL_STORE"] = context.store_of_children(context.store)
    watch = TransactionWatch(context, TxnID.parse(str(txn)), command[0], ends=on_abort == "term")
    try:
        ending = this.ending = supervise.run(command, environment, watch.look)
    except BaseException as error:
        why = f"{command[0]} was not run" if isinstance(error, ProgramMissing) else "interrupted"
        _abort(context, txn, why, watch)
        raise
    if ending.stopped_by is not None:
        _abort(context, txn, f"{ending.stopped_by.name} was received", watch)
    elif ending.status != 0:
        _abort(context, txn, f"{command[0]} exited with {ending.status}", watch)
    else:
        _commit(context, txn, command[0])
    if ending.stopped_by is not None and ending.status == 0:
        return 128 + ending.stopped_by
    return ending.status


def _begin(
    context: Context, timeout: float | None, labels: dict[str, str], kind: TransactionKind
) -> Transaction | TxnID:
    """A transaction of this process, unless the transaction only reads."""
    from storage import TransactionIsolation

    if kind.isolation is TransactionIsolation.READ_COMMITTED:
        return context.store.begin_transaction(timeout=timeout, labels=labels, **kind.given())
    return context.store.transaction(timeout=timeout, labels=labels, **kind.given())


def _refuse_nesting() -> None:
    from txnctl.cli.current_transaction import of_environment

    current = of_environment()
    if current is not None:
        raise NestedTransaction(
            f"this runs inside transaction {current} already (TXNCTL_TXN), and transactions do not nest",
            hint="Run the command unchanged to take part in that one, or unset TXNCTL_TXN for a new one.",
            transaction=str(current),
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


def _abort(context: Context, txn: Transaction | TxnID, why: str, watch: TransactionWatch) -> None:
    """Abort, and say so. Nothing is raised: the result of the command counts even if the abort fails.

    The first abort stands, with its reason: this one changes nothing after that of an operator.
    """
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
        end = watch.end()
        is_ours = end is None or end.ended_by == context.store.connection.identity
        context.note(f"transaction {txn} {f'is aborted: {why}' if is_ours else f'was {end}'}")

"""Ends of several transactions by one command: one confirmation, each by itself, and every failure reported."""

from __future__ import annotations

from storage.errors import InvalidValue, TxnctlError
from txnctl.commands.transactions.abort_report import effect_lines, run_many
from txnctl.fields.owner import told
from txnctl.output.human import duration, labels_text, plural
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from storage.reports.transactions import TransactionRow
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context
    from txnctl.commands.transactions.abort_report import AbortReport
    from txnctl.commands.transactions.choice import TransactionChoice


def is_many(txns: Sequence[TxnID], choice: TransactionChoice, if_version: int | None = None) -> bool:
    """Whether a command line ends several transactions, or a choice of transactions.

    Raises:
        InvalidValue: ids and a choice, or a version for several transactions.
    """
    if txns and choice.is_given():
        raise InvalidValue(
            "ids and a choice are given", hint="Give ids, or --label, --owner, --topic and --older-than."
        )
    many = len(txns) > 1 or choice.is_given()
    if many and if_version is not None:
        raise InvalidValue(
            "--if-version is the version of one transaction", hint="Give one id, or leave out --if-version."
        )
    return many


def abort_many(
    context: Context,
    txns: Sequence[TxnID],
    choice: TransactionChoice,
    abort: Callable[[TxnID], AbortReport],
) -> None:
    """Confirm once, abort each transaction, show the results, and exit as the first failure.

    Args:
        txns: the transactions; empty for those of the choice, the oldest first.
        abort: aborts a transaction, or shows the abort in a dry run.
    """
    open_rows = {
        row.txn_id: row for row in context.store.reports.list_transactions(**({} if txns else choice.given()))
    }
    chosen = list(dict.fromkeys(txns or open_rows))
    if not chosen:
        context.note(f"no unfinished transactions{choice.words()}{choice.near_label(context.store)}")
    else:
        question = f"Abort {plural(len(chosen), 'transaction')}?"
        context.confirm(question, plan=[_plan(txn, open_rows.get(txn)) for txn in chosen])
    failures: list[TxnctlError] = []

    def aborted() -> Iterator[AbortReport]:
        for txn in chosen:
            try:
                yield abort(txn)
            except TxnctlError as error:
                failures.append(error)
                context.out.flush()
                context.report_failure(error)

    def table(reports: Sequence[AbortReport]) -> Iterator[str]:
        if reports:
            yield from dry_run_heading(context, context.dry_run)
        for number, report in enumerate(reports):
            if number:
                yield ""
            yield from effect_lines(report)
        if reports and context.dry_run:
            yield ""
            yield from run_many(context, reports)

    context.show_list(aborted(), table=table)
    if failures:
        if len(chosen) > 1:
            context.note(f"{len(failures):,} of {plural(len(chosen), 'transaction')} failed")
        context.exit_as(failures[0])


def _plan(txn: TxnID, row: TransactionRow | None) -> str:
    """`  0:566  open for 46m58s, owner anna@db-2:48211 (loader) is alive, job=loader`."""
    if row is None:
        return f"  {txn}  not open"
    labels = labels_text(row.labels)
    return f"  {txn}  open for {duration(row.age_ms)}, {told(row)}{', ' if labels else ''}{labels}"

"""`txnctl transactions abort`: abort a transaction, or show the effects of an abort."""

from __future__ import annotations

from txnctl.cli.current_transaction import named_or_current
from txnctl.cli.decorators import (
    administrative,
    argument,
    asks,
    changes_store,
    example,
    forcible,
    option,
    output,
)
from txnctl.cli.value_types import TXN_ID
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.transactions.abort_report import AbortReport, report_lines, with_end
from txnctl.commands.transactions.choice import TransactionChoice, chooses_transactions
from txnctl.fields.owner import LAST_USER_HELP
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context

ABORTED = fields_of(
    AbortReport,
    {
        "txn_id": "The transaction's id.",
        "dry_run": "Whether nothing was changed.",
        "already": "Whether it had been aborted before: nothing was changed.",
        "state_before": Help("OPEN, or ABORTED if it had been aborted before.", kind="text"),
        "version": "The version that was, or would be, aborted: for `--if-version`.",
        "idle_ms": "Time since its last use.",
        "deadline_in_ms": "Time until its deadline, negative after it.",
        "owner": "Who began it: user@host:pid (program).",
        "owner_state": "alive, stopped, dead, rebooted, unknown-host; detached: no process holds it.",
        **LAST_USER_HELP,
        "refused": "Of a dry run: why it is refused without --force; null if it is not.",
        "fence": "Whether the producers of its messages lose their sessions too.",
        "effects": (
            "For each topic, subscription and table that it touched, what the abort changes there; with --fence, each "
            "producer whose session is ended."
        ),
        "ended_at_ms": "When it was aborted; null in a dry run.",
        "ended_by": "Who aborted it; null in a dry run.",
        "reason": "Why it was aborted: asked, timed-out, owner-dead and so on; null in a dry run.",
        "reason_text": "What was said with --reason.",
    },
    part="storage.admin.abort:AbortResult",
)


@argument(
    "txns",
    nargs=-1,
    type=TXN_ID,
    metavar="[TXN]...",
    help="The transactions, their ids in full: 0:42, (0,42) or 42. [env: TXNCTL_TXN]",
)
@chooses_transactions
@option(
    "--if-version",
    type=WholeNumber(1),
    metavar="VERSION",
    help="Only if it is still at this version: the one that was looked at.",
)
@option(
    "--fence",
    is_flag=True,
    help="End the sessions of the producers of its messages too: they must connect anew.",
)
@changes_store()
@administrative
@asks
@forcible("Abort it although its owner or last user is alive and used it within the last 60 seconds.")
@output(ABORTED, name_field="txnId")
@example("txnctl transactions abort 0:1 --dry-run", setup="txnctl transactions begin")
@example(
    "txnctl transactions abort 0:1 --if-version 1 --reason 'stuck since the deploy'",
    setup="txnctl transactions begin",
)
@example(
    "txnctl transactions abort --label job=loader --older-than 1h --dry-run",
    setup="txnctl transactions begin --label job=loader",
)
def abort(
    context: Context,
    txns: Sequence[TxnID],
    choice: TransactionChoice,
    if_version: int | None,
    fence: bool,
) -> None:
    """Abort any transaction: messages, acknowledgements and writes are dropped.

    The messages never appear at READ_COMMITTED, acknowledged messages are delivered again, keys of tables are
    released, and messages behind the transaction become visible. --dry-run shows these effects, with the numbers of
    the real abort.

    The command refuses (exit code 9) while the owning process is alive and used the transaction within the last 60
    seconds; --force overrides that. A transaction named by TXNCTL_TXN is your own, and its owner is not checked.
    Repeating an abort succeeds and prints time, reason and author of the first abort, with the same --if-version too;
    with --fence only if the first abort fenced as well.
    A detached transaction has no process to ask for: one that was used within the last 60 seconds is aborted with a
    warning.

    With --fence, connected producers with messages in the transaction lose the session and publish nothing more
    without connecting anew. Fencing the owner of a topic raises the topic epoch, and the next waiting producer gets
    the topic. The remaining producers stay.

    Several ids, or a choice by --label, --owner, --topic and --older-than, end several transactions, the oldest
    first, after one confirmation. Each is aborted by itself: a refused one is reported, the others go on, and the exit
    code is that of the first failure. The dry run shows each as if it were the only one; JSON is a list.
    """
    from txnctl.commands.transactions.ends import abort_many, is_many

    def end(txn: TxnID) -> AbortReport:
        result = context.store.admin.transactions.abort_transaction(
            txn,
            reason=context.reason,
            if_version=if_version,
            force=context.force or not named,
            dry_run=context.dry_run,
            fence=fence,
        )
        return with_end(context.store, result)

    named = bool(txns) or choice.is_given()
    if is_many(txns, choice, if_version):
        abort_many(context, txns, choice, end)
    else:
        txn = named_or_current(txns[0] if txns else None)
        context.show(end(txn), table=lambda shown: report_lines(context, shown))

"""`txnctl transactions wait`."""

from __future__ import annotations

from storage.values.timestamps import rfc3339
from storage.values.txn_state import TransactionState
from txnctl.cli import exit_codes
from txnctl.cli.decorators import argument, changes_store, example, option, output
from txnctl.cli.value_types import DURATION, TXN_ID
from txnctl.fields.transaction import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.reports.transactions import TransactionDetails
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context


@argument("txn", type=TXN_ID, required=False, help="The transaction. [env: TXNCTL_TXN]")
@option("--timeout", type=DURATION, help="Give up after this long, with exit code 7. [default: never]")
@option("--exit-code", is_flag=True, help="End with 8 if it was aborted.")
@changes_store()
@output(FIELDS, name_field="txnId")
@example(
    "txnctl transactions wait 0:1 --timeout 1m",
    setup=("txnctl transactions begin", "txnctl transactions commit 0:1"),
)
@example(
    "txnctl transactions wait 0:1 --exit-code -o json",
    setup=("txnctl transactions begin", "txnctl transactions abort 0:1"),
    exit_code=8,
)
def wait(context: Context, txn: TxnID | None, timeout: float | None, exit_code: bool) -> None:
    """Wait until a transaction is committed or aborted.

    The wait ends at the commit or abort, in whatever process. When the deadline passes or the owning process dies, the
    waiting command aborts the transaction, as any writer would, unless the store's policy leaves aborts to
    `transactions reap`.
    """
    from txnctl.cli.current_transaction import named_or_current

    ended = context.store.reports.wait_for_transaction(named_or_current(txn), timeout)
    context.show(ended, table=_sentence)
    if exit_code and ended.row.state is TransactionState.ABORTED:
        context.exit(exit_codes.CONDITION_FOUND)


def _sentence(details: TransactionDetails) -> str:
    from txnctl.fields.touched import touched

    row = details.row
    reason = ": ".join(filter(None, [row.reason, row.reason_text]))
    why = f" ({reason})" if row.reason else ""
    ended = f"{row.txn_id} was {row.state.value.lower()}{why} at {rfc3339(row.ended_at_ms)} by {row.ended_by}"
    return f"{ended}: {touched(details)}."

"""`txnctl transactions show`: one transaction in full."""

from __future__ import annotations

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TXN_ID
from txnctl.commands.transactions.id_prefix import found_by_prefix
from txnctl.fields.transaction import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context


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
    """Show every fact about a transaction.

    Shows state and version; begin, last use and deadline; the owner, and the evidence that the owning process lives;
    topics and subscriptions touched, with positions, and the first 100 keys of each table; time, reason and author of
    the end; and a key lost to a conflict, with the winner.
    """
    from txnctl.cli.current_transaction import named_or_current
    from txnctl.commands.transactions import layout as transaction_tables

    details = found_by_prefix(context, named_or_current(txn), context.store.reports.show_transaction)
    context.show(details, table=lambda shown: transaction_tables.one(context, shown))

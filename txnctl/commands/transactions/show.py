"""`txnctl transactions show`: one transaction in full."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TXN_ID
from txnctl.commands.transactions.id_prefix import found_by_prefix
from txnctl.fields.transaction import FIELDS, with_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context

    Row = dict[str, Any]


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

    found = found_by_prefix(context, named_or_current(txn), context.store.reports.show_transaction)
    row = with_keys(to_json(found))
    context.show(row, table=lambda shown: transaction_tables.one(context, shown))

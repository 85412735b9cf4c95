"""`txnctl transactions commit`."""

from __future__ import annotations

from typing import NamedTuple

from storage.values.timestamps import rfc3339
from txnctl.cli.decorators import argument, changes_store, example, output
from txnctl.cli.value_types import TXN_ID
from txnctl.fields.transaction import DETAILS_HELP
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.json_form import Flat
    from storage.reports.transactions import TransactionDetails
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context


class Committed(NamedTuple):
    """A committed transaction; `already` where an earlier command had committed it."""

    details: Flat[TransactionDetails]
    already: bool


COMMITTED = fields_of(
    Committed,
    {**DETAILS_HELP, "already": "Whether it had been committed before: nothing was changed."},
    part="storage.reports.transactions:TransactionDetails",
)


@argument("txn", type=TXN_ID, required=False, help="The transaction. [env: TXNCTL_TXN]")
@changes_store()
@output(COMMITTED, name_field="txnId")
@example(
    "export TXNCTL_TXN=$(txnctl transactions begin)",
    "txnctl produce payments -m 'B1 -100'",
    "txnctl transactions commit",
    setup="txnctl topics create payments",
)
def commit(context: Context, txn: TxnID | None) -> None:
    """Commit a transaction: every effect becomes visible at one instant.

    Repeating a commit succeeds, with a note: a script that lost the answer may ask again. Committing an aborted
    transaction is a conflict (exit code 4), whether an operator, the deadline, the death of the owner or a lost key
    caused the abort.
    """
    from txnctl.cli.current_transaction import named_or_current

    txn_id = named_or_current(txn)
    already = not context.store.commit_transaction(txn_id)
    committed = Committed(context.store.reports.show_transaction(txn_id), already)
    context.show(committed, table=_sentence)


def _sentence(committed: Committed) -> str:
    from txnctl.fields.touched import touched

    row, content = committed.details.row, touched(committed.details)
    if committed.already:
        return (
            f"{row.txn_id} was committed already, at {rfc3339(row.ended_at_ms)} by {row.ended_by}: {content}."
        )
    return f"Committed {row.txn_id}: {content}."

"""`txnctl transactions commit`."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, changes_store, example, output
from txnctl.cli.value_types import TXN_ID
from txnctl.fields.transaction import FIELDS
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

COMMITTED = (
    *FIELDS,
    Field("already", "boolean", "Whether it had been committed before: nothing was changed."),
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
    row = to_json(context.store.reports.show_transaction(txn_id))
    context.show({**row, "already": already}, table=_sentence)


def _sentence(row: Row) -> str:
    from txnctl.fields.touched import touched

    if row["already"]:
        return (
            f"{row['txnId']} was committed already, at {row['endedAt']} by {row['endedBy']}: {touched(row)}."
        )
    return f"Committed {row['txnId']}: {touched(row)}."

"""Transactions that a command aborted on the way, because each held a key that the command needed."""

from __future__ import annotations

from txnctl.output.field import Help
from txnctl.output.human import labels_text, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.reports.transactions import TransactionRow
    from storage.store import Store
    from storage.table.conflict import ConflictRow
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context

ABORTED = {
    "transactions_aborted": Help(
        "Open transactions that held what it wrote, and were aborted: of lower priority, or older.",
        heading="",
    )
}


class Losers:
    """Create before the command does any work; asked afterwards."""

    def __init__(self, context: Context, store: Store | None = None) -> None:
        self._context = context
        self._store = store or context.store
        newest = self._store.reports.list_conflicts(1)
        self._seen = newest[0].number if newest else 0

    def told(self, *, version: int | None = None, txn: TxnID | None = None) -> list[TxnID]:
        """Name every transaction aborted since on standard error; return the ids.

        Args:
            version, txn: identity of the winner: the version written, or the transaction id.
        """
        conflicts = [
            row
            for row in self._store.reports.list_conflicts()
            if row.number > self._seen
            and (row.winner_version_ns == version if txn is None else row.winner == txn)
        ]
        conflicts.reverse()
        for row in conflicts:
            self._context.note(_sentence(row, self._store.reports.show_transaction(row.loser).row))
        return [row.loser for row in conflicts]


def _sentence(conflict: ConflictRow, loser: TransactionRow) -> str:
    """`aborted 0:3 (who=bob), which held B2 of accounts: 3 acknowledgements given back`."""
    from txnctl.commands.tables.key import shown_key

    effects = []
    if loser.messages:
        effects.append(f"{plural(loser.messages, 'message')} discarded")
    if loser.acknowledgements:
        effects.append(f"{plural(loser.acknowledgements, 'acknowledgement')} given back")
    lost = f": {', '.join(effects)}" if effects else ""
    who = labels_text(loser.labels) or loser.owner.address
    return f"aborted {loser.txn_id} ({who}), which held {shown_key(conflict.key or b'')} of {conflict.table}{lost}"

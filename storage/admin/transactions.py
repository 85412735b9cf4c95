"""Abort and reap transactions on request of an operator."""

from __future__ import annotations

from storage.admin.abort import AbortRequest, AbortResult, abort_transaction
from storage.admin.reap import reap_transactions
from storage.client.transaction import Transaction, txn_number
from storage.engine import Engine
from storage.reports.transactions import TransactionRow
from storage.values.arguments import check_flags
from storage.values.txn_id import TxnID


class TransactionAdmin:
    """Audited ends of transactions of any process, as `store.admin.transactions`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def abort_transaction(
        self,
        txn: Transaction | TxnID | str,
        *,
        reason: str | None = None,
        if_version: int | None = None,
        force: bool = False,
        dry_run: bool = False,
        fence: bool = False,
    ) -> AbortResult:
        """Abort a transaction, also one of another process, and return the effects.

        Args:
            if_version: abort only if the record of the transaction still has this version.
            force: abort although the process of the transaction lives and used the transaction within the last minute.
            dry_run: change nothing, and return the effects that the abort would have.
            fence: also end the sessions of the producers of the aborted messages, which then must connect anew.

        Raises:
            TransactionNotFound, TransactionNotOpen, TransactionChanged, OwnerAlive
        """
        check_flags(force=force, dry_run=dry_run, fence=fence)
        request = AbortRequest(reason, if_version, force, dry_run, fence)
        return abort_transaction(self._engine, txn_number(self._engine.connection, txn), request)

    def reap_transactions(
        self, limit: int = 1000, *, dry_run: bool = False, reason: str | None = None
    ) -> list[TransactionRow]:
        """End up to `limit` overdue and orphaned transactions now, and return the row of each.

        A dry run returns the rows of the open transactions, with the reason of the abort that would follow.
        """
        check_flags(dry_run=dry_run)
        return reap_transactions(self._engine, limit, dry_run, reason)

"""How operators change a store, whatever it is that they change.

Each change is one store transaction (deleting and skipping much: several, resumable), has a dry run that is the same
code up to the commit, and leaves a record in the audit trail. Open transactions that hold something refuse it; `force`
aborts them first, in the same store transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from storage import audit_trail
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.errors import ObjectHeld
from storage.subscription import catalogue as subscriptions
from storage.subscription.catalogue import AttachedConsumer
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.subscription.update import transactions_holding
from storage.values.txn_id import TxnID
from storage.values.txn_state import AbortReason


class Changes:
    """Of one store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection = engine.connection

    def _change(
        self,
        action: str,
        target: str,
        change: Callable[[WriteBatch], dict[str, Any]],
        dry_run: bool,
        reason: str | None,
        changed: str | None = None,
    ) -> dict[str, Any]:
        """Args:
        changed: the field of the result without which nothing was changed, and nothing is recorded.
        """

        def audited(batch: WriteBatch) -> dict[str, Any]:
            result = change(batch)
            if changed is None or result[changed]:
                audit_trail.record(batch, self._connection.owner, action, target, reason, result)
            return {**result, "dryRun": dry_run}

        audit_trail.check_reason(reason)
        return self._connection.write(audited, dry_run=dry_run)

    def _holders(self, batch: WriteBatch, mine: Subscription) -> list[int]:
        return transactions_holding(OpenSubscription(batch, mine))

    def _living(self, batch: WriteBatch, mine: Subscription) -> list[AttachedConsumer]:
        return [
            each
            for each in subscriptions.consumers(batch, mine.subscription_id)
            if batch.lock_file.is_held(each.lease)
        ]

    def _end_holders(self, batch: WriteBatch, what: str, holders: list[int], force: bool) -> list[str]:
        """Abort the open transactions that hold an object, or refuse."""
        ids = [str(TxnID(txn)) for txn in holders]
        if holders and not force:
            raise ObjectHeld(
                f"{what} is held by open transactions: {', '.join(ids[:5])}",
                hint="Wait for them to end, or use --force to abort them first.",
                transactions=ids,
            )
        for txn in holders:
            self._engine.coordinator.abort(
                batch, txn, self._connection.owner, AbortReason.ASKED, f"{what} was changed by force"
            )
        return ids

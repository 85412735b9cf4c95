"""Run a change by an operator as one audited store transaction.

Every change has a dry run, which is the same code up to the commit, and leaves a record in the audit trail. Deleting
and skipping much take several store transactions and are resumable. Open transactions that hold the object refuse the
change; `force` aborts these transactions first, in the same store transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from storage.topic import catalogue as topics
from storage.topic.catalogue import Topic
from storage.values.txn_id import TxnID
from storage.values.txn_state import AbortReason


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A change as the audit trail names it.

    Attributes:
        action: the command, such as `topics delete`.
        target: the object changed.
        changed: the field of the result that is empty if nothing was changed; then nothing is recorded.
    """

    action: str
    target: str
    dry_run: bool
    reason: str | None
    changed: str | None = None


def run_change(
    engine: Engine, request: ChangeRequest, change: Callable[[WriteBatch], dict[str, Any]]
) -> dict[str, Any]:
    """Run a change and record the result in the audit trail, in one store transaction."""

    def audited(batch: WriteBatch) -> dict[str, Any]:
        result = change(batch)
        if request.changed is None or result[request.changed]:
            audit_trail.record(batch, engine.process, request.action, request.target, request.reason, result)
        return {**result, "dryRun": request.dry_run}

    audit_trail.check_reason(request.reason)
    return engine.connection.write(audited, dry_run=request.dry_run)


def change_subscription(
    engine: Engine,
    topic: str,
    name: str,
    request: ChangeRequest,
    change: Callable[[Topic, OpenSubscription[WriteBatch]], dict[str, Any]],
) -> dict[str, Any]:
    """Run a change of one open subscription."""

    def loaded(batch: WriteBatch) -> dict[str, Any]:
        found = topics.get(batch, topic)
        subscription = subscriptions.get(batch, found, name)
        return {
            "topic": found.full_name,
            "subscription": name,
            **change(found, OpenSubscription(batch, subscription)),
        }

    return run_change(engine, request, loaded)


def transactions_on(batch: WriteBatch, subscription: Subscription) -> list[int]:
    """Open transactions that have acknowledgements pending on a subscription."""
    return transactions_holding(OpenSubscription(batch, subscription))


def living_consumers(batch: WriteBatch, subscription: Subscription) -> list[AttachedConsumer]:
    """Attached consumers whose process is alive."""
    return [
        consumer
        for consumer in subscriptions.consumers(batch, subscription.subscription_id)
        if batch.lock_file.leases.is_held(consumer.lease)
    ]


def abort_holders(
    engine: Engine, batch: WriteBatch, subject: str, holders: list[int], force: bool
) -> list[str]:
    """Abort the open transactions that hold an object, and return their ids.

    Raises:
        ObjectHeld: there are such transactions, and `force` is not set.
    """
    ids = [str(TxnID(txn)) for txn in holders]
    if holders and not force:
        raise ObjectHeld(
            f"{subject} is held by open transactions: {', '.join(ids[:5])}",
            hint="Wait for them to end, or use --force to abort them first.",
            transactions=ids,
        )
    for txn in holders:
        engine.coordinator.abort(
            batch, txn, engine.process, AbortReason.ASKED, f"{subject} was changed by force"
        )
    return ids

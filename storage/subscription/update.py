"""Changing what belongs to a subscription while nobody is attached: its type, isolation level and on-open.

READ_UNCOMMITTED → READ_COMMITTED: what was acknowledged while uncommitted stays acknowledged. READ_COMMITTED →
READ_UNCOMMITTED: what was skipped stays skipped. Only a seek shows it again.
"""

from __future__ import annotations

from storage.disk.view import WriteBatch
from storage.errors import ObjectHeld
from storage.subscription import cursor as cursors, delivery as deliveries
from storage.subscription.catalogue import Subscription
from storage.subscription.cursor import Cursor
from storage.subscription.dispatch import skipped_txns
from storage.subscription.isolation import (
    IsolationLevel,
    OnOpen,
    SubscriptionType,
    check_on_open,
    delivers,
)
from storage.topic import log, state
from storage.txn.aborted import AbortedSet
from storage.values.txn_id import TxnID


def update(
    batch: WriteBatch,
    subscription: Subscription,
    cursor: Cursor,
    type_: SubscriptionType | None,
    level: IsolationLevel | None,
    on_open: OnOpen | None = None,
) -> list[str]:
    """Change type, level or on-open; what changed, in words. The caller saves subscription and cursor.

    Raises:
        ObjectHeld: an open transaction has acknowledgements pending, which a change of type would break.
        InvalidValue: the subscription would skip what is open with a type or level that cannot.
    """
    before, skipped = (subscription.type, subscription.level, subscription.on_open), subscription.skips
    wanted_on_open = on_open or subscription.on_open
    check_on_open(type_ or subscription.type, level or subscription.level, wanted_on_open)
    changes = []
    if type_ is not None and type_ is not subscription.type:
        check_nothing_pending(batch, subscription, cursor, "change its type")
        changes.append(f"type {subscription.type.value} -> {type_.value}")
        subscription.type = type_
    if level is not None and level is not subscription.level:
        take_in(batch, subscription, cursor)
        changes.append(f"subscriptionIsolationLevel {subscription.level.value} -> {level.value}")
        cursor.has_uncommitted_acks |= subscription.level is IsolationLevel.READ_UNCOMMITTED
        subscription.level = level
        take_in(batch, subscription, cursor)
        # Dispatch looks at everything again: what the old level left out, or delivered early, is judged anew.
        cursor.read = cursor.mark_delete
    if wanted_on_open is not subscription.on_open:
        changes.append(f"onOpen {subscription.on_open.value} -> {wanted_on_open.value}")
        subscription.on_open = wanted_on_open
    after = (subscription.type, subscription.level, subscription.on_open)
    if after != before and (skipped or subscription.skips):
        # What was passed over is found again from markDeletePosition on, by the new rules.
        skipped_txns.clear(batch, subscription.subscription_id, cursor)
        cursor.read = cursor.mark_delete
    return changes


def check_nothing_pending(batch: WriteBatch, subscription: Subscription, cursor: Cursor, what: str) -> None:
    """Raises:
    ObjectHeld: an open transaction has acknowledgements pending on the subscription, which cannot `what`.
    """
    holders = transactions_holding(batch, subscription, cursor)
    if holders:
        raise ObjectHeld(
            f"subscription {subscription.name} cannot {what}: acknowledgements are pending in "
            f"{', '.join(str(TxnID(txn)) for txn in holders[:5])}",
            hint="Wait for those transactions to end, or abort them.",
            transactions=[str(TxnID(txn)) for txn in holders],
        )


def transactions_holding(batch: WriteBatch, subscription: Subscription, cursor: Cursor) -> list[int]:
    """Open transactions with acknowledgements pending on a subscription."""
    from storage.disk.codec import key1
    from storage.disk.schema import PENDING

    found = {
        int.from_bytes(key[24:], "big") for key in batch.keys(PENDING, key1(subscription.subscription_id))
    }
    if cursor.pending_cumulative is not None:
        found.add(cursor.pending_cumulative[0])
    return sorted(found)


def take_in(batch: WriteBatch, subscription: Subscription, cursor: Cursor) -> None:
    """At READ_COMMITTED, acknowledge the markers and aborted messages directly after markDeletePosition."""
    if subscription.level is not IsolationLevel.READ_COMMITTED or cursor.pending_cumulative is not None:
        return
    topic_id, head, aborted = (
        subscription.topic_id,
        state.load(batch, subscription.topic_id),
        AbortedSet(),
    )
    while cursor.mark_delete < head.max_read:
        page = log.page(batch, topic_id, cursor.mark_delete, head.max_read)
        if not page:
            return
        aborted.load(batch, topic_id, head, cursor.mark_delete, page[-1].position)
        for entry in page:
            at = (entry.ledger_id, entry.entry_id)
            if at <= cursor.mark_delete:
                continue
            if delivers(IsolationLevel.READ_COMMITTED, entry.kind, entry.txn, aborted.ids):
                return
            delivery = deliveries.find(batch, subscription.subscription_id, at)
            if delivery is not None and delivery.of(deliveries.PENDING):
                return
            deliveries.settle(batch, subscription.subscription_id, cursor, at, -1)
            cursors.acknowledge_through(batch, subscription.subscription_id, cursor, at)
            cursors.advance(batch, topic_id, subscription.subscription_id, cursor)

"""Change type, isolation level or on-open of a subscription without consumers, and move its cursor.

READ_UNCOMMITTED → READ_COMMITTED: messages acknowledged while uncommitted stay acknowledged. READ_COMMITTED →
READ_UNCOMMITTED: messages that were left out stay left out. Only a seek shows such messages again.
"""

from __future__ import annotations

from storage.disk.codec import key1
from storage.disk.schema import ACKS, PENDING
from storage.disk.view import ReadView, WriteBatch
from storage.errors import ObjectHeld
from storage.subscription import left_out, mark_index
from storage.subscription.dispatch import skipped_txns
from storage.subscription.isolation import IsolationLevel, SubscriptionMode, check_on_open
from storage.subscription.open_subscription import OpenSubscription
from storage.values.position import Position
from storage.values.txn_id import TxnID


def update(opened: OpenSubscription[WriteBatch], asked: SubscriptionMode) -> list[str]:
    """Change type, level or on-open, and describe the changes. `catalogue.save` writes the subscription afterwards.

    Raises:
        ObjectHeld: an open transaction has acknowledgements pending, which a change of type would break.
        InvalidValue: a type or level that cannot skip open transactions, together with on-open skip.
    """
    subscription, cursor, changes = opened.subscription, opened.cursor, list[str]()
    before, skipped = (subscription.type, subscription.level, subscription.on_open), subscription.skips
    on_open = asked.on_open or subscription.on_open
    check_on_open(asked.type or subscription.type, asked.level or subscription.level, on_open)
    if asked.type is not None and asked.type is not subscription.type:
        check_nothing_pending(opened, "change its type")
        changes.append(f"type {subscription.type.value} -> {asked.type.value}")
        subscription.type = asked.type
    if asked.level is not None and asked.level is not subscription.level:
        opened.delayed.clear()
        left_out.acknowledge(opened)
        changes.append(f"subscriptionIsolationLevel {subscription.level.value} -> {asked.level.value}")
        cursor.has_uncommitted_acks |= subscription.level is IsolationLevel.READ_UNCOMMITTED
        subscription.level = asked.level
        left_out.acknowledge(opened)
        # Dispatch examines everything again: messages that the old level left out, or delivered early, are judged anew.
        cursor.read = cursor.mark_delete
    if on_open is not subscription.on_open:
        changes.append(f"onOpen {subscription.on_open.value} -> {on_open.value}")
        subscription.on_open = on_open
    after = (subscription.type, subscription.level, subscription.on_open)
    if after != before and (skipped or subscription.skips):
        # Dispatch finds skipped transactions again from markDeletePosition on, by the new rules.
        skipped_txns.clear(opened)
        opened.delayed.clear()
        cursor.read = cursor.mark_delete
    elif cursor.delayed and not subscription.delays:
        # The type delivers in the order of the log, and must come to the delayed messages again.
        opened.delayed.clear()
        cursor.read = cursor.mark_delete
    return changes


def move(opened: OpenSubscription[WriteBatch], after: Position) -> int:
    """Move the cursor of a subscription, and withdraw the messages in flight; return their number.

    No acknowledgement may be pending. `catalogue.save` writes the subscription afterwards.
    """
    batch, subscription, cursor = opened.view, opened.subscription, opened.cursor
    withdrawn = sum(delivery.in_flight().bit_count() for delivery in opened.deliveries.records())
    cursor.mark_delete = cursor.read = after
    mark_index.lower(batch, subscription.topic_id, subscription.subscription_id, after)
    cursor.generation += 1
    cursor.recalled, cursor.has_uncommitted_acks = None, False
    skipped_txns.clear(opened)
    opened.deliveries.clear()
    opened.delayed.clear()
    batch.delete_prefix(ACKS, key1(subscription.subscription_id))
    subscription.start = min(subscription.start, after)
    return withdrawn


def check_nothing_pending(opened: OpenSubscription[ReadView], action: str) -> None:
    """Raises:
    ObjectHeld: an open transaction has acknowledgements pending on the subscription, which forbid the action.
    """
    holders = transactions_holding(opened)
    if holders:
        raise ObjectHeld(
            f"subscription {opened.subscription.name} cannot {action}: acknowledgements are pending in "
            f"{', '.join(str(TxnID(txn)) for txn in holders[:5])}",
            hint="Wait for those transactions to end, or abort them.",
            held_by=holders,
            transactions=[str(TxnID(txn)) for txn in holders],
        )


def is_pending(opened: OpenSubscription[ReadView]) -> bool:
    """Whether an open transaction has acknowledgements pending on a subscription."""
    is_cumulative = opened.cursor.pending_cumulative is not None
    return is_cumulative or opened.view.first(PENDING, key1(opened.subscription_id)) is not None


def transactions_holding(opened: OpenSubscription[ReadView]) -> list[int]:
    """Open transactions with acknowledgements pending on a subscription."""
    keys = opened.view.keys(PENDING, key1(opened.subscription_id))
    holding = {int.from_bytes(key[24:], "big") for key in keys}
    if opened.cursor.pending_cumulative is not None:
        holding.add(opened.cursor.pending_cumulative[0])
    return sorted(holding)

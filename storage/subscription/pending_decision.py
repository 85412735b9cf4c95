"""A subscription as a participant of transactions: pending acknowledgements are applied or released.

Invariant 7: committed, a message is never delivered again; aborted, it is pending nowhere and deliverable again.
"""

from __future__ import annotations

from itertools import islice

from storage.disk.codec import corrupt, key1, key3, missing
from storage.disk.schema import DELIVERIES, PART_SUBSCRIPTION, PENDING, SUBSCRIPTIONS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import CorruptStore, TxnctlError
from storage.subscription import (
    catalogue as subscriptions,
    delivery as deliveries,
    mark_index,
    pending_records,
    span,
)
from storage.subscription.ack_spans import AckedMessages
from storage.subscription.delivery import NOBODY, Delivery, DeliveryPart
from storage.subscription.isolation import IsolationLevel
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.pending_ack import SubscriptionPart, acknowledge_cumulative, all_pending, recall
from storage.subscription.pending_records import PendingRecord
from storage.subscription.subscription import Subscription
from storage.topic import log
from storage.txn import record as records
from storage.txn.participant import SubscriptionEffect, SubscriptionWork
from storage.values.position import Position
from storage.values.txn_state import TransactionState

_POSITIONS_DESCRIBED = 100
_LOOKED_THROUGH = 8


class PendingAcks:
    """A subscription as a participant of the coordinator."""

    kind = PART_SUBSCRIPTION

    def refusal(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TxnctlError | None:  # noqa: ARG002
        """None: a pending acknowledgement was checked when made, and stays until the end of the transaction."""
        return None

    def decide(
        self, batch: WriteBatch, txn: int, object_id: int, part: memoryview, committed: bool
    ) -> SubscriptionEffect:
        """Apply all acknowledgements of the transaction, or release all."""
        pending = SubscriptionPart.decode(part)
        subscription = _find_subscription(batch, pending.topic_id, object_id)
        if subscription is None:
            # A subscription with pending acknowledgements is not deleted.
            raise corrupt(SUBSCRIPTIONS, key1(pending.topic_id), f"subscription {object_id} is not there")
        opened = OpenSubscription(batch, subscription)
        before = opened.cursor.mark_delete
        if committed:
            self._apply(opened, txn, pending)
        else:
            self._release(opened, txn, pending)
        opened.acks.advance()
        return SubscriptionEffect(
            pending.topic_id, opened.subscription.name, pending.messages,
            pending.cumulative.position if pending.cumulative else None, before, opened.cursor.mark_delete,
        )  # fmt: skip

    def _apply(self, opened: OpenSubscription[WriteBatch], txn: int, pending: SubscriptionPart) -> None:
        batch, subscription_id = opened.view, opened.subscription_id
        for record in all_pending(batch, txn, subscription_id, pending):
            pending_records.remove(batch, subscription_id, record)
            for delivery, messages in _held_records(opened, record):
                _acknowledge(opened, delivery, messages)
        if pending.cumulative is not None:
            opened.cursor.pending_cumulative = None
            acknowledge_cumulative(opened, pending.cumulative)

    def _release(self, opened: OpenSubscription[WriteBatch], txn: int, pending: SubscriptionPart) -> None:
        batch, subscription_id, cursor = opened.view, opened.subscription_id, opened.cursor
        first: tuple[Position, int] | None = None
        is_ordered = opened.subscription.type.is_ordered
        for record in all_pending(batch, txn, subscription_id, pending):
            pending_records.remove(batch, subscription_id, record)
            for delivery, released in _held_records(opened, record):
                at = delivery.first_entry(released)
                inside = span.of_entry(at, released) if delivery.is_span else released
                first = min(first or (at, inside), (at, inside))
                gone = _passed(opened, delivery, released)
                if gone:
                    _acknowledge(opened, delivery, gone)
                for cut in delivery.take(released & ~gone):
                    delivery.give(DeliveryPart(cut.messages, NOBODY, cut.times, recalled=is_ordered))
                opened.deliveries.put(delivery)
        if pending.cumulative is not None:
            cursor.pending_cumulative = None
            if pending.cumulative.position > cursor.read:
                cursor.recalled = pending.cumulative.position
            cursor.read = cursor.mark_delete
            recall(opened, cursor.mark_delete, -1)
        elif first is not None and is_ordered:
            # In the entry of the first released message, the messages before it stay in flight.
            recall(opened, first[0], -(first[1] & -first[1]))

    def describe(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> SubscriptionWork:
        """Subscription, and the pending messages."""
        pending = SubscriptionPart.decode(part)
        subscription = _find_subscription(view, pending.topic_id, object_id)
        name = f"(deleted, {object_id})" if subscription is None else subscription.name
        pending_acks = [] if subscription is None else pending_records.of_transaction(view, txn, object_id)
        positions: list[Position] = []
        for record in sorted(pending_acks, key=lambda record: record.at):
            positions += record.positions() if len(positions) < _POSITIONS_DESCRIBED else ()
        positions = sorted(positions)[:_POSITIONS_DESCRIBED]
        cumulative = pending.cumulative.position if pending.cumulative else None
        return SubscriptionWork(pending.topic_id, name, pending.messages, cumulative, positions)


def _find_subscription(view: ReadView, topic_id: int, subscription_id: int) -> Subscription | None:
    """The subscription of an id: among the first few of the topic, else by the name that the index of marks has."""
    for subscription in islice(subscriptions.every(view, topic_id), _LOOKED_THROUGH):
        if subscription.subscription_id == subscription_id:
            return subscription
    bound = mark_index.find(view, topic_id, subscription_id)
    if bound is not None:
        return subscriptions.by_name(view, topic_id, bound.name)
    every = subscriptions.every(view, topic_id)
    return next((one for one in every if one.subscription_id == subscription_id), None)


def _acknowledge(opened: OpenSubscription[WriteBatch], delivery: Delivery, messages: int) -> None:
    """Acknowledge messages of a record that a transaction had pending."""
    opened.deliveries.note_taken(delivery.take(messages), NOBODY)
    opened.deliveries.put(delivery)
    if delivery.is_span:
        opened.acks.acknowledge_span(delivery.at, AckedMessages(messages, delivery.sizes))
    else:
        opened.acks.acknowledge(delivery.at, delivery.count, messages)


def _passed(opened: OpenSubscription[ReadView], delivery: Delivery, released: int) -> int:
    """The released messages of aborted transactions, which dispatch left to their acknowledgement as it passed."""
    cursor = opened.cursor
    if opened.subscription.level is not IsolationLevel.READ_COMMITTED or not cursor.has_uncommitted_acks:
        return 0
    passed, examined = 0, released & delivery.through(cursor.read, -1)
    for at in span.entries(delivery.at, examined) if delivery.is_span else [delivery.at] if examined else ():
        txn = log.stored(opened.view, opened.topic_id, at).txn
        if txn and records.state_of(opened.view, txn) is TransactionState.ABORTED:
            passed |= span.place(at, span.of_entry(at, examined)) if delivery.is_span else examined
    return passed


def _held_records(opened: OpenSubscription[WriteBatch], record: PendingRecord) -> list[tuple[Delivery, int]]:
    """The records of deliveries that hold pending messages, each with the messages.

    An entry that is pending in a span may have a delivery of its own.

    Raises:
        CorruptStore: a delivery is missing, or has no such messages.
    """
    if not record.is_span:
        return [_held_delivery(opened, record)]
    messages, held = record.messages(0), list[tuple[Delivery, int]]()
    delivery = opened.deliveries.find_span(record.at)
    inside = messages & delivery.of(deliveries.PENDING) if delivery is not None else 0
    if delivery is not None and inside:
        held.append((delivery, inside))
    for at, stored in span.entries_of(record.at, messages & ~inside):
        held.append(_held_delivery(opened, PendingRecord(at, False, record.txn, stored)))
    return held


def _held_delivery(opened: OpenSubscription[WriteBatch], record: PendingRecord) -> tuple[Delivery, int]:
    delivery, key = opened.deliveries.find(record.at), key3(opened.subscription_id, *record.at)
    if delivery is None:
        raise missing(DELIVERIES, key)
    try:
        return delivery, record.messages(delivery.count)
    except CorruptStore as error:
        raise corrupt(PENDING, key, error.message) from error

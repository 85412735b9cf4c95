"""Acknowledging from outside a consumer, giving messages back, and what waits for its transaction."""

from __future__ import annotations

from typing import Any

from storage import audit_trail
from storage.admin.change import transactions_on
from storage.client.transaction import Transaction, txn_number
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.errors import InvalidValue
from storage.process.clock import nanoseconds
from storage.subscription import (
    catalogue as subscriptions,
    cursor as cursors,
)
from storage.subscription.acknowledge import Acknowledger, add_item, item_of
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.redelivery import negative_acknowledge
from storage.topic import catalogue as topics
from storage.txn import record as records
from storage.values.position import MessageId, Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState


class AcknowledgementAdmin:
    """Acknowledgements from outside a consumer, as `store.admin.acknowledgements`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def acknowledge_messages(
        self,
        topic: str,
        name: str,
        message_ids: list[MessageId],
        *,
        cumulative: bool = False,
        txn: Transaction | TxnID | str | None = None,
        force: bool = False,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Acknowledge messages from outside a consumer; a message id without a batch index means its whole entry.

        Args:
            reason: for the audit trail, where `force` aborts a transaction.

        Raises:
            as `Consumer.acknowledge`
        """
        audit_trail.check_reason(reason)
        txn_id = 0 if txn is None else txn_number(txn)
        if cumulative and len(message_ids) != 1:
            raise InvalidValue("a cumulative acknowledgement takes one message id")

        def change(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            mine = subscriptions.get(batch, found, name)
            acknowledger = Acknowledger(self._engine.coordinator, mine, self._engine.process)
            done: int | None = None
            found_items: dict[Position, int] = {}
            for each in message_ids:
                add_item(found_items, *item_of(each))
            items = list(found_items.items())
            holding = transactions_on(batch, mine)
            if cumulative:
                acknowledger.acknowledge_cumulative(batch, message_ids[0], txn_id, force)
            else:
                done = acknowledger.acknowledge(batch, items, txn_id, force)
            after = cursors.load(batch, mine.subscription_id).mark_delete
            aborted = [
                str(TxnID(txn)) for txn in holding if records.state_of(batch, txn) is TransactionState.ABORTED
            ]
            if aborted:
                effects = {"transactionsAborted": aborted}
                by = self._engine.process
                audit_trail.record(batch, by, "subscriptions ack --force", f"{topic} {name}", reason, effects)
            return {
                "transactionsAborted": aborted,
                "topic": found.full_name, "subscription": name, "acknowledged": done,
                "txnId": str(TxnID(txn_id)) if txn_id else None, "markDeletePosition": str(Position(*after)),
                "dryRun": dry_run,
            }  # fmt: skip

        return self._engine.connection.write(change, naming=txn_id, dry_run=dry_run)

    def acknowledge_through(self, topic: str, name: str, position: Position) -> dict[str, Any]:
        """Acknowledge all that lies up to a position, messages or not, for one who keeps his own place in the log.

        The cursor never moves back, nor beyond what the subscription may be handed.

        Raises:
            TopicNotFound, SubscriptionNotFound
            InvalidValue: the subscription is Shared or Key_Shared.
            MessageNotFound: there is no such position.
            TransactionConflict: an open transaction holds some of it.
        """

        def change(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            mine = subscriptions.get(batch, found, name)
            after = Acknowledger(self._engine.coordinator, mine, self._engine.process).acknowledge_through(
                batch, position
            )
            return {
                "topic": found.full_name,
                "subscription": name,
                "markDeletePosition": str(Position(*after)),
            }

        return self._engine.connection.write(change)

    def negative_acknowledge_messages(
        self,
        topic: str,
        name: str,
        message_ids: list[MessageId],
        *,
        delay: float = 60.0,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Give messages back that are in flight or free, to be handed out again after `delay` seconds.

        Raises:
            TopicNotFound, SubscriptionNotFound, InvalidValue
        """
        delay_ns = nanoseconds(delay, "a delay")

        audit_trail.check_reason(reason)

        def change(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            mine = subscriptions.get(batch, found, name)
            items = [item_of(each) for each in message_ids]
            returned = negative_acknowledge(OpenSubscription(batch, mine), items, delay_ns)
            given = sum(messages.bit_count() for _, messages in returned)
            if given:
                effects, by = {"givenBack": given}, self._engine.process
                audit_trail.record(batch, by, "subscriptions nack", f"{topic} {name}", reason, effects)
            return {"topic": found.full_name, "subscription": name, "givenBack": given, "dryRun": dry_run}

        return self._engine.connection.write(change, dry_run=dry_run)

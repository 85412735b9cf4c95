"""Acknowledge messages from outside a consumer, and give messages back."""

from __future__ import annotations

from storage import audit_trail
from storage.admin.audited_change import Aborted, transactions_on
from storage.client.transaction import Transaction, txn_number
from storage.disk.reserve import ReserveShare
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.errors import InvalidValue
from storage.subscription import (
    attached_consumers,
    catalogue as subscriptions,
)
from storage.subscription.acknowledge import Acknowledger, add_item, item_of
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.redelivery import negative_acknowledge
from storage.topic import catalogue as topics
from storage.txn import record as records
from storage.values.arguments import check_delay_ns, check_flags, check_many
from storage.values.named_tuple import NamedTuple
from storage.values.position import MessageId, Position, position_of
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState


class Acknowledged(NamedTuple):
    """The effects of an acknowledgement; `acknowledged` is None for a cumulative one."""

    transactions_aborted: list[TxnID]
    topic: str
    subscription: str
    acknowledged: int | None
    txn_id: TxnID | None
    mark_delete_position: Position
    dry_run: bool


class AcknowledgedThrough(NamedTuple):
    """The cursor after a cumulative acknowledgement of positions."""

    topic: str
    subscription: str
    mark_delete_position: Position


class GivenBack(NamedTuple):
    """Messages given back, as the audit trail stores them."""

    given_back: int


class NegativelyAcknowledged(NamedTuple):
    """The effects of a negative acknowledgement."""

    topic: str
    subscription: str
    given_back: int
    dry_run: bool


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
    ) -> Acknowledged:
        """Acknowledge messages from outside a consumer; a message id without a batch index means its whole entry.

        Args:
            reason: for the audit trail, where `force` aborts a transaction.

        Raises:
            as `Consumer.acknowledge`
        """
        check_flags(cumulative=cumulative, force=force, dry_run=dry_run)
        audit_trail.check_reason(reason)
        check_many("message ids", message_ids)
        txn_id = 0 if txn is None else txn_number(self._engine.connection, txn)
        if cumulative and len(message_ids) != 1:
            raise InvalidValue("a cumulative acknowledgement takes one message id")

        def change(batch: WriteBatch) -> Acknowledged:
            entry = topics.get(batch, topic)
            subscription = subscriptions.get(batch, entry, name)
            acknowledger = Acknowledger(self._engine.coordinator, subscription, self._engine.process)
            items: dict[Position, int] = {}
            for message_id in message_ids:
                add_item(items, *item_of(message_id))
            done: int | None = None
            holders = transactions_on(batch, subscription)
            if cumulative:
                acknowledger.acknowledge_cumulative(batch, message_ids[0], txn_id, force)
            else:
                done = acknowledger.acknowledge(batch, list(items.items()), txn_id, force)
            opened = OpenSubscription(batch, subscription)
            attached_consumers.note_use(opened)
            after = opened.cursor.mark_delete
            aborted = [
                TxnID(holder)
                for holder in holders
                if records.state_of(batch, holder) is TransactionState.ABORTED
            ]
            if aborted:
                process, action = self._engine.process, "subscriptions ack --force"
                audit_trail.record(batch, process, action, f"{topic} {name}", reason, Aborted(aborted))
            return Acknowledged(
                aborted,
                entry.full_name,
                name,
                done,
                TxnID(txn_id) if txn_id else None,
                Position(*after),
                dry_run,
            )

        return self._engine.connection.write(change, naming=txn_id, dry_run=dry_run, share=ReserveShare.PART)

    def acknowledge_through(self, topic: str, name: str, position: Position) -> AcknowledgedThrough:
        """Acknowledge all entries up to a position, for a program that keeps its own position in the log.

        The cursor moves neither back nor beyond the visible messages of the subscription.

        Raises:
            TopicNotFound, SubscriptionNotFound
            InvalidValue: the subscription is Shared or Key_Shared.
            MessageNotFound: there is no such position.
            TransactionConflict: an open transaction holds a message of the range.
            InvalidPosition
        """
        through = position_of(position)

        def change(batch: WriteBatch) -> AcknowledgedThrough:
            entry = topics.get(batch, topic)
            subscription = subscriptions.get(batch, entry, name)
            acknowledger = Acknowledger(self._engine.coordinator, subscription, self._engine.process)
            after = acknowledger.acknowledge_through(batch, through)
            attached_consumers.note_use(OpenSubscription(batch, subscription))
            return AcknowledgedThrough(entry.full_name, name, Position(*after))

        return self._engine.connection.write(change, share=ReserveShare.PART)

    def negative_acknowledge_messages(
        self,
        topic: str,
        name: str,
        message_ids: list[MessageId],
        *,
        delay: float = 60.0,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> NegativelyAcknowledged:
        """Give messages back that are in flight or free, to be delivered again after `delay` seconds.

        Raises:
            TopicNotFound, SubscriptionNotFound, MessageNotFound, InvalidPosition, InvalidValue
        """
        check_flags(dry_run=dry_run)
        delay_ns = check_delay_ns("a delay", delay, for_ever=True)

        audit_trail.check_reason(reason)
        check_many("message ids", message_ids)

        def change(batch: WriteBatch) -> NegativelyAcknowledged:
            entry = topics.get(batch, topic)
            subscription = subscriptions.get(batch, entry, name)
            items = [item_of(message_id) for message_id in message_ids]
            returned = negative_acknowledge(OpenSubscription(batch, subscription), items, delay_ns)
            given = sum(messages.bit_count() for _, messages in returned)
            if given:
                process, action = self._engine.process, "subscriptions nack"
                audit_trail.record(batch, process, action, f"{topic} {name}", reason, GivenBack(given))
            return NegativelyAcknowledged(entry.full_name, name, given, dry_run)

        return self._engine.connection.write(change, dry_run=dry_run, share=ReserveShare.PART)

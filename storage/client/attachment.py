"""One consumer's attachment to its subscription: checked in every batch, and taken over when a consumer has died."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from storage.client.transaction import Transaction, txn_number
from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.disk.schema import CURSORS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import ConsumerEvicted, StoreClosed, SubscriptionNotFound
from storage.subscription import attached_consumers, catalogue as subscriptions, subscription_purge, update
from storage.subscription.attached_consumers import AttachedConsumer
from storage.subscription.dispatch.receiver_queue import Messages
from storage.subscription.isolation import SubscriptionType
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.topic.catalogue import Topic
from storage.topic.message import MessageOrigin
from storage.txn import reaper
from storage.txn.coordinator import Coordinator
from storage.values.txn_id import TxnID

T = TypeVar("T")


class Attachment:
    """See the module.

    Attributes:
        is_closed: whether the consumer was closed; then nothing more is done by it.
        origin: of the messages that the consumer receives, and may acknowledge.
    """

    __slots__ = (
        "_consumer",
        "_has_looked",
        "_turn",
        "connection",
        "coordinator",
        "is_closed",
        "origin",
        "subscription",
        "topic",
    )

    def __init__(
        self,
        connection: Connection,
        coordinator: Coordinator,
        topic: Topic,
        subscription: Subscription,
        consumer: AttachedConsumer,
    ) -> None:
        self.coordinator = coordinator
        self._consumer = consumer
        self.connection = connection
        self.topic = topic
        self.origin = MessageOrigin(topic.name, topic.topic_id, connection.incarnation)
        self.subscription = subscription
        self.is_closed = self._has_looked = False
        self._turn = consumer.consumer_id

    @property
    def consumer_id(self) -> int:
        return self._consumer.consumer_id

    @property
    def reads_compacted(self) -> bool:
        """Whether the consumer reads the compacted view, and then the log behind the horizon."""
        return self._consumer.reads_compacted

    @property
    def consumer_name(self) -> str:
        return self._consumer.name

    def check_not_closed(self) -> None:
        """Raises:
        StoreClosed
        """
        if self.is_closed:
            raise StoreClosed("this consumer is closed")

    def check_attached(self, view: ReadView) -> None:
        """See that the consumer is still attached.

        Raises:
            ConsumerEvicted, SubscriptionNotFound
        """
        if self._is_attached(view):
            return
        if not self._exists(view):
            raise SubscriptionNotFound(f"subscription {self.subscription.name} was deleted meanwhile")
        raise ConsumerEvicted(
            f"consumer {self.consumer_name} of {self.subscription.name} was evicted: what it held went back",
            hint="Subscribe again; messages not acknowledged come again.",
            consumer=self.consumer_name,
        )

    def _is_attached(self, view: ReadView) -> bool:
        return attached_consumers.is_attached(view, self.subscription.subscription_id, self.consumer_id)

    def _exists(self, view: ReadView) -> bool:
        return view.has(CURSORS, self.subscription.subscription_id.to_bytes(8, "big"))

    def write_attached(
        self,
        action: Callable[[WriteBatch, int], T],
        txn: Transaction | TxnID | str | None = None,
        *,
        gate_s: float | None = None,
    ) -> T:
        """Run an action that only an attached consumer may make, in one batch.

        Args:
            action: given the number of the transaction, 0 for none.
            gate_s: how long to wait for the writer gate, if not as long as the connection does.

        Raises:
            StoreClosed, ConsumerEvicted, SubscriptionNotFound, and what `action` raises.
        """
        self.check_not_closed()

        def checked(batch: WriteBatch, txn_id: int) -> T:
            self.check_attached(batch)
            return action(batch, txn_id)

        if txn is not None and isinstance(txn, Transaction):
            return txn.work_in(self.connection).run_action(checked)
        txn_id = 0 if txn is None else txn_number(self.connection, txn)
        return self.connection.write(
            lambda batch: checked(batch, txn_id), naming=txn_id, timeout_s=gate_s, share=ReserveShare.PART
        )

    def sweep(self, batch: WriteBatch) -> list[AttachedConsumer]:
        """Detach the consumers that have died, and end their transactions; the living ones."""
        return attached_consumers.sweep(batch, self.subscription, self._end_owned)

    def sweep_in_turn(self, batch: WriteBatch) -> list[AttachedConsumer]:
        """As `sweep`, of the next few consumers; on Failover of those up to the active one."""
        subscription_id = self.subscription.subscription_id
        if self.subscription.type is SubscriptionType.FAILOVER:
            consumers = attached_consumers.through_active(batch, batch.locks, subscription_id)
        else:
            consumers = attached_consumers.in_turn(batch, subscription_id, self._turn)
            self._turn = consumers[-1].consumer_id if consumers else 0
        return attached_consumers.sweep(batch, self.subscription, self._end_owned, consumers)

    def _end_owned(self, batch: WriteBatch, lease: int) -> None:
        reaper.end_owned(batch, self.coordinator, lease, self.connection.identity)

    def take_over(self, gate_s: float) -> bool:
        """End overdue transactions and take over from dead consumers; whether there were any.

        All consumers are looked at, unless a consumer of this machine has done so just before; the first time always.

        Args:
            gate_s: how long to wait for the writer gate.

        Raises:
            ConsumerEvicted, SubscriptionNotFound, WriterBusy
        """
        locks, subscription_id = self.connection.environment.locks, self.subscription.subscription_id
        begins = locks.begins_round(subscription_id, self.connection.clock.boot_ns())
        if not begins and self._has_looked:
            return False
        self._has_looked = True
        with self.connection.view() as view:
            if not attached_consumers.dead(view, locks, subscription_id) and not reaper.is_due(view, locks):
                return False

        def change(batch: WriteBatch) -> None:
            self.check_attached(batch)
            self.sweep(batch)

        self.connection.write(change, timeout_s=gate_s, share=ReserveShare.PART)
        return True

    def is_active(self, view: ReadView) -> bool:
        """Whether messages are delivered to this consumer: on Failover to the first living one alone."""
        if self.subscription.type is not SubscriptionType.FAILOVER:
            return True
        locks = self.connection.environment.locks
        consumers = attached_consumers.through_active(view, locks, self.subscription.subscription_id)
        return consumers[-1].consumer_id == self.consumer_id

    def detach(self, untouched: Messages) -> None:
        """Leave the subscription.

        Args:
            untouched: messages delivered to this process that no application has received.
        """
        self.is_closed = True

        def change(batch: WriteBatch) -> None:
            if self._exists(batch) and self._is_attached(batch):
                opened = OpenSubscription(batch, self.subscription)
                attached_consumers.detach(opened, [self.consumer_id], untouched)

        self.connection.write(change, share=ReserveShare.PART)

    def unsubscribe(self) -> None:
        """Delete the subscription.

        Raises:
            SubscriptionBusy: further consumers are attached; this one stays.
            ObjectHeld: an open transaction has acknowledgements pending.
        """

        def change(batch: WriteBatch, _: int) -> None:
            rest = [consumer for consumer in self.sweep(batch) if consumer.consumer_id != self.consumer_id]
            attached_consumers.check_alone(self.topic, self.subscription, rest)
            update.check_nothing_pending(OpenSubscription(batch, self.subscription), "be deleted")
            subscriptions.delete(batch, self.subscription)

        self.write_attached(change)
        self.is_closed = True
        subscription_purge.finish(self.connection)

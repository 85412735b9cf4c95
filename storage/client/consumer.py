"""A consumer: is handed a subscription's messages and acknowledges them.

Handing out is durable, so that a message is in flight at one consumer only, and goes to another at once when this
process dies, however. Messages are handed out in windows of `receiver_queue_size`, one store transaction each; what
an application has not received yet when the consumer is closed counts as not handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from storage.client.reader import Blocked, blocked_by
from storage.client.transaction import Transaction, txn_number
from storage.disk.connection import Connection
from storage.disk.schema import CURSORS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import ConsumerEvicted, InvalidPosition, StoreClosed, SubscriptionNotFound, WaitTimeout
from storage.limits import DEATH_CHECK_S
from storage.process.clock import nanoseconds
from storage.subscription import (
    catalogue as subscriptions,
    cursor as cursors,
    dead_letter,
    delivery as deliveries,
    message_bound,
    update,
)
from storage.subscription.acknowledge import Acknowledger, Item, add_item, item_of
from storage.subscription.catalogue import AttachedConsumer
from storage.subscription.dispatch import skipped_txns
from storage.subscription.dispatch.key_order import KeyOrder
from storage.subscription.dispatch.receiver_queue import Messages, ReceiverQueue
from storage.subscription.dispatch.record import record_selection
from storage.subscription.dispatch.selection import Selection
from storage.subscription.dispatch.walk import ConsumerMemory, Walk
from storage.subscription.isolation import IsolationLevel, OnOpen, SubscriptionType
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.redelivery import negative_acknowledge
from storage.subscription.subscription import Subscription
from storage.topic import log, state
from storage.topic.catalogue import Topic
from storage.topic.message import Message
from storage.topic.message_batch import MessageBatch, Piece
from storage.topic.open_topic import OpenTopic
from storage.txn import buffer, reaper, record as records
from storage.txn.coordinator import Coordinator
from storage.values.position import LateMessageId, MessageId, Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState

_TEND_NS = int(DEATH_CHECK_S * 1e9)

T = TypeVar("T")

Acknowledged = Message | MessageId | LateMessageId | Sequence[Message | MessageId | LateMessageId]


class Consumer:
    """Made by `Store.subscribe`. For one thread at a time."""

    def __init__(
        self,
        connection: Connection,
        coordinator: Coordinator,
        topic: Topic,
        subscription: Subscription,
        attached: AttachedConsumer,
        receiver_queue_size: int,
    ) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self._topic = topic
        self._subscription = subscription
        self._attached = attached
        self._window = receiver_queue_size
        self._acknowledger = Acknowledger(coordinator, subscription, connection.owner, attached.consumer_id)
        self._memory = ConsumerMemory(attached.consumer_id)
        self._queue = ReceiverQueue()
        self._key_order = KeyOrder(subscription, attached.consumer_id, self._queue)
        self._generation = -1
        self._seen = -1
        self._tended_ns = 0
        self._closed = False

    @property
    def topic(self) -> str:
        return self._topic.name

    @property
    def subscription(self) -> str:
        return self._subscription.name

    @property
    def consumer_name(self) -> str:
        return self._attached.name

    @property
    def subscription_type(self) -> SubscriptionType:
        return self._subscription.type

    @property
    def subscription_isolation_level(self) -> IsolationLevel:
        return self._subscription.level

    @property
    def on_open(self) -> OnOpen:
        return self._subscription.on_open

    def receive(
        self, timeout: float | None = None, *, txn: Transaction | TxnID | str | None = None
    ) -> Message:
        """The next message, waiting for it.

        Args:
            timeout: seconds; None waits for ever.
            txn: the transaction it is received for; see `receive_batch`.

        Raises:
            WaitTimeout
            ConsumerEvicted: an operator evicted this consumer.
        """
        found = self.receive_batch(1, timeout, txn=txn)
        if not found:
            raise WaitTimeout(
                f"no message came to {self._subscription.name} of {self._topic.name} within {timeout:g} s",
                topic=self._topic.full_name,
                subscription=self._subscription.name,
            )
        return found[0]

    def receive_batch(
        self,
        max_messages: int,
        timeout: float | None = None,
        *,
        txn: Transaction | TxnID | str | None = None,
    ) -> MessageBatch:
        """The next messages, at most so many: what there is at once, or the first that come within `timeout`.

        Args:
            txn: the transaction they are received for. One that has used a table is handed only what was committed or
                plainly published before it began; where a newer message is next, it gets none, and need not wait
                (`next_is_newer_than` tells it from the end).

        Raises:
            ConsumerEvicted, TransactionNotFound
        """
        if self._closed:
            raise StoreClosed("this consumer is closed")
        clock = self._connection.clock
        until_ns = clock.boot_ns() + nanoseconds(timeout, "a timeout")
        bound = None if txn is None else self._bound(txn)
        while True:
            self._drop_withdrawn()
            if self._queue or self._fill(self._window):
                ready = max_messages if bound is None else self._readable_at(bound, max_messages)
                return MessageBatch(self._queue.take(ready), self._topic.name)
            now_ns = clock.boot_ns()
            if now_ns >= until_ns:
                return MessageBatch([], self._topic.name)
            self._connection.wait_for_commit(self._seen, min(until_ns, now_ns + _TEND_NS))
            if clock.boot_ns() - self._tended_ns >= _TEND_NS:
                self._tended_ns = clock.boot_ns()
                self._tend()

    def _bound(self, txn: Transaction | TxnID | str) -> int | None:
        """The timestamp of a transaction that has used a table; None for others."""
        if isinstance(txn, Transaction):
            if self._subscription.level is IsolationLevel.READ_UNCOMMITTED:
                # It may be handed what the transaction itself has sent.
                txn.work.flush_messages()
            return txn.message_bound
        with self._connection.view() as view:
            record = records.get(view, txn_number(txn))
        return record.timestamp if record.uses_tables else None

    def _readable_at(self, timestamp: int, count: int) -> int:
        """How many of the next messages of the queue were there to be read at a timestamp, at most `count`."""
        ready = 0
        with self._connection.view() as view:
            for piece in self._queue:
                if ready >= count or message_bound.readable_since(view, piece.entry) > timestamp:
                    break
                ready += len(piece.indexes)
        return min(count, ready)

    def next_is_newer_than(self, txn: Transaction | TxnID | str) -> bool:
        """Whether a message is there that `receive` does not hand out for this transaction, which has used a table.

        It was not published or committed when the transaction began, and that stays so: commit, and begin anew.

        Raises:
            ConsumerEvicted, TransactionNotFound
        """
        if self._closed:
            raise StoreClosed("this consumer is closed")
        bound = self._bound(txn)
        if bound is None:
            return False
        self._drop_withdrawn()
        return bool(self._queue or self._fill(self._window)) and not self._readable_at(bound, 1)

    def acknowledge(
        self, messages: Acknowledged, *, txn: Transaction | TxnID | str | None = None, force: bool = False
    ) -> None:
        """Acknowledge a message, a message id, or many of them, in one durable commit.

        Args:
            txn: makes the acknowledgement pending until that transaction ends.
            force: abort a transaction in which one is pending.

        Raises:
            TransactionConflict, NotDeliverable, MessageNotFound, ConsumerEvicted, TransactionNotOpen,
            TransactionTimedOut
        """
        items = _items(messages)
        if items:
            self._write(
                lambda batch, txn_id: self._acknowledger.acknowledge(batch, items, txn_id, force), txn
            )
            if txn is not None:
                self._key_order.note_pending(items)
            self._forget_acknowledged(max(at for at, _ in items))

    def acknowledge_cumulative(
        self,
        message: Message | MessageId | LateMessageId,
        *,
        txn: Transaction | TxnID | str | None = None,
        force: bool = False,
    ) -> None:
        """Acknowledge a message and everything before it. Refused on Shared and Key_Shared.

        Raises:
            InvalidValue, and as `acknowledge`
        """
        message_id = message.message_id if isinstance(message, Message | LateMessageId) else message
        if not isinstance(message_id, MessageId):
            raise InvalidPosition(f"{message!r} is neither a message nor a message id")
        item_of(message_id)
        self._write(
            lambda batch, txn_id: self._acknowledger.acknowledge_cumulative(batch, message_id, txn_id, force),
            txn,
        )
        self._forget_acknowledged(message_id.position)

    def _forget_acknowledged(self, highest: Position) -> None:
        """What was acknowledged before it was received is not given out any more."""
        if self._queue and self._queue.first <= highest:
            with self._connection.view() as view:
                self._keep_held(view)

    def negative_acknowledge(
        self, message: Message | MessageId | LateMessageId, *, delay: float = 60.0
    ) -> None:
        """Give a message back, to be handed out again after `delay` seconds."""
        items = _items(message)
        delay_ns = nanoseconds(delay, "a delay")
        self._queue.drop(self._write(lambda batch, _: self._give_back(batch, items, delay_ns)))
        self._forget_acknowledged(max(at for at, _ in items))

    def blocked_by(self) -> Blocked | None:
        """The open transaction behind which committed messages wait, or None.

        With on-open skip: messages that wait on this subscription for their key.
        """
        with self._connection.view() as view:
            if self._subscription.skips:
                return held_by(view, self._subscription)
            return blocked_by(view, self._topic.topic_id, self._subscription.level)

    def unsubscribe(self) -> None:
        """Close, and delete the subscription.

        Raises:
            SubscriptionBusy: other consumers are attached; this one stays.
            ObjectHeld: an open transaction has acknowledgements pending.
        """
        subscription = self._subscription

        def delete(batch: WriteBatch, _: int) -> None:
            living = subscriptions.sweep(batch, subscription, self._end_owned)
            others = [each for each in living if each.consumer_id != self._attached.consumer_id]
            subscriptions.check_alone(self._topic, subscription, others)
            update.check_nothing_pending(OpenSubscription(batch, subscription), "be deleted")
            subscriptions.delete(batch, subscription)

        self._write(delete)
        self._closed = True

    def close(self) -> None:
        """Leave the subscription; what was not acknowledged is handed out again."""
        if not self._closed:
            self._drop()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _drop(self) -> None:
        self._closed = True
        untouched = self._queue.messages()

        def detach(batch: WriteBatch) -> None:
            subscription = self._subscription
            if batch.has(CURSORS, subscription.subscription_id.to_bytes(8, "big")) and self._is_attached(
                batch
            ):
                opened = OpenSubscription(batch, subscription)
                subscriptions.detach(opened, self._attached.consumer_id, untouched)

        self._connection.write(detach)

    def _is_attached(self, view: ReadView) -> bool:
        return subscriptions.is_attached(view, self._subscription.subscription_id, self._attached.consumer_id)

    def _write(
        self, action: Callable[[WriteBatch, int], T], txn: Transaction | TxnID | str | None = None
    ) -> T:
        """Run an action that only an attached consumer may make, given the number of the transaction (0 for none)."""
        if self._closed:
            raise StoreClosed("this consumer is closed")

        def checked(batch: WriteBatch, txn_id: int) -> T:
            self._check_attached(batch)
            return action(batch, txn_id)

        if isinstance(txn, Transaction):
            return txn.work.run_action(checked)
        txn_id = 0 if txn is None else txn_number(txn)
        return self._connection.write(lambda batch: checked(batch, txn_id), naming=txn_id)

    def _check_attached(self, view: ReadView) -> None:
        if not self._is_attached(view):
            if not view.has(CURSORS, self._subscription.subscription_id.to_bytes(8, "big")):
                raise SubscriptionNotFound(f"subscription {self._subscription.name} was deleted meanwhile")
            raise ConsumerEvicted(
                f"consumer {self._attached.name} of {self._subscription.name} was evicted: what it held went back",
                hint="Subscribe again; messages not acknowledged come again.",
                consumer=self._attached.name,
            )

    def _give_back(self, batch: WriteBatch, items: list[Item], delay_ns: int) -> Messages:
        """What is in flight here of these is nobody's, to be handed out after the delay; what the queue must drop."""
        opened = OpenSubscription(batch, self._subscription)
        given = negative_acknowledge(opened, items, delay_ns, self._attached.consumer_id)
        return self._key_order.send_back_behind(batch, given)

    def _drop_withdrawn(self) -> None:
        """Forget what an abort, a seek or another's acknowledgement took back, before the application sees it."""
        if not self._queue or self._connection.environment.last_commit() == self._seen:
            return
        with self._connection.view() as view:
            self._check_attached(view)
            seen = view.commit
            generation = cursors.load(view, self._subscription.subscription_id).generation
            by_others = generation != self._generation
            if by_others:
                self._keep_held(view)
            would_overtake = self._key_order.would_overtake(view, by_others)
        if would_overtake:
            self._queue.drop(self._write(lambda batch, _: self._key_order.send_back_blocked(batch)))
        # Only now: if that write failed, the next call looks again.
        self._seen, self._generation = seen, generation

    def _keep_held(self, view: ReadView) -> None:
        """Keep in the queue what is still in flight here."""

        def mine(piece: Piece) -> int:
            delivery = deliveries.find(view, self._subscription.subscription_id, piece.at)
            return delivery.of(self._attached.consumer_id) if delivery is not None else 0

        self._queue.keep(mine)

    def _fill(self, room: int) -> bool:
        """Have the next window handed out; whether anything was."""
        while True:
            with self._connection.view() as view:
                self._seen = view.commit
                self._check_attached(view)
                if not self._is_worth_it(view, room):
                    return False
            try:
                selection = self._connection.write(lambda batch: self._dispatch(batch, room))
            except BaseException:
                self._memory.forget()
                raise
            self._queue.add(selection.dispatched)
            if self._queue or not selection.is_worth_recording:
                return bool(self._queue)

    def _is_worth_it(self, view: ReadView, room: int) -> bool:
        """Whether a dispatch would find something, without writing."""
        subscription = self._subscription
        topic, opened = OpenTopic(view, subscription.topic_id), OpenSubscription(view, subscription)
        cursor = opened.cursor
        if subscription.type is SubscriptionType.FAILOVER and not self._is_active(view):
            return False
        if not cursor.released and not subscription.keeps_keys:
            after = max(cursor.read, cursor.mark_delete)
            if after >= subscription.bound(topic.state):
                return False
            following = log.next_entry(view, subscription.topic_id, after)
            if not subscription.skips or following is None or not following.txn:
                return True
        return Walk(topic, opened, self._memory, room).select().is_worth_recording

    def _is_active(self, view: ReadView) -> bool:
        """Failover: the consumer that attached first is handed everything."""
        for consumer in subscriptions.consumers(view, self._subscription.subscription_id):
            if self._connection.environment.lock_file.leases.is_held(consumer.lease):
                return consumer.consumer_id == self._attached.consumer_id
        return False

    def _dispatch(self, batch: WriteBatch, room: int) -> Selection:
        subscription = self._subscription
        self._check_attached(batch)
        living = subscriptions.sweep(batch, subscription, self._end_owned)
        now = subscriptions.get(batch, self._topic, subscription.name)
        subscription.dead_letter_topic, subscription.max_redeliver_count = (
            now.dead_letter_topic,
            now.max_redeliver_count,
        )
        opened, topic = OpenSubscription(batch, subscription), OpenTopic(batch, subscription.topic_id)
        self._generation = opened.cursor.generation
        if (
            subscription.type is SubscriptionType.FAILOVER
            and living[0].consumer_id != self._attached.consumer_id
        ):
            return Selection(opened.cursor.read)
        selection = Walk(topic, opened, self._memory, room).select()
        if selection.exhausted:
            dead_letter.send_letters(opened, self._topic, selection.exhausted)
        record_selection(opened, self._attached.consumer_id, selection)
        self._memory.blocked_keys.know(opened.cursor.passes, selection.markers)
        return selection

    def _end_owned(self, batch: WriteBatch, lease: int) -> None:
        reaper.end_owned(batch, self._coordinator, lease, self._connection.owner)

    def _tend(self) -> None:
        """While waiting: end what nobody else will, and take over from dead consumers."""
        locks = self._connection.environment.lock_file
        with self._connection.view() as view:
            dead = [
                each
                for each in subscriptions.consumers(view, self._subscription.subscription_id)
                if not locks.leases.is_held(each.lease)
            ]
            if not dead and not reaper.overdue(view, 1) and not reaper.orphaned(view, locks):
                return

        def sweep(batch: WriteBatch) -> None:
            self._check_attached(batch)
            subscriptions.sweep(batch, self._subscription, self._end_owned)

        self._connection.write(sweep)


def held_by(view: ReadView, mine: Subscription) -> Blocked | None:
    """What a subscription that skips holds back, and behind which open transaction; of several, the one begun first."""
    held, holder = 0, 0
    for each in skipped_txns.every(view, mine.subscription_id):
        if each.blocked and records.state_of(view, each.txn) is TransactionState.OPEN:
            held, holder = held + each.blocked, holder or each.txn
    first = buffer.first_open(view, mine.topic_id)
    if first is None:
        return None
    return Blocked(held, state.load(view, mine.topic_id).uncommitted, TxnID(holder or first[0]))


def _items(messages: Acknowledged) -> list[Item]:
    """What is meant, grouped by entry."""
    found: dict[Position, int] = {}
    if isinstance(messages, MessageBatch):
        for piece in messages.pieces:
            add_item(found, piece.at, piece.messages)
        return list(found.items())
    many: Any = (
        messages if isinstance(messages, Sequence) and not isinstance(messages, MessageId) else [messages]
    )
    for message in many:
        if isinstance(message, Message):
            add_item(found, message.entry.position, 1 << message.index)
        elif isinstance(message, MessageId):
            add_item(found, *item_of(message))
        elif isinstance(message, LateMessageId):
            add_item(found, *item_of(message.message_id))
        else:
            raise InvalidPosition(f"{message!r} is neither a message nor a message id")
    return list(found.items())

"""A consumer: receives the messages of a subscription and acknowledges them.

Delivery is durable: a message is in flight at one consumer only, and goes to the next consumer at once when the process
of the first dies. Messages are delivered in windows of `receiver_queue_size`, one store transaction each. If a consumer
is closed, a message that the application has not received counts as not delivered.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from storage.client.ack_targets import Acknowledged, items_of, message_id_of
from storage.client.attachment import Attachment
from storage.client.block_end import close_after
from storage.client.blocker import Blocked, find_blocker, find_key_blocker
from storage.client.delayed_messages import DelayedMessages, find_delayed
from storage.client.receive_window import OwnCommit, ReceiveWindow
from storage.client.transaction import Transaction, txn_number
from storage.disk.view import WriteBatch
from storage.errors import WaitTimeout, WriterBusy
from storage.limits import DEATH_CHECK_S
from storage.process.clock import nanoseconds
from storage.subscription import catalogue as subscriptions, dead_letter
from storage.subscription.acknowledge import Acknowledger, item_of
from storage.subscription.isolation import IsolationLevel, OnOpen, SubscriptionType
from storage.topic.message import Message
from storage.topic.message_batch import MessageBatch
from storage.txn import record as records
from storage.values.arguments import check_count, check_delay_ns, check_flags
from storage.values.names import short_topic_name
from storage.values.position import LateMessageId, MessageId, Position, position_of
from storage.values.txn_id import TxnID

_TAKE_OVER_NS = int(DEATH_CHECK_S * 1e9)


class Consumer:
    """Made by `Store.subscribe`. For one thread at a time."""

    def __init__(self, attachment: Attachment, receiver_queue_size: int) -> None:
        self._connection = attachment.connection
        self._attachment = attachment
        self._subscription = attachment.subscription
        self._acknowledger = Acknowledger(
            attachment.coordinator,
            attachment.subscription,
            attachment.connection.identity,
            attachment.consumer_id,
        )
        self._window = ReceiveWindow(attachment, receiver_queue_size)
        self._taken_over_ns, self._looked_ns = 0, self._connection.clock.boot_ns()
        self._refused_s = 0.0

    @property
    def topic(self) -> str:
        return self._attachment.topic.name

    @property
    def subscription(self) -> str:
        return self._subscription.name

    @property
    def consumer_name(self) -> str:
        return self._attachment.consumer_name

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
        """Wait for the next message.

        Args:
            timeout: seconds; None waits for ever.
            txn: the transaction for which the message is received; see `receive_batch`.

        Raises:
            WaitTimeout
            ConsumerEvicted: an operator evicted this consumer.
        """
        batch = self.receive_batch(1, timeout, txn=txn)
        if not batch:
            raise WaitTimeout(
                f"no message came to {self._subscription.name} of {self.topic} within {timeout:g} s",
                topic=self._attachment.topic.full_name,
                subscription=self._subscription.name,
            )
        return batch[0]

    def receive_batch(
        self,
        max_messages: int,
        timeout: float | None = None,
        *,
        txn: Transaction | TxnID | str | None = None,
    ) -> MessageBatch:
        """Receive the next messages, at most so many: the messages available at once, or the first within `timeout`.

        Beside other consumers of a Shared or Key_Shared subscription these are at most this consumer's share.

        Args:
            txn: the transaction for which the messages are received. A transaction that has used a table receives only
                messages that were committed or plainly published before its begin; where a newer message is next, no
                message is returned, and waiting is pointless (`next_is_newer_than` tells that from the end).

        Raises:
            ConsumerEvicted, TransactionNotFound
        """
        self._attachment.check_not_closed()
        check_count("a number of messages", max_messages)
        clock, window = self._connection.clock, self._window
        until_ns = clock.boot_ns() + nanoseconds(timeout, "a timeout")
        bound = None if txn is None else self._message_bound(txn)
        while True:
            # A consumer that polls never waits: the look for dead consumers comes before the end of the time.
            if self._fill(until_ns):
                return window.take(
                    max_messages if bound is None else window.count_readable(bound, max_messages)
                )
            now_ns = clock.boot_ns()
            if now_ns >= until_ns:
                return window.take(0)
            longest_ns = window.patience_ns(_TAKE_OVER_NS)
            self._connection.wait_for_commit(window.seen, min(until_ns, now_ns + longest_ns))

    def _fill(self, until_ns: int) -> bool:
        """Have messages delivered; whether there are any. The gate counts as no message where the call ends sooner.

        Raises:
            WriterBusy: the gate was refused for as long as the lock timeout, in this call or in several.
        """
        connection, window = self._connection, self._window
        try:
            gate_s = connection.gate_s(until_ns)
            self._look_if_busy(gate_s)
            is_filled = window.fill(gate_s) or (self._take_over(gate_s) and window.fill(gate_s))
        except WriterBusy:
            self._refused_s += gate_s
            if connection.clock.boot_ns() < until_ns or self._refused_s >= connection.lock_timeout_s:
                self._refused_s = 0.0
                raise
            return False
        self._refused_s = 0.0
        return is_filled

    def _take_over(self, gate_s: float) -> bool:
        """Take over from dead consumers and transactions, at most twice a second; whether there were any."""
        now_ns = self._connection.clock.boot_ns()
        if now_ns - self._taken_over_ns < _TAKE_OVER_NS:
            return False
        self._taken_over_ns = self._looked_ns = now_ns
        return self._attachment.take_over(gate_s)

    def _look_if_busy(self, gate_s: float) -> None:
        """Take over from dead consumers while this one finds messages without end, twice a second."""
        now_ns = self._connection.clock.boot_ns()
        if now_ns - self._looked_ns >= _TAKE_OVER_NS:
            self._looked_ns = now_ns
            with suppress(WriterBusy):  # What is in the window needs no gate.
                self._attachment.take_over(gate_s)

    def _message_bound(self, txn: Transaction | TxnID | str) -> int | None:
        """The timestamp of a transaction that has used a table; None without such a use."""
        if isinstance(txn, Transaction):
            work = txn.work_in(self._connection)
            if self._subscription.level is IsolationLevel.READ_UNCOMMITTED:
                # At this level the transaction may receive its own messages.
                work.flush_messages()
            return work.message_bound
        txn_id = txn_number(self._connection, txn)
        with self._connection.view() as view:
            record = records.get(view, txn_id)
        return record.timestamp if record.uses_tables else None

    def next_is_newer_than(self, txn: Transaction | TxnID | str) -> bool:
        """Whether the next message is one that `receive` withholds from this transaction, which has used a table.

        The message was not published or committed when the transaction began, and stays withheld: commit, and begin
        a new transaction.

        Raises:
            ConsumerEvicted, TransactionNotFound
        """
        self._attachment.check_not_closed()
        bound = self._message_bound(txn)
        return bound is not None and self._window.fill() and not self._window.count_readable(bound, 1)

    def acknowledge(
        self, messages: Acknowledged, *, txn: Transaction | TxnID | str | None = None, force: bool = False
    ) -> None:
        """Acknowledge a message, a message id, or many of them, in one durable commit.

        Args:
            txn: makes the acknowledgement pending until that transaction ends.
            force: abort a transaction that has an acknowledgement of a message pending.

        Raises:
            TransactionConflict, NotDeliverable, MessageNotFound, ConsumerEvicted, TransactionNotOpen,
            TransactionTimedOut
        """
        check_flags(force=force)
        items = items_of(messages, self._attachment.origin)
        if items:
            acknowledge, window = self._acknowledger.acknowledge, self._window

            def change(batch: WriteBatch, txn_id: int) -> OwnCommit | None:
                done = acknowledge(batch, items, txn_id, force)
                return window.own_commit(batch) if done and not txn_id else None

            before = window.distrust()
            own = self._attachment.write_attached(change, txn)
            window.note_settled()
            if txn is not None:
                window.note_pending(items)
            window.forget_acknowledged(items)
            window.trust(before)
            if own is not None:
                window.note_commit(own)
            if own is not None and own.is_wanted:
                window.give_back_surplus()

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
        check_flags(force=force)
        message_id = message_id_of(message, self._attachment.origin)
        item_of(message_id)
        acknowledge = self._acknowledger.acknowledge_cumulative
        self._acknowledge_through(
            lambda batch, txn_id: acknowledge(batch, message_id, txn_id, force), message_id.position, txn
        )

    def acknowledge_through(self, position: Position) -> None:
        """Acknowledge all entries up to a position, received or not, for a program that keeps its own position.

        The cursor moves neither back nor beyond the visible messages of the subscription.

        Raises:
            ConsumerEvicted, SubscriptionNotFound
            InvalidValue, MessageNotFound, TransactionConflict: as `admin.acknowledgements.acknowledge_through`.
        """
        through, acknowledge = position_of(position), self._acknowledger.acknowledge_through
        self._acknowledge_through(lambda batch, _: acknowledge(batch, through), through)

    def _acknowledge_through(
        self,
        change: Callable[[WriteBatch, int], object],
        through: Position,
        txn: Transaction | TxnID | str | None = None,
    ) -> None:
        before = self._window.distrust()
        self._attachment.write_attached(change, txn)
        self._window.note_settled()
        self._window.forget_through(through)
        self._window.trust(before)

    def negative_acknowledge(
        self, message: Message | MessageId | LateMessageId, *, delay: float = 60.0
    ) -> None:
        """Give a message back, to be delivered again after `delay` seconds; acknowledged, it stays so.

        Raises:
            InvalidPosition, InvalidValue, MessageNotFound, ConsumerEvicted
        """
        items = items_of(message, self._attachment.origin)
        self._window.give_back(items, check_delay_ns("a delay", delay, for_ever=True))

    def blocked_by(self) -> Blocked | None:
        """The open transaction behind which committed messages wait, or None.

        With on-open skip: messages that wait on this subscription for their key.
        """
        with self._connection.view() as view:
            if self._subscription.skips:
                return find_key_blocker(view, self._subscription)
            return find_blocker(view, self._subscription.topic_id, self._subscription.level)

    def delayed(self) -> DelayedMessages | None:
        """The messages that wait for their delivery time, as far as dispatch has come; None if there is none."""
        with self._connection.view() as view:
            return find_delayed(view, self._subscription)

    def dead_letter_topic_of(self, message: Message) -> str | None:
        """The dead-letter topic that gets a received message in place of a redelivery; None if it is delivered again.

        Args:
            message: given back, or to be given back.
        """
        topic = self._attachment.topic
        with self._connection.view() as view:
            stored = subscriptions.get(view, topic, self._subscription.name)
        if stored.max_redeliver_count is None or message.redelivery_count < stored.max_redeliver_count:
            return None
        return short_topic_name(dead_letter.topic_of(topic, stored))

    def unsubscribe(self) -> None:
        """Close, and delete the subscription.

        Raises:
            SubscriptionBusy: further consumers are attached; this one stays.
            ObjectHeld: an open transaction has acknowledgements pending.
        """
        self._attachment.unsubscribe()

    def close(self) -> None:
        """Leave the subscription; messages that were not acknowledged are delivered again."""
        if not self._attachment.is_closed:
            self._attachment.detach(self._window.untouched())

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        close_after(kind, self.close)

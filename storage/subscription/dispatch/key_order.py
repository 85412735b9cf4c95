"""The order of a key on Key_Shared: messages that may not leave a consumer's queue yet (invariant 21).

A message is delivered only when every earlier message of its key is acknowledged or in flight at the same consumer.
Dispatch ensures this when it fills a queue. But until the application receives a queued message, an earlier message of
its key may be given back, or become pending: from then on the earlier message blocks the key, and the queued messages
behind it go back as if they had not been delivered. There are two ways to know:

* a consumer that gives a message back itself sends the queued messages behind it back in the same batch. Messages that
  the consumer acknowledges in a transaction are examined at the next receive: mostly the transaction is committed by
  then, and nothing has to move;
* a different process that does so raises the cursor's generation, and the consumer examines all messages in flight.

A pending acknowledgement blocks the key of its message already, so an abort blocks no further key.
"""

from __future__ import annotations

from storage.disk.view import ReadView, WriteBatch
from storage.subscription import delivery as deliveries, message_set
from storage.subscription.acknowledge import Item, add_item
from storage.subscription.dispatch.blocked_keys import MessageOrder
from storage.subscription.dispatch.delay_walk import early
from storage.subscription.dispatch.receiver_queue import Messages, ReceiverQueue
from storage.subscription.dispatch.span_keys import UNREAD, EntryKeys, SpanKeys
from storage.subscription.isolation import IsolationLevel, SubscriptionType
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.topic import log
from storage.topic.entry import Entry
from storage.txn import record as records
from storage.values.position import Position
from storage.values.txn_state import TransactionState

KeyBlockers = dict[bytes, MessageOrder]
"""Blocked keys, each with the first message that blocks the key: ledger, entry, batch index."""


class KeyOrder:
    """Sends back the messages that one consumer has queued behind a message that blocks their key.

    Without effect on every type but Key_Shared.
    """

    __slots__ = ("_consumer_id", "_is_key_shared", "_keys", "_pending", "_queue", "_subscription")

    def __init__(self, subscription: Subscription, consumer_id: int, queue: ReceiverQueue) -> None:
        self._subscription = subscription
        self._consumer_id = consumer_id
        self._queue = queue
        self._is_key_shared = subscription.type is SubscriptionType.KEY_SHARED
        self._pending: Messages = {}
        self._keys = SpanKeys()

    def note_pending(self, items: list[Item]) -> None:
        """Note messages that the consumer has acknowledged in a transaction, for `would_overtake` to examine."""
        if self._is_key_shared and self._queue:
            for at, messages in items:
                add_item(self._pending, at, messages)

    def would_overtake(self, view: ReadView, was_changed: bool) -> bool:
        """Whether a queued message is behind a message that blocks its key.

        Args:
            was_changed: a different process took messages from consumers; otherwise only the messages that this
                consumer acknowledged in transactions are examined.
        """
        if not self._is_key_shared or not self._queue or not (was_changed or self._pending):
            return False
        waiting = behind(
            self._queue, self._all_blockers(view) if was_changed else self._pending_blockers(view)
        )
        if not waiting:
            # Committed, or without queued messages of their keys: dispatch delivers later messages in order.
            self._pending.clear()
        return bool(waiting)

    def send_back_blocked(self, batch: WriteBatch) -> Messages:
        """Give back the queued messages behind a message that blocks their key; drop them after the commit."""
        return self._send_back(batch, behind(self._queue, self._all_blockers(batch)))

    def send_back_behind(self, batch: WriteBatch, given_back: list[Item]) -> Messages:
        """Give back the queued messages behind messages that were just given back; drop them after the commit."""
        if not self._is_key_shared or not self._queue:
            return {}
        blockers: KeyBlockers = {}
        for at, messages in given_back:
            if at <= self._queue.last:
                self._block(batch, blockers, at, messages)
        return self._send_back(batch, behind(self._queue, blockers))

    def _all_blockers(self, view: ReadView) -> KeyBlockers:
        keys = {key for piece in self._queue for key in piece.entry.keys or () if key is not None}
        return blockers_before(view, self._subscription, self._consumer_id, keys, self._keys)

    def _pending_blockers(self, view: ReadView) -> KeyBlockers:
        """Keys of messages that this consumer acknowledged in transactions that are not committed."""
        blockers: KeyBlockers = {}
        for at, messages in self._pending.items():
            delivery = deliveries.find(view, self._subscription.subscription_id, at)
            if delivery is None:
                continue
            unsettled = delivery.known() & ~delivery.of(self._consumer_id) & (messages or -1)
            if unsettled:
                self._block(view, blockers, at, unsettled)
        return blockers

    def _block(self, view: ReadView, blockers: KeyBlockers, at: Position, messages: int) -> None:
        entry = log.stored(view, self._subscription.topic_id, at)
        block_keys(blockers, entry, messages)

    def _send_back(self, batch: WriteBatch, messages: Messages) -> Messages:
        if messages:
            OpenSubscription(batch, self._subscription).deliveries.give_back(self._consumer_id, messages)
        return messages


def block_keys(blockers: KeyBlockers, entry: Entry, messages: int) -> None:
    """Add messages of an entry as blockers of their keys; a message without a key blocks nothing."""
    keys = entry.keys
    if not keys:
        return
    for index in message_set.indexes(messages):
        key = keys[index]
        if key is not None:
            here = (entry.ledger_id, entry.entry_id, index)
            blockers[key] = min(blockers.get(key, here), here)


def blockers_before(
    view: ReadView, subscription: Subscription, consumer_id: int, keys: set[bytes], known: SpanKeys
) -> KeyBlockers:
    """The first messages of these keys that are neither acknowledged nor in flight at this consumer.

    Examines all deliveries, and reads the entries of which not everything is in flight here; of spans, only those that
    were so not yet at the last call with `known`.
    """

    now_ms = view.clock.wall_ms()

    def read(at: Position) -> EntryKeys:
        entry = log.stored(view, subscription.topic_id, at)
        keys: EntryKeys = list(entry.keys or ())
        delivery = deliveries.find(view, subscription.subscription_id, at) if entry.delivery_times else None
        if delivery is not None:
            for messages in early(entry, delivery, message_set.everything(entry.count), now_ms).values():
                for index in message_set.indexes(messages) if keys else ():
                    keys[index] = UNREAD
        filters = entry.txn and subscription.level is not IsolationLevel.READ_UNCOMMITTED
        if filters and records.state_of(view, entry.txn) is TransactionState.OPEN:
            return [UNREAD]
        return [] if _is_left_out(view, subscription, entry) else keys

    blockers, waiting = KeyBlockers(), dict[Position, int]()
    for record in deliveries.records(view, subscription.subscription_id):
        elsewhere = record.known() & ~record.of(consumer_id)
        if elsewhere and record.is_span:
            waiting[record.at] = elsewhere
        elif elsewhere:
            entry = log.stored(view, subscription.topic_id, record.at)
            if not _is_left_out(view, subscription, entry):
                elsewhere &= ~sum(early(entry, record, elsewhere, now_ms).values())
                block_keys(blockers, entry, elsewhere)
    known.load(waiting.items(), read)
    for key in keys:
        first = known.first(key)
        if first is not None:
            blockers[key] = min(blockers.get(key, first), first)
    return blockers


def _is_left_out(view: ReadView, subscription: Subscription, entry: Entry) -> bool:
    """Whether dispatch passes the entry over, so that the entry blocks nothing."""
    if not entry.txn or subscription.level is IsolationLevel.READ_UNCOMMITTED:
        return False
    return records.state_of(view, entry.txn) is TransactionState.ABORTED


def behind(queue: ReceiverQueue, blockers: KeyBlockers) -> Messages:
    """The queued messages that come after the message that blocks their key."""
    blocked: Messages = {}
    for piece in queue if blockers else ():
        keys = piece.entry.keys or ()
        messages = 0
        for index in piece.indexes if keys else ():
            key = keys[index]
            first = blockers.get(key) if key is not None else None
            if first is not None and first < (*piece.at, index):
                messages |= 1 << index
        if messages:
            blocked[piece.at] = messages
    return blocked

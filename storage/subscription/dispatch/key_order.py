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

from functools import partial

from storage.disk.view import ReadView, WriteBatch
from storage.subscription import delivery as deliveries, message_set
from storage.subscription.acknowledge import Item, add_item
from storage.subscription.dispatch.blocked_keys import MessageOrder
from storage.subscription.dispatch.held_keys import EntryKeys, held_keys
from storage.subscription.dispatch.receiver_queue import Messages, ReceiverQueue
from storage.subscription.dispatch.span_keys import SpanKeys
from storage.subscription.isolation import SubscriptionType
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.values.position import Position

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
        _block_keys(blockers, at, messages, held_keys(view, self._subscription, at))

    def _send_back(self, batch: WriteBatch, messages: Messages) -> Messages:
        if messages:
            OpenSubscription(batch, self._subscription).deliveries.give_back(self._consumer_id, messages)
        return messages


def _block_keys(blockers: KeyBlockers, at: Position, messages: int, keys: EntryKeys) -> None:
    """Add messages of an entry as blockers of the keys that they hold."""
    for index in message_set.indexes(messages):
        key = keys[index] if index < len(keys) else None
        if isinstance(key, bytes):
            here = (*at, index)
            blockers[key] = min(blockers.get(key, here), here)


def blockers_before(
    view: ReadView, subscription: Subscription, consumer_id: int, keys: set[bytes], known: SpanKeys
) -> KeyBlockers:
    """The first messages of these keys that are neither acknowledged nor in flight at this consumer.

    Examines all deliveries, and reads the entries of which not everything is in flight here; of spans, only those that
    were so not yet at the last call with `known`.
    """
    read = partial(held_keys, view, subscription)
    blockers, waiting = KeyBlockers(), dict[Position, int]()
    for record in deliveries.records(view, subscription.subscription_id):
        elsewhere = record.known() & ~record.of(consumer_id)
        if elsewhere and record.is_span:
            waiting[record.at] = elsewhere
        elif elsewhere:
            _block_keys(blockers, record.at, elsewhere, read(record.at))
    known.load(waiting.items(), read)
    for key in keys:
        first = known.first(key)
        if first is not None:
            blockers[key] = min(blockers.get(key, first), first)
    return blockers


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

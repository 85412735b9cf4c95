"""The order of a key on Key_Shared: what may not leave a consumer's queue yet (invariant 21).

A message is handed out only when every earlier one of its key is acknowledged or in flight at the same consumer.
Dispatch sees to that when it fills a queue. But until the application receives what is queued, an earlier message of
its key may be given back, or become pending: from then on it holds the key, and what is queued behind it goes back as
if it had not been handed out. There are two ways to know:

* a consumer that gives a message back itself sends what is queued behind it back with it. What it acknowledges in a
  transaction it looks at when it receives next: mostly the transaction is committed by then, and nothing has to move;
* when others do it, they raise the cursor's generation, and the consumer looks at all that is in flight.

An abort holds no key that was not held while its acknowledgements were pending.
"""

from __future__ import annotations

from storage.disk.view import ReadView, WriteBatch
from storage.subscription import cursor as cursors, delivery as deliveries, message_set
from storage.subscription.acknowledge import Item, add_item
from storage.subscription.catalogue import Subscription
from storage.subscription.dispatch.receiver_queue import Messages, ReceiverQueue
from storage.subscription.isolation import IsolationLevel, SubscriptionType
from storage.topic import log
from storage.topic.entry import Entry
from storage.txn import record as records
from storage.values.txn_state import TransactionState

HeldKeys = dict[bytes, tuple[int, int, int]]
"""Keys that are held, each with the first message that holds it: ledger, entry, batch index."""


class KeyOrder:
    """Sends back what one consumer has queued behind a message that holds its key. Nothing on other types."""

    __slots__ = ("_consumer_id", "_is_kept", "_pending", "_queue", "_subscription")

    def __init__(self, subscription: Subscription, consumer_id: int, queue: ReceiverQueue) -> None:
        self._subscription = subscription
        self._consumer_id = consumer_id
        self._queue = queue
        self._is_kept = subscription.type is SubscriptionType.KEY_SHARED
        self._pending: Messages = {}

    def note_pending(self, items: list[Item]) -> None:
        """The consumer has acknowledged these in a transaction: `would_overtake` looks what became of them."""
        if self._is_kept and self._queue:
            for at, messages in items:
                add_item(self._pending, at, messages)

    def would_overtake(self, view: ReadView, by_others: bool) -> bool:
        """Whether something queued is behind a message that holds its key.

        Args:
            by_others: somebody else took messages from consumers; otherwise only what this one acknowledged in
                transactions is looked at.
        """
        if not self._is_kept or not self._queue or not (by_others or self._pending):
            return False
        waiting = behind(self._queue, self._all_held(view) if by_others else self._held_by_pending(view))
        if not waiting:
            # Committed, or nothing of their keys is queued: whatever is queued later, dispatch hands out in order.
            self._pending.clear()
        return bool(waiting)

    def send_back_held(self, batch: WriteBatch) -> Messages:
        """What is queued behind a message that holds its key goes back; the queue is to drop it after the commit."""
        return self._send_back(batch, behind(self._queue, self._all_held(batch)))

    def send_back_behind(self, batch: WriteBatch, given_back: list[Item]) -> Messages:
        """What is queued behind messages that were just given back; the queue is to drop it after the commit."""
        if not self._is_kept or not self._queue:
            return {}
        held: HeldKeys = {}
        for at, messages in given_back:
            if at <= self._queue.last:
                self._hold(batch, held, at, messages)
        return self._send_back(batch, behind(self._queue, held))

    def _all_held(self, view: ReadView) -> HeldKeys:
        return held_before(view, self._subscription, self._consumer_id, self._queue.last)

    def _held_by_pending(self, view: ReadView) -> HeldKeys:
        """Keys of what this consumer acknowledged in transactions that are not committed."""
        held: HeldKeys = {}
        for at, messages in self._pending.items():
            found = deliveries.find(view, self._subscription.subscription_id, at)
            unsettled = found.known() & ~found.of(self._consumer_id) & (messages or -1) if found else 0
            if unsettled:
                self._hold(view, held, at, unsettled)
        return held

    def _hold(self, view: ReadView, held: HeldKeys, at: tuple[int, int], messages: int) -> None:
        entry = log.read(view, self._subscription.topic_id, at)
        assert entry is not None, "what is not acknowledged exists"
        hold(held, entry, messages)

    def _send_back(self, batch: WriteBatch, messages: Messages) -> Messages:
        if messages:
            subscription_id = self._subscription.subscription_id
            cursor = cursors.load(batch, subscription_id)
            deliveries.give_back(batch, subscription_id, cursor, self._consumer_id, messages)
            cursors.save(batch, subscription_id, cursor)
        return messages


def hold(held: HeldKeys, entry: Entry, messages: int) -> None:
    """These messages of an entry hold their keys from now on; no key holds nothing."""
    keys = entry.keys
    if not keys:
        return
    for index in message_set.indexes(messages):
        key = keys[index]
        if key is not None:
            here = (entry.ledger_id, entry.entry_id, index)
            held[key] = min(held.get(key, here), here)


def held_before(
    view: ReadView, subscription: Subscription, consumer_id: int, through: tuple[int, int]
) -> HeldKeys:
    """Keys held by messages, up to an entry, that are neither acknowledged nor in flight at this consumer.

    Looks at what was handed out or held back, and reads the entries of which not everything is in flight here.
    """
    held: HeldKeys = {}
    for found in deliveries.every(view, subscription.subscription_id):
        if found.at > through:
            break
        elsewhere = found.known() & ~found.of(consumer_id)
        entry = log.read(view, subscription.topic_id, found.at) if elsewhere else None
        if entry is not None and not _is_left_out(view, subscription, entry):
            hold(held, entry, elsewhere)
    return held


def _is_left_out(view: ReadView, subscription: Subscription, entry: Entry) -> bool:
    """Whether dispatch passes the entry over, so that it holds nothing."""
    if not entry.txn or subscription.level is IsolationLevel.READ_UNCOMMITTED:
        return False
    return records.state_of(view, entry.txn) is TransactionState.ABORTED


def behind(queue: ReceiverQueue, held: HeldKeys) -> Messages:
    """The queued messages that come after the one that holds their key."""
    found: Messages = {}
    for piece in queue if held else ():
        keys = piece.entry.keys or ()
        messages = 0
        for index in piece.indexes if keys else ():
            key = keys[index]
            first = held.get(key) if key is not None else None
            if first is not None and first < (*piece.at, index):
                messages |= 1 << index
        if messages:
            found[piece.at] = messages
    return found

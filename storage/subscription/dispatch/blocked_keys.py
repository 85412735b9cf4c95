"""Keys that messages of skipped transactions block on Key_Shared, remembered by a consumer between dispatches.

A transaction blocks the keys of its messages, a message with a delivery time from that time on. Once the transaction
has ended, its messages can be acknowledged before dispatch examines the messages blocked behind it; these then block
their keys themselves, until they are examined.

The content of an entry never changes, so that keys stay right once read, until a message is acknowledged or a seek
brings acknowledged messages back; then the entries are read again. Only the list of skipped transactions is read anew
each time. Nothing of it is stored: a consumer that knows too little reads the entries again, and where the keys are too
many to remember, a transaction blocks every key from there on, which can only hold back too much.
"""

from __future__ import annotations

from heapq import heappop, heappush

from storage.disk.codec import corrupt, key1
from storage.disk.schema import AWAITED
from storage.disk.view import ReadView
from storage.limits import KEYS_REMEMBERED_MAX
from storage.subscription import message_set
from storage.subscription.delivery import Delivery
from storage.subscription.dispatch import skipped_txns
from storage.subscription.dispatch.delay_walk import early
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log
from storage.topic.entry import Entry
from storage.txn import record as records, uncommitted_entries
from storage.values.position import Position
from storage.values.txn_state import TransactionState

MessageOrder = tuple[int, int, int]
"""Ledger, entry and batch index of a message: plain tuples, as Key_Shared compares one for each message."""

NOTHING: dict[int, MessageOrder] = {}


def may_be_acknowledged(opened: OpenSubscription[ReadView], txn: int) -> bool:
    """Whether messages of a skipped transaction can be acknowledged before dispatch examines the entries."""
    is_open = records.state_of(opened.view, txn) is TransactionState.OPEN
    return opened.cursor.has_uncommitted_acks or not is_open


class BlockedKeys:
    """The first message of each key in each skipped transaction, of those whose delivery time has come."""

    __slots__ = (
        "_by_key", "_early", "_every_key", "_generation", "_keys_of", "_known", "_now_ms", "_passes", "_through",
    )  # fmt: skip

    def __init__(self) -> None:
        self._by_key: dict[bytes, dict[int, MessageOrder]] = {}
        self._early: list[tuple[int, MessageOrder, int, bytes, list[bytes]]] = []
        """A heap: delivery time, message, transaction, key, and the list of `_keys_of` while that is the same."""
        self._now_ms = 0
        self._every_key: dict[int, MessageOrder] = {}
        self._keys_of: dict[int, list[bytes]] = {}
        self._through: dict[int, Position] = {}
        self._known = 0
        self._passes = -1
        """The cursor's `passes` up to which all skipped entries are known."""
        self._generation = -1

    @property
    def is_any(self) -> bool:
        """Whether any key is blocked."""
        return bool(self._by_key or self._every_key)

    def know(self, passes: int, ended: list[int]) -> None:
        """Note that all entries skipped up to this number of the cursor are known, and forget ended transactions."""
        self._passes = passes
        for txn in ended:
            if txn in self._through:
                self._forget(txn)

    def ripen(self, now_ms: int) -> None:
        """Have the messages block their keys whose delivery time has come."""
        self._now_ms = now_ms
        while self._early and self._early[0][0] <= now_ms:
            _, here, txn, key, keys = heappop(self._early)
            if self._keys_of.get(txn) is keys:
                self._block(txn, key, here)

    def load(self, opened: OpenSubscription[ReadView], now_ms: int) -> None:
        """Learn the entries that other consumers have skipped, and forget transactions that are skipped no longer.

        A seek raises `passes` and `generation`. After a seek, acknowledged messages may be in the backlog again, and
        block keys that were left out here.
        """
        self.ripen(now_ms)
        generation, self._generation = self._generation, opened.cursor.generation
        if self._passes == opened.cursor.passes:
            return
        if generation != opened.cursor.generation:
            self.forget()
        skipped = {record.txn for record in skipped_txns.every(opened.view, opened.subscription_id)}
        if len(skipped) < opened.cursor.skipped_txns:
            why = f"{len(skipped)} skipped transactions are found; the cursor counts {opened.cursor.skipped_txns}"
            raise corrupt(AWAITED, key1(opened.subscription_id), why)
        for txn in [txn for txn in self._through if txn not in skipped]:
            self._forget(txn)
        for txn in skipped:
            self.learn(opened, txn, opened.cursor.read)
        self._passes = opened.cursor.passes

    def learn(self, opened: OpenSubscription[ReadView], txn: int, through: Position) -> None:
        """Learn the keys of a transaction's entries up to a position that are in the subscription's backlog."""
        is_known = txn in self._through
        after = max(self._through.get(txn, Position(0, -1)), opened.cursor.mark_delete)
        self._through[txn] = max(after, through)
        if txn not in self._every_key and self._learn_own(opened, txn, after, through) and not is_known:
            self._learn_behind(opened, txn)

    def _learn_own(
        self, opened: OpenSubscription[ReadView], txn: int, after: Position, through: Position
    ) -> bool:
        """Learn the keys of the entries between two positions; False where the keys are too many."""
        if after >= through:
            return True
        for entry in uncommitted_entries.entries(opened.view, opened.topic_id, txn, after, through):
            if not self._note(opened, txn, entry, message_set.everything(entry.count)):
                return False
        return True

    def _learn_behind(self, opened: OpenSubscription[ReadView], txn: int) -> None:
        """Learn the keys of the messages blocked behind a transaction whose own may be acknowledged already."""
        if not opened.cursor.blocked or not may_be_acknowledged(opened, txn):
            return
        view, after = opened.view, opened.cursor.mark_delete
        for at, messages in skipped_txns.blocked_behind(view, opened.subscription_id, txn, after):
            entry = log.stored(view, opened.topic_id, at)
            if not self._note(opened, txn, entry, message_set.decode(messages, entry.count)):
                return

    def _note(self, opened: OpenSubscription[ReadView], txn: int, entry: Entry, messages: int) -> bool:
        """Note the keys of messages of an entry that are not acknowledged; False where the keys are too many."""
        keys, known = entry.keys or (), self._keys_of.setdefault(txn, [])
        left = messages & ~opened.acks.of(entry.position, entry.count) if keys else 0
        by_time = {self._now_ms: left}
        if left and entry.delivery_times:
            delivery = opened.deliveries.find(entry.position) or Delivery(entry.position, entry.count, [])
            waiting = early(entry, delivery, left, self._now_ms)
            by_time = {self._now_ms: left & ~sum(waiting.values()), **waiting}
        for due_ms, due in by_time.items():
            for index in message_set.indexes(due):
                key, here = keys[index], (entry.ledger_id, entry.entry_id, index)
                if key is None:
                    continue
                if due_ms <= self._now_ms:
                    self._block(txn, key, here)
                else:
                    heappush(self._early, (due_ms, here, txn, key, known))
                    known.append(key)
                    self._known += 1
        if self._known >= KEYS_REMEMBERED_MAX:
            self._every_key[txn] = (entry.ledger_id, entry.entry_id, 0)
            return False
        return True

    def _block(self, txn: int, key: bytes, here: MessageOrder) -> None:
        firsts = self._by_key.setdefault(key, {})
        if txn not in firsts:
            self._keys_of[txn].append(key)
            self._known += 1
        firsts[txn] = min(firsts.get(txn, here), here)

    def forget(self) -> None:
        """Forget all keys."""
        for txn in list(self._through):
            self._forget(txn)
        self._passes = -1

    def _forget(self, txn: int) -> None:
        keys = self._keys_of.pop(txn, [])
        for key in keys:
            firsts = self._by_key.get(key, {})
            firsts.pop(txn, None)
            if not firsts:
                self._by_key.pop(key, None)
        self._known -= len(keys)
        self._every_key.pop(txn, None)
        del self._through[txn]

    def drop_acknowledged(self, opened: OpenSubscription[ReadView], key: bytes, txn: int) -> bool:
        """Learn a transaction again if its first message of a key was acknowledged since; whether that is so."""
        first = self._by_key.get(key, NOTHING).get(txn)
        if first is None:
            return False
        ledger_id, entry_id, index = first
        if not opened.acks.has_all(Position(ledger_id, entry_id), 1 << index):
            return False
        through = self._through[txn]
        self._forget(txn)
        self.learn(opened, txn, through)
        return True

    def among(self, keys: set[bytes]) -> set[bytes]:
        """The keys that some transaction is known to have."""
        return keys if self._every_key else self._by_key.keys() & keys

    def before(self, key: bytes, here: MessageOrder) -> list[tuple[MessageOrder, int]]:
        """The transactions known to have a message of a key before `here`, each with the first message, in order."""
        if not self.is_any:
            return []
        earlier = [(first, txn) for txn, first in self._by_key.get(key, NOTHING).items() if first < here]
        earlier += [(first, txn) for txn, first in self._every_key.items() if first < here]
        return sorted(earlier)

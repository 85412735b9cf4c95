"""Which keys the messages of awaited transactions hold, kept by a consumer between its dispatches (Key_Shared).

What an entry holds never changes, so that what was read once stays true; only which transactions are awaited is asked
anew. Nothing of it is stored: whoever knows too little reads it again, and where the keys are too many to remember, a
transaction holds every key from there on, which can only hold back too much.
"""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.limits import KEYS_REMEMBERED_MAX
from storage.subscription import cursor as cursors, message_set
from storage.subscription.catalogue import Subscription
from storage.subscription.cursor import Cursor
from storage.subscription.dispatch import skipped_txns
from storage.topic.entry import Entry
from storage.txn import runs

Place = tuple[int, int, int]
"""A message: ledger, entry, batch index."""

NOTHING: dict[int, Place] = {}


class HeldKeys:
    """The first message of each key in each awaited transaction."""

    __slots__ = ("_by_key", "_every_key", "_keys_of", "_known", "_passes", "_through")

    def __init__(self) -> None:
        self._by_key: dict[bytes, dict[int, Place]] = {}
        self._every_key: dict[int, Place] = {}
        self._keys_of: dict[int, list[bytes]] = {}
        self._through: dict[int, tuple[int, int]] = {}
        self._known = 0
        self._passes = -1
        """The cursor's `passes` with which all that was passed over is known."""

    @property
    def is_any(self) -> bool:
        """Whether any key is held."""
        return bool(self._by_key or self._every_key)

    def know(self, passes: int, ended: list[int]) -> None:
        """All that is passed over with this number of the cursor's was learned here; these hold nothing any more."""
        self._passes = passes
        for txn in ended:
            if txn in self._through:
                self._forget(txn)

    def load(self, view: ReadView, subscription: Subscription, cursor: Cursor) -> None:
        """Learn what others have passed over, and forget what is awaited no longer."""
        if self._passes == cursor.passes:
            return
        there = {each.txn for each in skipped_txns.every(view, subscription.subscription_id)}
        for txn in [txn for txn in self._through if txn not in there]:
            self._forget(txn)
        for txn in there:
            self.learn(view, subscription, cursor, txn, cursor.read)
        self._passes = cursor.passes

    def learn(
        self, view: ReadView, subscription: Subscription, cursor: Cursor, txn: int, through: tuple[int, int]
    ) -> None:
        """Learn the keys of a transaction's entries up to a position that are in the subscription's backlog."""
        after = max(self._through.get(txn, (0, -1)), cursor.mark_delete)
        self._through[txn] = max(after, through)
        if txn in self._every_key or after >= through:
            return
        for entry in runs.entries(view, subscription.topic_id, txn, after, through):
            self._note(view, subscription, cursor, entry)
            if self._known >= KEYS_REMEMBERED_MAX:
                self._every_key[txn] = (entry.ledger_id, entry.entry_id, 0)
                return

    def _note(self, view: ReadView, subscription: Subscription, cursor: Cursor, entry: Entry) -> None:
        at = (entry.ledger_id, entry.entry_id)
        done = cursors.acknowledged(view, subscription.subscription_id, cursor, at, entry.count)
        keys, mine = entry.keys, self._keys_of.setdefault(entry.txn, [])
        for index in message_set.indexes(message_set.everything(entry.count) & ~done) if keys else ():
            key = keys[index] if keys else None
            if key is None:
                continue
            firsts = self._by_key.setdefault(key, {})
            if entry.txn not in firsts:
                firsts[entry.txn] = (*at, index)
                mine.append(key)
                self._known += 1

    def forget(self) -> None:
        """Know nothing."""
        for txn in list(self._through):
            self._forget(txn)
        self._passes = -1

    def _forget(self, txn: int) -> None:
        keys = self._keys_of.pop(txn, [])
        for key in keys:
            firsts = self._by_key[key]
            del firsts[txn]
            if not firsts:
                del self._by_key[key]
        self._known -= len(keys)
        self._every_key.pop(txn, None)
        del self._through[txn]

    def among(self, keys: set[bytes]) -> set[bytes]:
        """Those of these keys that some transaction is known to have."""
        return keys if self._every_key else self._by_key.keys() & keys

    def before(self, key: bytes, here: Place) -> list[tuple[Place, int]]:
        """The transactions known to have a message of this key before a place, each with the first; in order of it."""
        if not self.is_any:
            return []
        found = [(at, txn) for txn, at in self._by_key.get(key, NOTHING).items() if at < here]
        found += [(at, txn) for txn, at in self._every_key.items() if at < here]
        return sorted(found)

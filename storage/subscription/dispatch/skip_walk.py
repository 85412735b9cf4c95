"""Which transactions one walk of dispatch has to await, and what they hold (`--on-open skip`)."""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.subscription.catalogue import Subscription
from storage.subscription.cursor import Cursor
from storage.subscription.dispatch import skipped_txns as records_of_awaited
from storage.subscription.dispatch.blocked_keys import HeldKeys, Place
from storage.subscription.dispatch.skipped_txns import Awaited
from storage.topic.entry import Entry
from storage.topic.state import TopicState
from storage.txn import record as records
from storage.values.txn_state import TransactionState


class Awaiting:
    """What a walk knows of transactions: those awaited before it, and those it meets open."""

    __slots__ = ("_cursor", "_done", "_head", "_keys", "_known", "_subscription", "_view")

    def __init__(
        self, view: ReadView, head: TopicState, subscription: Subscription, cursor: Cursor, keys: HeldKeys
    ) -> None:
        self._view = view
        self._head = head
        self._subscription = subscription
        self._cursor = cursor
        self._keys = keys
        self._known: dict[int, Awaited | None] = {}
        self._done: set[int] = set()
        if subscription.keeps_keys:
            if cursor.has_uncommitted_acks:
                keys.forget()  # What was pending when it was learned may be acknowledged by now.
            keys.load(view, subscription, cursor)

    def of(self, txn: int) -> Awaited | None:
        """The transaction as it is awaited, or None if it is not."""
        if txn not in self._known:
            is_any = self._cursor.awaited > 0
            found = (
                records_of_awaited.find(self._view, self._subscription.subscription_id, txn)
                if is_any
                else None
            )
            self._known[txn] = found
        return self._known[txn]

    def must_wait(self, entry: Entry) -> bool:
        """Whether messages wait for their transaction: it is open, or was when dispatch passed some of it over."""
        if self.of(entry.txn) is not None:
            return True
        if entry.position <= self._head.max_read:
            return False
        if records.state_of(self._view, entry.txn) is not TransactionState.OPEN:
            return False
        self._known[entry.txn] = Awaited(entry.txn)
        return True

    def is_passed_over(self, entry: Entry) -> bool:
        """Whether an entry that dispatch has met before is still to be looked at, when its transaction ends."""
        found = self.of(entry.txn) if entry.txn else None
        return found is not None and entry.position > found.taken

    def pass_over(self, txn: int, through: tuple[int, int]) -> None:
        """The transaction's entries up to a position are passed over: on Key_Shared they hold their keys."""
        if self._subscription.keeps_keys:
            self._keys.learn(self._view, self._subscription, self._cursor, txn, through)

    def suspects(self, keys: set[bytes]) -> set[bytes]:
        """Those of the keys that some awaited transaction may hold."""
        return self._keys.among(keys)

    def holder(self, key: bytes, here: Place) -> int:
        """The awaited transaction behind whose message of this key one at `here` has to wait; 0 if there is none."""
        for _, txn in self._keys.before(key, here):
            found = self.of(txn) if txn not in self._done else None
            # What was looked at since its end is in flight, or holds its key like every other message.
            if found is not None and here[:2] > found.taken:
                return txn
        return 0

    def begin_to_take(self, txn: int) -> None:
        """The transaction has ended, and is being looked at: it holds nothing any more."""
        self._done.add(txn)

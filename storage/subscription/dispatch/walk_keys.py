"""The keys of one walk of dispatch on Key_Shared: messages that wait for an earlier message of their key."""

from __future__ import annotations

from storage.subscription import message_set
from storage.subscription.delivery import Delivery
from storage.subscription.dispatch.blocked_keys import MessageOrder
from storage.subscription.dispatch.share import KeyShare
from storage.subscription.dispatch.skip_walk import SkipWalk
from storage.subscription.dispatch.spans_again import SpansAgain
from storage.subscription.dispatch.walk_result import Selection
from storage.topic.entry import Entry

_NO_TXN = 0


class WalkKeys:
    """See the module.

    Attributes:
        again: the messages of spans to examine again.
        held_count: the number of messages that wait, or block later ones.
        share: the keys that the consumer takes, of those that no consumer holds.
    """

    __slots__ = ("_blocked", "_consumer_id", "_selection", "_skips", "again", "held_count", "share")

    def __init__(
        self, consumer_id: int, skips: SkipWalk | None, selection: Selection, share: KeyShare
    ) -> None:
        self.share = share
        self._consumer_id = consumer_id
        self._skips = skips
        self._selection = selection
        self._blocked: dict[bytes, MessageOrder] = {}
        self.again: SpansAgain | None = None
        self.held_count = 0

    def free(self, entry: Entry, delivery: Delivery, open_: int, free: int) -> tuple[int, int]:
        """The free messages whose earlier messages of the key are acknowledged or in flight right here.

        And, of messages never delivered, the messages that have to wait behind a skipped transaction.
        """
        elsewhere = open_ & ~delivery.of(self._consumer_id)
        keys, known, behind = entry.keys, delivery.known(), dict[int, int]()
        self.held_count += (elsewhere & ~free).bit_count()
        for index in self._suspects_in(entry, elsewhere, free):
            bit, key = 1 << index, keys[index] if keys else None
            assert key is not None, "no key is held by nobody"
            here = (entry.ledger_id, entry.entry_id, index)
            txn = self._skips.holder(key, here) if self._skips is not None else _NO_TXN
            if txn and not known & bit:
                behind[txn] = behind.get(txn, 0) | bit
                free &= ~bit
            elif txn or not free & bit or self._is_blocked(key, here) or not self.share.takes(key):
                self.held_count += bool(free & bit)
                self.share.note_passed(key)
                self._blocked[key] = min(self._blocked.get(key, here), here)
                free &= ~bit
        self._selection.behind += [(txn, delivery.at, entry.count, bits) for txn, bits in behind.items()]
        return free, sum(behind.values())

    def _is_blocked(self, key: bytes, here: MessageOrder) -> bool:
        """Whether an earlier message of a key, which this walk or the spans know, is not to be delivered here."""
        again = self.again
        return self._blocked.get(key, here) < here or (again is not None and again.blocks(key, here))

    def suspects(self, entry: Entry) -> set[bytes]:
        """The keys of an entry that may be blocked by messages of other entries."""
        if entry.keys is None:
            return set()
        own = {key for key in entry.keys if key is not None}
        held = self._blocked.keys() & own | self.share.undecided(own)
        if self.again is not None:
            held |= self.again.among(own)
        if self._skips is not None:
            held |= self._skips.suspects(own)
        return held

    def _suspects_in(self, entry: Entry, elsewhere: int, free: int) -> list[int]:
        """The messages of an entry whose key may be blocked, by a message of the same entry included."""
        keys, held = entry.keys, self.suspects(entry)
        if keys is None:
            return []
        held.update(
            key for index in message_set.indexes(elsewhere & ~free) if (key := keys[index]) is not None
        )
        return (
            [index for index, key in enumerate(keys) if key in held and elsewhere >> index & 1]
            if held
            else []
        )

"""The transactions that one walk of dispatch has to skip, with the blocked keys (`--on-open skip`)."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from storage.disk.view import ReadView
from storage.subscription.dispatch import skipped_txns
from storage.subscription.dispatch.blocked_keys import BlockedKeys, MessageOrder, may_be_acknowledged
from storage.subscription.dispatch.skipped_txns import SkippedTxn
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log
from storage.topic.entry import Entry
from storage.topic.state import TopicState
from storage.txn import record as records, uncommitted_entries
from storage.values.position import Position
from storage.values.txn_state import TransactionState


class SkipWalk:
    """The transactions skipped before a walk, and the open transactions found by the walk."""

    __slots__ = ("_acknowledgeable", "_done", "_keys", "_known", "_opened", "_state")

    def __init__(
        self, state: TopicState, opened: OpenSubscription[ReadView], keys: BlockedKeys, now_ms: int
    ) -> None:
        self._state = state
        self._opened = opened
        self._keys = keys
        self._known: dict[int, SkippedTxn | None] = {}
        self._done: set[int] = set()
        self._acknowledgeable: dict[int, bool] = {}
        if opened.subscription.keeps_keys:
            keys.load(opened, now_ms)

    def of(self, txn: int) -> SkippedTxn | None:
        """Return the record of a skipped transaction; None for a transaction that is not skipped."""
        if txn not in self._known:
            opened = self._opened
            self._known[txn] = (
                skipped_txns.find(opened.view, opened.subscription_id, txn)
                if opened.cursor.skipped_txns > 0
                else None
            )
        return self._known[txn]

    def must_skip(self, entry: Entry) -> bool:
        """Whether to skip an entry: the transaction is open, or was open when dispatch skipped an earlier entry."""
        if self.of(entry.txn) is not None:
            return True
        if entry.position <= self._state.max_read:
            return False
        if records.state_of(self._opened.view, entry.txn) is not TransactionState.OPEN:
            return False
        self._known[entry.txn] = SkippedTxn(entry.txn)
        return True

    def is_skipped(self, entry: Entry) -> bool:
        """Whether dispatch has skipped this entry, and not yet examined the entry after its transaction's end."""
        skipped = self.of(entry.txn) if entry.txn else None
        return skipped is not None and entry.position > skipped.examined

    def pass_over(self, txn: int, through: Position) -> None:
        """Skip a transaction's entries through a position; on Key_Shared the keys of these entries become blocked."""
        if self._opened.subscription.keeps_keys:
            self._keys.learn(self._opened, txn, through)

    def suspects(self, keys: set[bytes]) -> set[bytes]:
        """Return the subset of keys that a skipped transaction may block."""
        return self._keys.among(keys)

    def holder(self, key: bytes, here: MessageOrder) -> int:
        """Return the skipped transaction that blocks the message `here` by an earlier message of its key, else 0."""
        for _, txn in self._keys.before(key, here):
            skipped = self.of(txn) if txn not in self._done else None
            # An examined message is in flight, or blocks later messages of the key like every undelivered message.
            if skipped is None or here[:2] <= skipped.examined:
                continue
            if self._may_be_acknowledged(txn) and self._keys.drop_acknowledged(self._opened, key, txn):
                return self.holder(key, here)
            return txn
        return 0

    def _may_be_acknowledged(self, txn: int) -> bool:
        """As `may_be_acknowledged`, looked up once in a walk."""
        if txn not in self._acknowledgeable:
            self._acknowledgeable[txn] = may_be_acknowledged(self._opened, txn)
        return self._acknowledgeable[txn]

    def begin_to_examine(self, txn: int) -> None:
        """Note that the entries of an ended transaction are being examined: the transaction blocks no key any more."""
        self._done.add(txn)

    def entries(self, skipped: SkippedTxn, through: Position) -> Iterator[tuple[Entry, bytes | None]]:
        """The transaction's entries, and the messages blocked behind the transaction, in order of position."""
        opened = self._opened
        view, topic_id = opened.view, opened.topic_id
        after = max(skipped.examined, opened.cursor.mark_delete)
        own: Iterator[tuple[Entry, bytes | None]] = (
            (entry, None)
            for entry in uncommitted_entries.entries(view, topic_id, skipped.txn, after, through)
        )
        if not skipped.blocked:
            return own
        behind = skipped_txns.blocked_behind(view, opened.subscription_id, skipped.txn, after)
        blocked = ((log.stored(view, topic_id, at), messages) for at, messages in behind)
        return merge(own, blocked, key=lambda pair: pair[0].position)

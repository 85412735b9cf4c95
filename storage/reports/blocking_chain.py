"""The chain of a topic: the committed messages behind each open transaction, counted without a scan.

READ_COMMITTED stops before the first message of the first open transaction, and after the end of that transaction
before the first message of the next. So the open transactions of a topic, in the order of their first messages, cut
the log behind maxReadPosition into stretches, one each. The committed messages of a stretch are freed when the
transaction of the stretch and all transactions before have ended.

All counts come from running counts: of the topic's entries, of each transaction's runs, of the aborted set. The counts
equal those of `storage/reports/backlog.py` (invariant 8); a test compares both, and compares with a scan.
"""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.reports import backlog
from storage.subscription.cursor import Cursor
from storage.subscription.dispatch import skipped_txns
from storage.subscription.isolation import IsolationLevel
from storage.subscription.subscription import Subscription
from storage.topic import log
from storage.topic.state import TopicState
from storage.txn import record as records, runs, uncommitted_entries
from storage.txn.blocked_count import committed_within
from storage.txn.uncommitted_entries import TopicPart
from storage.values.position import Position
from storage.values.txn_state import TransactionState

OLDEST_STEPS = 1000
"""Runs and markers to pass in search of the oldest blocked message before its age is called unknown."""

OLDEST_STEPS_OF_STATS = 10
"""The same for the statistics of one topic, whose cost does not grow with the open transactions."""

_RUNS_SUMMED_UP = 100
"""Runs of one transaction that are read ahead; the runs of a longer transaction are looked up for each position."""


class Link:
    """An open transaction with messages on a topic, and the stretch of the log behind its first message.

    Attributes:
        txn: the number of the transaction.
        first: the first message of the transaction, where the stretch begins.
        part: the part of the transaction on the topic.
        after, through: the stretch: entries after `after`, up to and including `through`.
        frees: committed messages in the stretch.
    """

    __slots__ = ("after", "first", "frees", "part", "through", "txn")

    def __init__(self, txn: int, first: Position, part: TopicPart, through: Position) -> None:
        self.txn = txn
        self.first = first
        self.part = part
        self.after = Position(*part.before)
        self.through = through
        self.frees = 0


class Chain:
    """The open transactions of a topic in the order of their first messages, as one view shows them."""

    __slots__ = ("_topic_id", "_view", "links", "topic_state")

    def __init__(self, view: ReadView, topic_id: int, topic_state: TopicState) -> None:
        self._view, self._topic_id, self.topic_state = view, topic_id, topic_state
        self.links: list[Link] = []
        through = topic_state.last_confirmed_position
        for txn, first in reversed(uncommitted_entries.open_transactions(view, topic_id)):
            part = uncommitted_entries.indexed_part(view, txn, topic_id)
            self.links.append(Link(txn, first, part, through))
            through = self.links[-1].after
        self.links.reverse()
        self._count()

    def _count(self) -> None:
        """Count the committed messages of every stretch."""
        below = 0
        for link, uncommitted in zip(self.links, self._uncommitted_at_ends(), strict=True):
            link.frees = self._committed(link.after, link.through, uncommitted - below)
            below = uncommitted

    def _uncommitted_at_ends(self) -> list[int]:
        """Messages of open transactions up to the end of each stretch.

        No run lies across the end of a stretch, because the first message of a different transaction follows: whole
        runs are summed up on the way, and only transactions of very many runs are looked up for each end.
        """
        runs_ends: list[tuple[Position, int]] = []
        scattered: list[Link] = []
        for link in self.links:
            known = runs.ends(self._view, self._topic_id, link.txn, _RUNS_SUMMED_UP + 1)
            if len(known) > _RUNS_SUMMED_UP:
                scattered.append(link)
            else:
                runs_ends += known
        runs_ends.sort(reverse=True)
        uncommitted, total = [], 0
        for link in self.links:
            while runs_ends and runs_ends[-1][0] <= link.through:
                total += runs_ends.pop()[1]
            reached = [other for other in scattered if other.first <= link.through]
            uncommitted.append(total + sum(self._through(other, link.through) for other in reached))
        return uncommitted

    def _through(self, link: Link, at: Position) -> int:
        return runs.messages_through(self._view, self._topic_id, link.txn, at)

    def _uncommitted_through(self, at: Position) -> int:
        """Messages of open transactions at or below a position."""
        reached = [link for link in self.links if link.first <= at]
        return sum(
            link.part.messages if link.part.last <= at else self._through(link, at) for link in reached
        )

    def committed(self, after: Position, through: Position) -> int:
        """Committed messages in (after, through]."""
        if through <= after:
            return 0
        uncommitted = self._uncommitted_through(through) - self._uncommitted_through(after)
        return self._committed(after, through, uncommitted)

    def _committed(self, after: Position, through: Position, uncommitted: int) -> int:
        return committed_within(self._view, self._topic_id, self.topic_state, after, through, uncommitted)

    def unblocks(self, subscription: Subscription, cursor: Cursor) -> list[int]:
        """For every link: the messages of the stretch that are blocked on a subscription.

        The sum is the subscription's count of blocked messages. At READ_UNCOMMITTED no message is blocked. With
        `--on-open skip` a message is blocked by its key, behind a message of the transaction with the same key.
        """
        if subscription.skips:
            return [self._held_behind(subscription, link) for link in self.links]
        if subscription.level is IsolationLevel.READ_UNCOMMITTED:
            return [0] * len(self.links)
        floor = max(cursor.mark_delete, backlog.covered_whole(cursor))
        reserved = backlog.taken(self._view, self.topic_state, subscription, cursor, floor)
        taken = [acks for acks in reserved if self._is_beyond(acks, floor)]
        blocked = []
        for link in self.links:
            after = max(link.after, floor)
            waiting = link.frees if after == link.after else self.committed(after, link.through)
            blocked.append(waiting - sum(self._taken_within(acks, after, link.through) for acks in taken))
        return blocked

    def _held_behind(self, subscription: Subscription, link: Link) -> int:
        skipped = skipped_txns.find(self._view, subscription.subscription_id, link.txn)
        return skipped.blocked if skipped is not None else 0

    def _is_beyond(self, taken: backlog.Taken, floor: Position) -> bool:
        """Whether a part of the range lies in a stretch."""
        end = (taken[0][0], taken[1])
        return bool(self.links) and end > max(floor, self.links[0].after)

    def _taken_within(self, taken: backlog.Taken, after: Position, through: Position) -> int:
        """Committed messages in (after, through] among those acknowledged ahead, or pending."""
        first, last, messages = taken
        if not messages:
            before = Position(first[0], first[1] - 1)
            return self.committed(max(before, after), min(Position(first[0], last), through))
        if not after < first <= through:
            return 0
        entry = log.stored(self._view, self._topic_id, first)
        is_committed = not entry.txn or records.state_of(self._view, entry.txn) is TransactionState.COMMITTED
        return messages.bit_count() if is_committed else 0


def oldest_blocked_ms(
    view: ReadView, topic_id: int, topic_state: TopicState, steps: int = OLDEST_STEPS
) -> int | None:
    """The publish time of the first committed message behind maxReadPosition; None if no such message is near.

    A run of an undecided or aborted transaction is passed in one step.
    """
    last = topic_state.last_confirmed
    entries = log.walk(view, topic_id, topic_state.max_read, last)
    for _ in range(steps):
        entry = next(entries, None)
        if entry is None:
            return None
        if not entry.count:
            continue
        if not entry.txn or records.state_of(view, entry.txn) is TransactionState.COMMITTED:
            return entry.publish_time
        end = runs.end_of_run(view, topic_id, entry.txn, entry.position)
        if end > entry.position:
            entries = log.walk(view, topic_id, end, last)
    return None

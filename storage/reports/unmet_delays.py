"""Delayed messages that no record of the subscription counts as delayed: from the send on, until dispatch meets them.

Such messages are behind the read position, where the timed entries of the topic count them. Or dispatch has come to
them and will judge them anew: messages that the end of a transaction has released, and those of a skipped transaction
that has committed since.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from storage.disk.view import ReadView
from storage.subscription import (
    ack_spans,
    acked_ranges,
    acks,
    cursor as cursors,
    delivery as deliveries,
    message_set,
    span,
)
from storage.subscription.cursor import Cursor
from storage.subscription.delayed import Delayed
from storage.subscription.delivery import NOBODY, Delivery
from storage.subscription.dispatch import skipped_txns
from storage.subscription.dispatch.delay_walk import early
from storage.subscription.isolation import IsolationLevel
from storage.subscription.subscription import Subscription
from storage.topic import log
from storage.topic.entry import Entry
from storage.topic.state import TopicState
from storage.txn import record as records, timed_entries, uncommitted_entries
from storage.values.position import Position
from storage.values.txn_state import TransactionState


def count(
    view: ReadView,
    topic_state: TopicState,
    subscription: Subscription,
    now_ms: int,
    *,
    has_acks: bool,
) -> int:
    """Count the messages behind the read position that would be visible, but for their delivery time.

    Args:
        has_acks: whether messages behind the read position are acknowledged or pending.
    """
    if not subscription.delays:
        return 0
    cursor = cursors.load(view, subscription.subscription_id)
    begin = max(cursor.mark_delete, Position(topic_state.first_ledger, -1))
    after = max(cursor.read, begin)
    met = 0 if after == begin else _Met(view, subscription, cursor, now_ms).count(begin)
    return met + _count_behind(view, topic_state, subscription, now_ms, has_acks)


def _count_behind(
    view: ReadView,
    topic_state: TopicState,
    subscription: Subscription,
    now_ms: int,
    has_acks: bool,
) -> int:
    """Count the messages behind the read position."""
    topic_id, cursor = subscription.topic_id, cursors.load(view, subscription.subscription_id)
    after = max(cursor.read, cursor.mark_delete, Position(topic_state.first_ledger, -1))
    through = subscription.bound(topic_state)
    if through <= after:
        return 0
    is_committed = subscription.level is IsolationLevel.READ_COMMITTED
    early_ones = timed_entries.count_early(view, topic_id, after, through, now_ms, is_committed=is_committed)
    if not early_ones:
        return 0
    # A change of type, level or on-open, or an abort, has moved the read position back behind messages that were
    # delivered or acknowledged before: each is judged as dispatch will judge it.
    for before, last in _touched(view, subscription.subscription_id, after, through, has_acks=has_acks):
        early_ones -= timed_entries.count_early(
            view, topic_id, before, last, now_ms, is_committed=is_committed
        )
        early_ones += sum(
            _early(view, subscription, cursor, entry.at, now_ms)
            for entry in timed_entries.entries(view, topic_id, before, last)
            if entry.due[-1][0] > now_ms and (not is_committed or timed_entries.is_committed(view, entry))
        )
    return early_ones


def _touched(
    view: ReadView, subscription_id: int, after: Position, through: Position, *, has_acks: bool
) -> list[tuple[Position, Position]]:
    """The stretches of entries that have messages with records, each after one position and up to a second.

    They are in order, and do not overlap.
    """
    stretches = list[tuple[Position, Position]]()

    def add(first: Position, last_entry: int) -> None:
        before, last = Position(first[0], first[1] - 1), Position(first[0], last_entry)
        if before < through and last > after:
            stretches.append((max(before, after), min(last, through)))

    for record in deliveries.records(view, subscription_id, _next(after)):
        add(record.at, record.at[1] + (span.SPAN_ENTRIES - 1 if record.is_span else 0))
    if has_acks:
        for first, last_entry, _ in acked_ranges.stored_ranges(view, subscription_id, after=after):
            add(first, last_entry)
        for first, _ in ack_spans.every(view, subscription_id, after):
            add(first, first[1] + span.SPAN_ENTRIES - 1)
    joined = list[tuple[Position, Position]]()
    for before, last in sorted(stretches):
        if joined and before < joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((before, last))
    return joined


def behind(
    view: ReadView,
    topic_state: TopicState,
    subscription: Subscription,
    now_ms: int,
    limit: int,
) -> Iterator[tuple[Entry, int]]:
    """Yield the entries behind the read position with early messages, and these as a bit set.

    Args:
        limit: timed entries that are looked at.
    """
    if not subscription.delays:
        return
    topic_id, subscription_id = subscription.topic_id, subscription.subscription_id
    cursor = cursors.load(view, subscription_id)
    after = max(cursor.read, cursor.mark_delete, Position(topic_state.first_ledger, -1))
    noted = timed_entries.entries(view, topic_id, after, subscription.bound(topic_state))
    for timed in islice(noted, limit):
        is_open = not timed_entries.is_committed(view, timed)
        if timed.due[-1][0] <= now_ms or (is_open and subscription.level is IsolationLevel.READ_COMMITTED):
            continue
        if deliveries.find(view, subscription_id, timed.at) is None:
            entry = log.stored(view, topic_id, timed.at)
            done = acks.acknowledged(view, subscription_id, cursor, timed.at, entry.count)
            fresh = message_set.everything(entry.count) & ~done
            yield entry, sum(early(entry, Delivery(timed.at, entry.count, []), fresh, now_ms).values())


class _Met:
    """The early messages up to the read position that are not noted as delayed."""

    def __init__(self, view: ReadView, subscription: Subscription, cursor: Cursor, now_ms: int) -> None:
        self._view = view
        self._subscription = subscription
        self._cursor = cursor
        self._now_ms = now_ms
        self._delayed = Delayed(view, subscription.subscription_id, cursor)

    def count(self, begin: Position) -> int:
        """Count the messages behind a position."""
        view, topic_id = self._view, self._subscription.topic_id
        if next(timed_entries.entries(view, topic_id, begin, self._cursor.read), None) is None:
            return 0
        places = {at for at in self._released(begin) if at <= self._cursor.read}
        if self._cursor.skipped_txns:
            places |= self._of_committed(begin)
        return sum(map(self._early, places))

    def _released(self, begin: Position) -> Iterator[Position]:
        """Yield timed entries with free messages never delivered; at READ_COMMITTED, committed ones."""
        view, topic_id = self._view, self._subscription.topic_id
        is_any = self._subscription.level is not IsolationLevel.READ_COMMITTED
        for record in deliveries.records(view, self._subscription.subscription_id, _next(begin)):
            fresh = sum(part.messages for part in record.parts if part.holder == NOBODY and not part.times)
            if fresh:
                last = Position(record.at[0], record.at[1] + (span.SPAN_ENTRIES - 1 if record.is_span else 0))
                for entry in timed_entries.entries(view, topic_id, _before(record.at), last):
                    is_fresh = not record.is_span or span.of_entry(entry.at, fresh)
                    if is_fresh and (is_any or timed_entries.is_committed(view, entry)):
                        yield entry.at

    def _of_committed(self, begin: Position) -> set[Position]:
        """Find the entries of skipped transactions that have committed, and those that were held behind ended ones."""
        view, topic_id, subscription_id = (
            self._view,
            self._subscription.topic_id,
            self._subscription.subscription_id,
        )
        places: set[Position] = set()
        for skipped in skipped_txns.every(view, subscription_id):
            state = records.state_of(view, skipped.txn)
            after = max(skipped.examined, begin)
            if state is TransactionState.OPEN or after >= self._cursor.read:
                continue
            if state is TransactionState.COMMITTED:
                for entry in uncommitted_entries.entries(
                    view, topic_id, skipped.txn, after, self._cursor.read
                ):
                    places.add(entry.position)
            places |= {at for at, _ in skipped_txns.blocked_behind(view, subscription_id, skipped.txn, after)}
        return places

    def _early(self, at: Position) -> int:
        noted = self._delayed.at(at)
        return _early(self._view, self._subscription, self._cursor, at, self._now_ms, noted)


def _before(at: Position) -> Position:
    return Position(at[0], at[1] - 1)


def _next(at: Position) -> Position:
    return Position(at[0], at[1] + 1)


def _early(
    view: ReadView, subscription: Subscription, cursor: Cursor, at: Position, now_ms: int, noted: int = 0
) -> int:
    """The number of early messages of one entry that are neither acknowledged nor pending, nor were delivered.

    Args:
        noted: messages that are counted as delayed already.
    """
    subscription_id = subscription.subscription_id
    entry = log.stored(view, subscription.topic_id, at)
    done = acks.acknowledged(view, subscription_id, cursor, at, entry.count)
    delivery = deliveries.find(view, subscription_id, at) or Delivery(at, entry.count, [])
    open_ = message_set.everything(entry.count) & ~done & ~noted
    return sum(messages.bit_count() for messages in early(entry, delivery, open_, now_ms).values())

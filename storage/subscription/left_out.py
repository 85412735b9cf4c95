"""The markers and aborted messages directly after markDeletePosition, which READ_COMMITTED leaves out.

A change of the isolation level acknowledges them at once: they stay left out. The stretch is found by counts, however
many messages are in it: up to its end no message is committed (sums of the log and of the aborted set).
"""

from __future__ import annotations

from bisect import bisect_left

from storage.disk.view import ReadView, WriteBatch
from storage.subscription import delivery as deliveries, message_set, pending_ack, pending_records
from storage.subscription.isolation import IsolationLevel, delivers
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log, written_positions
from storage.topic.entry import Entry
from storage.topic.open_topic import OpenTopic
from storage.txn.aborted import AbortedSet
from storage.txn.blocked_count import committed_within
from storage.values.position import Position


def acknowledge(opened: OpenSubscription[WriteBatch]) -> None:
    """At READ_COMMITTED, acknowledge the markers and aborted messages directly after markDeletePosition.

    An entry with a pending message is the last: markDeletePosition stays before the entry.
    """
    if opened.subscription.level is not IsolationLevel.READ_COMMITTED:
        return
    cursor, topic = opened.cursor, OpenTopic.load(opened.view, opened.topic_id)
    while cursor.mark_delete < topic.state.max_read:
        mark_delete = cursor.mark_delete
        following = _next_left_out(topic, mark_delete)
        if following is None:
            return
        if cursor.pending_cumulative is not None:
            _acknowledge_entry(opened, following)
            return
        end = _end_of_stretch(topic, mark_delete)
        pending = pending_records.first_position(opened.view, opened.subscription_id)
        if pending is not None and pending <= end:
            _acknowledge_through(opened, log.previous_position(opened.view, opened.topic_id, pending))
            _acknowledge_entry(opened, log.stored(opened.view, opened.topic_id, pending))
            return
        _acknowledge_through(opened, end)
        if cursor.mark_delete <= mark_delete:
            return


def _next_left_out(topic: OpenTopic[ReadView], after: Position) -> Entry | None:
    """The entry after a position if READ_COMMITTED leaves it out, or None."""
    following = log.next_entry(topic.view, topic.topic_id, after)
    if following is None or following.position > topic.state.max_read:
        return None
    aborted = AbortedSet()
    aborted.load(topic, after, following.position)
    is_delivered = delivers(IsolationLevel.READ_COMMITTED, following.kind, following.txn, aborted.ids)
    return None if is_delivered else following


def _end_of_stretch(topic: OpenTopic[ReadView], after: Position) -> Position:
    """The last position up to maxReadPosition behind which the first committed message after a position stands."""
    view, topic_id, state = topic.view, topic.topic_id, topic.state

    def is_behind(position: Position) -> bool:
        return committed_within(view, topic_id, state, after, min(position, state.max_read), 0) > 0

    def last_of(ledger_id: int) -> Position:
        return written_positions.preceding(view, topic_id, Position(ledger_id + 1, 0)) or after

    if not is_behind(state.max_read):
        return state.max_read
    ledgers = range(max(after[0], state.first_ledger), state.max_read[0] + 1)
    ledger_id = ledgers[bisect_left(ledgers, True, key=lambda number: is_behind(last_of(number)))]
    entries = range(last_of(ledger_id)[1] + 1)
    entry_id = bisect_left(entries, True, key=lambda number: is_behind(Position(ledger_id, number)))
    return max(after, log.previous_position(view, topic_id, Position(ledger_id, entry_id)))


def _acknowledge_through(opened: OpenSubscription[WriteBatch], through: Position) -> None:
    if through > opened.cursor.mark_delete:
        opened.deliveries.settle_through(through)
        opened.acks.acknowledge_through(through)
        opened.acks.advance()


def _acknowledge_entry(opened: OpenSubscription[WriteBatch], entry: Entry) -> None:
    """Acknowledge the messages of an entry that are not pending."""
    at, delivery = entry.position, opened.deliveries.find(entry.position)
    pending = pending_ack.covered(opened.cursor, at, entry.count)
    pending |= delivery.of(deliveries.PENDING) if delivery is not None else 0
    passed = message_set.everything(entry.count) & ~pending
    opened.deliveries.settle(at, passed)
    opened.acks.acknowledge(at, entry.count, passed)

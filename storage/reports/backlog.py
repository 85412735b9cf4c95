"""The backlog of a subscription: the messages after markDeletePosition, counted by class.

Invariant 8: each stored message after markDeletePosition is in the first class that fits: acknowledged, pending, at
READ_COMMITTED aborted, uncommitted, blocked, delayed, else visible. The counts come from running counts in the log, the
sums of the aborted set, and the records of the cursor; blocked and delayed messages are never scanned. Delayed are
messages before their delivery time, on types that heed it: those that dispatch has passed (`Delayed`), and those behind
the read position (`unmet_delays.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.codec import corrupt, key1
from storage.disk.schema import CURSORS
from storage.disk.view import ReadView
from storage.reports import skipped, unmet_delays
from storage.subscription import (
    ack_spans,
    acked_ranges,
    acks,
    cursor as cursors,
    delivery as deliveries,
    message_set,
    pending_ack,
    pending_records,
    span,
)
from storage.subscription.ack_spans import AckedMessages
from storage.subscription.cursor import Cursor
from storage.subscription.delayed import Delayed
from storage.subscription.isolation import IsolationLevel
from storage.subscription.subscription import Subscription
from storage.topic import log
from storage.topic.compaction import compacted_view, compaction_state
from storage.topic.state import TopicState
from storage.txn import aborted, record as records
from storage.txn.blocked_count import blocked_behind, uncommitted_behind
from storage.values.position import MessageId, Position
from storage.values.txn_state import TransactionState

Taken = tuple[Position, int, int]
"""Messages acknowledged ahead or pending: first position, last entry id, bit set of the messages (0: whole entries)."""


class Backlog:
    """Counts of messages after markDeletePosition, by class; `in_flight` is part of `visible`.

    Messages that only the compacted view has are in no class; `pending_in_view` of them are pending.
    """

    __slots__ = (
        "aborted",
        "acknowledged",
        "blocked",
        "delayed",
        "in_flight",
        "pending",
        "pending_in_view",
        "stored",
        "uncommitted",
        "visible",
    )

    def __init__(self) -> None:
        self.stored = self.acknowledged = self.pending = self.pending_in_view = self.aborted = 0
        self.uncommitted = self.blocked = self.delayed = self.visible = self.in_flight = 0

    def verdict(self, consumers: int, *, is_frozen: bool = False) -> str:
        """Return the verdict: ok, behind, stopped, blocked, mixed, or no-consumer.

        Args:
            consumers: the number of living consumers.
            is_frozen: whether stopped consumers keep every visible message from being delivered.
        """
        if self.visible and not consumers:
            return "no-consumer"
        if self.visible and self.blocked:
            return "mixed"
        if self.visible and is_frozen:
            return "stopped"
        return "behind" if self.visible else "blocked" if self.blocked else "ok"


def count(
    view: ReadView,
    topic_state: TopicState,
    subscription: Subscription,
    cursor: Cursor,
    now_ms: int | None = None,
) -> Backlog:
    """Count the backlog of a subscription, exactly.

    Args:
        now_ms: the wall time that delivery times are compared with; the present one, if None.
    """
    topic_id, subscription_id = subscription.topic_id, subscription.subscription_id
    backlog, through = Backlog(), log.messages_through
    backlog.stored = topic_state.messages - through(view, topic_id, topic_state, cursor.mark_delete)
    backlog.acknowledged = acked_ranges.acknowledged_count(view, topic_id, subscription_id)
    backlog.pending, backlog.in_flight = _held(view, topic_state, subscription, cursor)
    if cursor.mark_delete[0] < topic_state.first_ledger:
        backlog.pending_in_view = _pending_in_view(view, topic_state, subscription, cursor)
    return _classified(view, topic_state, subscription, backlog, now_ms)


def count_after_abort(
    view: ReadView,
    topic_state: TopicState,
    subscription: Subscription,
    before: Backlog,
    released: int,
) -> Backlog:
    """Count the backlog after the abort of transactions, without a second look at the records of its messages.

    An abort acknowledges no message, so what is stored beyond the acknowledged messages is as before. `in_flight` is
    not counted.

    Args:
        before: the backlog before the abort.
        released: messages of the subscription that were pending in these transactions.
    """
    backlog = Backlog()
    backlog.stored, backlog.acknowledged = before.stored, before.acknowledged
    backlog.pending, backlog.pending_in_view = before.pending - released, before.pending_in_view
    return _classified(view, topic_state, subscription, backlog, None)


def _classified(
    view: ReadView,
    topic_state: TopicState,
    subscription: Subscription,
    backlog: Backlog,
    now_ms: int | None,
) -> Backlog:
    """Complete a backlog of which stored, acknowledged, pending and in flight are counted."""
    subscription_id = subscription.subscription_id
    cursor = cursors.load(view, subscription_id)
    if subscription.skips:
        _count_skipping(view, topic_state, subscription, cursor, backlog)
    elif subscription.level is IsolationLevel.READ_COMMITTED:
        _count_blocking(view, topic_state, subscription, cursor, backlog)
    backlog.visible = backlog.stored - backlog.acknowledged - backlog.pending - backlog.aborted
    now_ms = view.clock.wall_ms() if now_ms is None else now_ms
    behind = max(cursor.read, cursor.mark_delete)
    has_acks = next(taken(view, topic_state, subscription, cursor, behind), None) is not None
    backlog.delayed = Delayed(view, subscription_id, cursor).waiting(now_ms)
    backlog.delayed += unmet_delays.count(view, topic_state, subscription, now_ms, has_acks=has_acks)
    backlog.visible -= backlog.uncommitted + backlog.blocked + backlog.delayed
    least = min(backlog.visible, backlog.blocked, backlog.uncommitted, backlog.aborted)
    if least < 0:
        why = f"its records make a backlog of {backlog.visible} visible, {backlog.blocked} blocked, "
        why += f"{backlog.uncommitted} uncommitted, {backlog.aborted} aborted and {backlog.delayed} delayed messages"
        raise corrupt(CURSORS, key1(subscription_id), why)
    return backlog


def _count_blocking(
    view: ReadView, topic_state: TopicState, subscription: Subscription, cursor: Cursor, backlog: Backlog
) -> None:
    """Count aborted, uncommitted and blocked messages where READ_COMMITTED stops at maxReadPosition."""
    topic_id = subscription.topic_id
    # Dispatch acknowledges the aborted messages on its way, so only aborted messages behind the read position count.
    # Messages acknowledged or pending behind the read position are classified entry by entry, and subtracted. After a
    # seek or a change of the level, markDeletePosition may lie beyond maxReadPosition.
    covered = covered_whole(cursor)
    passed, last = max(cursor.read, cursor.mark_delete, covered), topic_state.last_confirmed
    waiting = max(topic_state.max_read, cursor.mark_delete, covered)
    reserved = list(taken(view, topic_state, subscription, cursor, min(passed, waiting)))
    beyond = _classes_of(view, topic_state, subscription, passed, reserved)
    late = beyond if waiting == passed else _classes_of(view, topic_state, subscription, waiting, reserved)
    backlog.aborted = aborted.messages_between(view, topic_id, topic_state, passed, last) - beyond["aborted"]
    backlog.uncommitted = uncommitted_behind(view, topic_id, topic_state, waiting) - late["uncommitted"]
    backlog.blocked = blocked_behind(view, topic_id, topic_state, waiting) - late["blocked"]


def _count_skipping(
    view: ReadView, topic_state: TopicState, subscription: Subscription, cursor: Cursor, backlog: Backlog
) -> None:
    """Count aborted, uncommitted and blocked messages where READ_COMMITTED skips open transactions.

    Up to the read position of dispatch no uncommitted message is acknowledged or pending, unless the cursor has
    `has_uncommitted_acks`: then the messages acknowledged ahead are classified entry by entry.
    """
    topic_id, read = subscription.topic_id, max(cursor.read, cursor.mark_delete)
    begin = cursor.mark_delete if cursor.has_uncommitted_acks else read
    reserved = list(taken(view, topic_state, subscription, cursor, begin))
    beyond = _classes_of(view, topic_state, subscription, read, reserved)
    ahead = beyond
    if cursor.has_uncommitted_acks:
        ahead = _classes_of(view, topic_state, subscription, cursor.mark_delete, reserved)
    passed, backlog.blocked = skipped.aborted_and_blocked(view, topic_state, subscription, cursor)
    late = (
        aborted.messages_between(view, topic_id, topic_state, read, topic_state.last_confirmed)
        - beyond["aborted"]
    )
    backlog.aborted = passed + late
    backlog.uncommitted = (
        uncommitted_behind(view, topic_id, topic_state, cursor.mark_delete) - ahead["uncommitted"]
    )


def _held(
    view: ReadView, topic_state: TopicState, subscription: Subscription, cursor: Cursor
) -> tuple[int, int]:
    """Count the messages with a pending acknowledgement, and the messages in flight."""
    pending = in_flight = 0
    cumulative = cursor.pending_cumulative
    # Messages that only the compacted view has are in no class: they are not stored in the log.
    first = Position(topic_state.first_ledger, 0)
    for record in deliveries.records(view, subscription.subscription_id, first):
        in_flight += record.in_flight().bit_count()
        held = record.of(deliveries.PENDING)
        if held:
            pending += (held & ~pending_ack.covered_of(cursor, record)).bit_count()
    if cumulative is not None:
        pending += _covered_count(view, topic_state, subscription, cursor, cumulative)
    return pending, in_flight


def _pending_in_view(
    view: ReadView, topic_state: TopicState, subscription: Subscription, cursor: Cursor
) -> int:
    """Count the pending messages of trimmed ledgers: those in flight before, and what a cumulative one covers."""
    subscription_id, topic_id, pending = subscription.subscription_id, subscription.topic_id, 0
    for stored in (deliveries.own(view, subscription_id), deliveries.spans(view, subscription_id)):
        for record in stored:
            if record.at[0] >= topic_state.first_ledger:
                break
            held = record.of(deliveries.PENDING)
            pending += (held & ~pending_ack.covered_of(cursor, record)).bit_count()
    compaction = compaction_state.load(view, topic_id) if cursor.pending_cumulative is not None else None
    if cursor.pending_cumulative is None or compaction is None:
        return pending
    last = min(Position(*cursor.pending_cumulative[1:3]), Position(topic_state.first_ledger, -1))
    for entry in compacted_view.entries(view, topic_id, compaction, cursor.mark_delete, last):
        at, size = entry.position, entry.batch_count
        known = sum(1 << index for index in entry.batch_indexes) & pending_ack.covered(cursor, at, size)
        pending += (known & ~acks.acknowledged(view, subscription_id, cursor, at, size)).bit_count()
    return pending


def pending_in(
    view: ReadView, topic_state: TopicState, subscription: Subscription, cursor: Cursor, txn: int
) -> int:
    """Count the messages of a subscription with a pending acknowledgement of one transaction."""
    cumulative = cursor.pending_cumulative
    if cumulative is None or cumulative[0] != txn:
        return pending_ack.part_of(view, txn, subscription).messages
    total = _covered_count(view, topic_state, subscription, cursor, cumulative)
    for record in pending_records.of_transaction(view, txn, subscription.subscription_id):
        if record.is_span:
            inside = pending_ack.messages_through(MessageId(*cumulative[1:4]))
            beyond = ~span.through(record.at, Position(*cumulative[1:3]), inside)
            total += (record.messages(0) & beyond).bit_count()
            continue
        delivery = deliveries.find(view, subscription.subscription_id, record.at)
        if delivery is not None:
            acknowledged = record.messages(delivery.count)
            total += (acknowledged & ~pending_ack.covered(cursor, record.at, delivery.count)).bit_count()
    return total


def pending_by_transaction(
    view: ReadView, topic_state: TopicState, subscription: Subscription, cursor: Cursor
) -> dict[int, int]:
    """Count the messages of a subscription with a pending acknowledgement, by transaction."""
    txns = {record.txn for record in pending_records.of_subscription(view, subscription.subscription_id)}
    if cursor.pending_cumulative is not None:
        txns.add(cursor.pending_cumulative[0])
    return {txn: pending_in(view, topic_state, subscription, cursor, txn) for txn in sorted(txns)}


def _covered_count(
    view: ReadView,
    topic_state: TopicState,
    subscription: Subscription,
    cursor: Cursor,
    cumulative: tuple[int, int, int, int],
) -> int:
    """Count the unacknowledged messages after markDeletePosition covered by a pending cumulative acknowledgement."""
    topic_id, at = subscription.topic_id, Position(*cumulative[1:3])
    if at <= cursor.mark_delete or at[0] < topic_state.first_ledger:
        return 0
    entry = log.stored(view, topic_id, at)
    inside = entry.count if cumulative[3] < 0 else cumulative[3] + 1
    total = entry.messages_before + inside
    total -= log.messages_through(view, topic_id, topic_state, cursor.mark_delete)
    for first, acknowledged in ack_spans.every(view, subscription.subscription_id, stop=at):
        covered = span.through(first, at, pending_ack.messages_through(MessageId(*cumulative[1:4])))
        total -= (acknowledged.messages & covered).bit_count()
    for first, last, messages in acked_ranges.stored_ranges(view, subscription.subscription_id):
        if first > at:
            break
        if first.ledger_id < topic_state.first_ledger:
            continue
        if messages:
            known = int.from_bytes(messages, "big")
            total -= (known & pending_ack.covered(cursor, first, known.bit_length())).bit_count()
            continue
        end = log.stored(view, topic_id, min(Position(first.ledger_id, last), at))
        begin = log.stored(view, topic_id, first)
        reached = end.messages_before + inside if end.position == at else end.messages_through
        total -= reached - begin.messages_before
    return total


def covered_whole(cursor: Cursor) -> Position:
    """Return the last entry that a pending cumulative acknowledgement covers completely, else markDeletePosition."""
    if cursor.pending_cumulative is None:
        return cursor.mark_delete
    _, ledger_id, entry_id, index = cursor.pending_cumulative
    return Position(ledger_id, entry_id if index < 0 else entry_id - 1)


def taken(
    view: ReadView, topic_state: TopicState, subscription: Subscription, cursor: Cursor, after: Position
) -> Iterator[Taken]:
    """Yield the messages of the log acknowledged ahead, or individually pending, after a position as `Taken`.

    For the last, partly covered entry of a pending cumulative acknowledgement the covered messages are included.
    """
    subscription_id, cumulative = subscription.subscription_id, cursor.pending_cumulative
    after = max(after, Position(topic_state.first_ledger, -1))
    for first, last, messages in acked_ranges.stored_ranges(view, subscription_id, after=after):
        if Position(first[0], last) > after:
            yield first, last, int.from_bytes(messages, "big")
    for first, acknowledged in ack_spans.every(view, subscription_id, after):
        yield from _taken_in_span(first, acknowledged.without(span.through(first, after)))
    partly: Position | None = None
    if cumulative is not None and cumulative[3] >= 0 and cumulative[1] >= topic_state.first_ledger:
        partly = Position(*cumulative[1:3])
        entry = log.stored(view, subscription.topic_id, partly)
        covered = message_set.through(cumulative[3])
        delivery = deliveries.find(view, subscription_id, partly)
        covered |= delivery.of(deliveries.PENDING) if delivery is not None else 0
        covered &= ~acks.acknowledged(view, subscription_id, cursor, partly, entry.count)
        if covered:
            yield partly, partly[1], covered
    for record in deliveries.records(view, subscription_id, after):
        pending = record.of(deliveries.PENDING)
        if record.is_span:
            beyond = pending & ~span.through(record.at, after)
            if partly is not None and span.first_of(partly) == record.at:
                beyond &= ~span.place(partly, span.MESSAGES)
            yield from _taken_in_span(record.at, AckedMessages(beyond, record.sizes))
        elif pending and after < record.at != partly:
            yield record.at, record.at[1], pending


def _taken_in_span(first: Position, taken: AckedMessages) -> Iterator[Taken]:
    for begin, last in span.runs(first, taken.whole):
        yield begin, last, 0
    for at, messages in ack_spans.in_part(first, taken):
        yield at, at[1], messages


def _classes_of(
    view: ReadView,
    topic_state: TopicState,
    subscription: Subscription,
    after: Position,
    taken: list[Taken],
) -> dict[str, int]:
    """Count the aborted, uncommitted and blocked messages among the `taken` messages after a position."""
    counts = {"aborted": 0, "uncommitted": 0, "blocked": 0}
    states: dict[int, TransactionState] = {}
    for first, last, messages in taken:
        if Position(first[0], last) <= after:
            continue
        begin = max(Position(first[0], first[1] - 1), after)
        for entry in log.scan(view, subscription.topic_id, begin, Position(first[0], last)):
            taken_here = messages.bit_count() if messages else entry.count
            if entry.txn and entry.txn not in states:
                states[entry.txn] = records.state_of(view, entry.txn)
            state = states.get(entry.txn)
            if state is TransactionState.ABORTED:
                counts["aborted"] += taken_here
            elif state is TransactionState.OPEN:
                counts["uncommitted"] += taken_here
            elif entry.position > topic_state.max_read:
                counts["blocked"] += taken_here
    return counts

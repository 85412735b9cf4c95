"""Trim topics to their retention limits: which ledgers may go, and the object that holds the rest back.

A closed ledger at the front goes when every message of it is acknowledged by every subscription, no open transaction
has a message there, and a limit is reached: the retention time, if the newest message of the ledger is older; the
retention size, if the acknowledged messages behind the ledger are at least as large. With both limits, the first one
reached is enough. A topic without a subscription has nothing to wait for: readers hold nothing back. The open ledger is
closed first where the whole ledger may go, so that a quiet topic is trimmed too. Invariants 5, 15 and 19.

Where a limit is hard, ledgers go for which the limits alone speak: `hard_trimming.py` frees these ledgers first.
Messages that are not compacted yet stay all the same: older values of their keys would come back.

All paths come here: a write on its way, `store gc`, `topics trim` and its dry run (`topic_upkeep.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from storage.disk.schema import AWAITED
from storage.disk.view import ReadView, WriteBatch
from storage.disk.wall_clock import clocks_agree
from storage.limits import (
    FORCED_STEP_ENTRIES,
    HARD_LEDGERS,
    MARKS_RAISED_MAX,
    TRIM_STEP_ENTRIES,
    TRIM_STEP_LEDGERS,
)
from storage.subscription import (
    behind,
    catalogue as subscriptions,
    cursor as cursors,
    message_set,
    pending_ack,
)
from storage.subscription.delivery import PENDING
from storage.subscription.dispatch import skipped_txns
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log, retention, trim
from storage.topic.compaction import compaction_state
from storage.topic.entry import MESSAGES, Entry
from storage.topic.log import LedgerInfo
from storage.topic.open_topic import OpenTopic
from storage.topic.retention import NO_LIMITS, RetentionLimits
from storage.topic.state import TopicState
from storage.topic.trim import Trimmed
from storage.txn import aborted, record as records, uncommitted_entries
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.values.txn_id import TxnID

if TYPE_CHECKING:
    from storage.subscription.hard_trimming import Loss, TxnEnds


class Hold(NamedTuple):
    """The object that holds the first messages of a topic back from trimming.

    Attributes:
        kind: `subscription`, `transaction`, or `compaction`: the horizon of the compacted view.
        name: of the subscription, or the id of the transaction, or the horizon.
        position: everything up to here is free to go.
        since_at_ms: the publish time of the first message not acknowledged, or not compacted, or the begin of the
            transaction.
    """

    kind: str
    name: str
    position: Position
    since_at_ms: int


class Step(NamedTuple):
    """The effects of one step on a topic, and whether a further step has work.

    Attributes:
        lost: messages that subscriptions had not acknowledged, which a hard limit has let go.
        aborted: open transactions that held such messages.
        expired: messages acknowledged for their age.
        deleted: subscriptions that went for want of a consumer.
        looked_through: the last subscription that a run has looked at for that; "" if it has looked at none.
    """

    trimmed: Trimmed
    entries_removed: int
    has_more: bool
    lost: list[Loss]
    aborted: list[TxnID]
    expired: list[Loss]
    deleted: list[str]
    looked_through: str = ""

    @property
    def has_effect(self) -> bool:
        """Whether anything was trimmed, or lost, or ended."""
        return bool(self.trimmed.ledgers or self.lost or self.aborted or self.expired or self.deleted)

    def plus(self, other: Step) -> Step:
        """The sum of this step and a later one."""
        from storage.subscription.hard_trimming import added

        return Step(
            self.trimmed.plus(other.trimmed), self.entries_removed + other.entries_removed, other.has_more,
            added(self.lost, other.lost), self.aborted + other.aborted,
            added(self.expired, other.expired), self.deleted + other.deleted,
            other.looked_through or self.looked_through,
        )  # fmt: skip


class Force(NamedTuple):
    """The means of a hard limit: the end of transactions that hold messages, and the entries examined in a step.

    `looked_through` is that of the step before, in a run.
    """

    ends: TxnEnds
    entries_max: int = FORCED_STEP_ENTRIES
    looked_through: str = ""

    def after(self, done: Step) -> Force:
        """The means of the next step of a run."""
        return self._replace(looked_through=done.looked_through)


NOTHING = Trimmed(0, 0, 0)
NO_STEP = Step(NOTHING, 0, has_more=False, lost=[], aborted=[], expired=[], deleted=[])


def find_hold(
    view: ReadView, topic_id: int, state: TopicState, limits: RetentionLimits = NO_LIMITS
) -> Hold | None:
    """The slowest subscription, the oldest open transaction or the compaction of a topic, whichever is furthest back;
    None if none holds a message.

    Args:
        limits: where they trim what is not acknowledged, the compaction comes first, which holds against them too.
    """
    uncompacted = _uncompacted(view, topic_id, state)
    if uncompacted is not None and not limits.as_hard(retention.TRIM).keeps_everything:
        return uncompacted
    return _furthest_back(view, topic_id, state, uncompacted)


def find_client(view: ReadView, topic_id: int, state: TopicState) -> Hold | None:
    """The slowest subscription or the oldest open transaction of a topic, as `find_hold`."""
    return _furthest_back(view, topic_id, state, None)


def _furthest_back(view: ReadView, topic_id: int, state: TopicState, uncompacted: Hold | None) -> Hold | None:
    # A subscription that has every message up to the transaction cannot let the transaction go.
    holds = (_oldest(view, topic_id), uncompacted, _slowest(view, topic_id, state))
    return min(
        (hold for hold in holds if hold is not None),
        key=lambda hold: log.messages_through(view, topic_id, state, hold.position),
        default=None,
    )


def _uncompacted(view: ReadView, topic_id: int, state: TopicState) -> Hold | None:
    """The log behind the compacted view, of a topic with a view or a threshold: kept until compaction."""
    compaction = compaction_state.load(view, topic_id)
    if compaction is None or not (compaction.has_view or compaction.threshold is not None):
        return None
    horizon = compaction.horizon or Position(state.first_ledger, -1)
    if log.messages_through(view, topic_id, state, horizon) >= state.messages:
        return None
    following = log.next_entry(view, topic_id, horizon)
    return None if following is None else Hold("compaction", str(horizon), horizon, following.publish_time)


def _slowest(view: ReadView, topic_id: int, state: TopicState) -> Hold | None:
    lowest = behind.furthest_back(view, topic_id)
    if lowest is None:
        return None
    position = lowest.at
    # Behind the last message there may be markers, which no consumer has passed yet; they hold nothing.
    if log.messages_through(view, topic_id, state, position) >= state.messages:
        return None
    following = log.next_entry(view, topic_id, position)
    if following is None:
        return None
    subscription = subscriptions.by_name(view, topic_id, lowest.name)
    holder = _pending_in(OpenSubscription(view, subscription), following)
    if holder is not None:
        return Hold("transaction", str(TxnID(holder)), position, records.get(view, holder).begun_ms)
    return Hold("subscription", lowest.name, position, following.publish_time)


def _pending_in(opened: OpenSubscription[ReadView], entry: Entry) -> int | None:
    """The transaction in which the next messages of a subscription are pending: the subscription has no more to do."""
    at, count = entry.position, entry.count
    if entry.kind != MESSAGES:
        return None
    open_ = message_set.everything(count) & ~opened.acks.of(at, count)
    delivery = opened.deliveries.find(at)
    pending = pending_ack.covered(opened.cursor, at, count)
    pending |= delivery.of(PENDING) if delivery is not None else 0
    if open_ & ~pending:
        return None
    return min(pending_ack.holders(opened, at, count, open_), default=None)


def _oldest(view: ReadView, topic_id: int) -> Hold | None:
    opened = uncommitted_entries.first_open(view, topic_id)
    if opened is None:
        return None
    txn, first, _ = opened
    before = Position(first.ledger_id, first.entry_id - 1)
    return Hold("transaction", str(TxnID(txn)), before, records.get(view, txn).begun_ms)


class _Free:
    """The part of a topic that nothing holds: messages from the beginning on, and bytes."""

    def __init__(self, topic: OpenTopic[ReadView], heeds_holds: bool) -> None:
        view, topic_id, state = topic.view, topic.topic_id, topic.state
        hold = find_hold(view, topic_id, state) if heeds_holds else None
        self.messages, self.bytes = (
            (state.messages, state.bytes)
            if hold is None
            else log.counts_through(view, topic_id, state, hold.position)
        )


def plan(
    topic: OpenTopic[ReadView],
    limits: RetentionLimits,
    now_ms: int,
    ledgers_max: int,
    *,
    heeds_holds: bool = True,
) -> int:
    """The first ledger that stays when the topic is trimmed: the one after the open ledger if that may go too.

    Args:
        now_ms: wall time.
        ledgers_max: ledgers that may go at once.
        heeds_holds: False asks for the ledgers that the limits alone would let go.
    """
    first_kept = _plan_by_counts(topic, limits, now_ms, ledgers_max, heeds_holds)
    return _kept_for_compaction(topic, first_kept) if heeds_holds else first_kept


def _plan_by_counts(
    topic: OpenTopic[ReadView], limits: RetentionLimits, now_ms: int, ledgers_max: int, heeds_holds: bool
) -> int:
    state = topic.state
    messages, size, free = state.messages_trimmed, state.bytes_trimmed, None
    for number, ledger in enumerate(_in_order(topic) if not limits.keeps_everything else ()):
        # An empty topic of an earlier life begins before its open ledger, and has no ledger between.
        here = ledger.ledger_id if number else state.first_ledger
        messages, size = messages + ledger.messages, size + ledger.bytes
        if ledger.entries == 0 or number >= ledgers_max:
            return here
        is_old = limits.time_ms is not None and (
            limits.time_ms == 0
            or trim.newest_ms(topic.view, topic.topic_id, ledger) + limits.time_ms <= now_ms
        )
        if not is_old and limits.bytes is None:
            return here
        free = free or _Free(topic, heeds_holds)
        is_large = limits.bytes is not None and max(free.bytes - size, 0) >= limits.bytes
        if messages > free.messages or not (is_old or is_large):
            return here
    return state.first_ledger if limits.keeps_everything else state.ledger_id + 1


def plan_all(topic: OpenTopic[ReadView], limits: RetentionLimits, now_ms: int, ledgers_max: int) -> int:
    """The same as `plan`, with the ledgers that a hard limit lets go too."""
    soft, hard = (of(topic, limits, now_ms, ledgers_max) for of in (plan, plan_hard))
    return max(soft, hard)


def plan_hard(topic: OpenTopic[ReadView], limits: RetentionLimits, now_ms: int, ledgers_max: int) -> int:
    """The same as `plan`, with the ledgers alone that a hard limit lets go; compaction alone holds them back."""
    hard = limits.as_hard(retention.TRIM)
    if hard.keeps_everything:
        return topic.state.first_ledger
    return _kept_for_compaction(topic, plan(topic, hard, now_ms, ledgers_max, heeds_holds=False))


def _kept_for_compaction(topic: OpenTopic[ReadView], first_kept: int) -> int:
    """The first ledger that stays, none behind the compacted view: a reader of the view goes on there.

    Counts of messages alone would let a ledger go that has markers alone.
    """
    if first_kept <= topic.state.first_ledger:
        return first_kept
    hold = _uncompacted(topic.view, topic.topic_id, topic.state)
    following = None if hold is None else log.next_entry(topic.view, topic.topic_id, hold.position)
    return first_kept if following is None else min(first_kept, following.ledger_id)


def _in_order(topic: OpenTopic[ReadView]) -> Iterator[LedgerInfo]:
    yield from log.closed_ledgers(topic.view, topic.topic_id, topic.state)
    yield log.open_ledger(topic.state)


def step(
    topic: OpenTopic[WriteBatch], limits: RetentionLimits, force: Force, *, trust_clock: bool = False
) -> Step:
    """Remove entries of trimmed ledgers, or if there are none, trim ledgers; bounded work in one store transaction."""
    removed = trim.purge_step(topic, TRIM_STEP_ENTRIES)
    if removed == TRIM_STEP_ENTRIES:
        return NO_STEP._replace(entries_removed=removed, has_more=True)
    done = trim_step(topic, trusted(topic.view, limits, trust_clock), force)
    removed += trim.purge_step(topic, TRIM_STEP_ENTRIES - removed)
    return done._replace(entries_removed=removed, has_more=done.has_more or removed > 0)


def trim_step(
    topic: OpenTopic[WriteBatch],
    limits: RetentionLimits,
    force: Force,
    ledgers_max: int = TRIM_STEP_LEDGERS,
) -> Step:
    """Trim ledgers, also ledgers that a hard limit lets go; the entries of trimmed ledgers stay."""
    now_ms = topic.view.now_ms
    if _must_catch_up(topic, limits, now_ms, ledgers_max):
        return NO_STEP._replace(has_more=True)
    if limits.hard != retention.TRIM:
        trimmed = drop(topic, plan(topic, limits, now_ms, ledgers_max))
        return NO_STEP._replace(trimmed=trimmed, has_more=trimmed.ledgers > 0)
    _roll_small(topic, limits)
    first_kept = plan(topic, limits, now_ms, ledgers_max)
    target = plan_hard(topic, limits, now_ms, ledgers_max)
    if target <= first_kept:
        trimmed = drop(topic, first_kept)
        return NO_STEP._replace(trimmed=trimmed, has_more=trimmed.ledgers > 0)
    return _trim_hard(topic, first_kept, target, force)


def _must_catch_up(
    topic: OpenTopic[WriteBatch], limits: RetentionLimits, now_ms: int, ledgers_max: int
) -> bool:
    """Raise the bounds of subscriptions that say less than a plan needs; whether that takes another step."""
    first_kept = plan(topic, limits, now_ms, ledgers_max, heeds_holds=False)
    if first_kept <= topic.state.first_ledger:
        return False
    through = None if limits.bytes is not None else Position(first_kept, -1)
    return behind.catch_up(topic.view, topic.topic_id, through, MARKS_RAISED_MAX)


def _roll_small(topic: OpenTopic[WriteBatch], limits: RetentionLimits) -> None:
    """Close an open ledger that is large beside a hard limit: whole ledgers go, and the limit is to hold."""
    state, most = topic.state, limits.as_hard(retention.TRIM).bytes
    is_beyond = most is not None and state.bytes - state.bytes_trimmed > most
    if most is not None and is_beyond and state.next_entry and open_bytes(state) * HARD_LEDGERS >= most:
        log.roll(topic, topic.view.now_ms)


def open_bytes(state: TopicState) -> int:
    """The bytes of the open ledger."""
    return state.bytes - state.ledger_bytes_before


def _trim_hard(topic: OpenTopic[WriteBatch], first_kept: int, target: int, force: Force) -> Step:
    """Free ledgers that are held back, as many as one step may."""
    from storage.subscription import hard_trimming

    if target > topic.state.ledger_id:
        # Markers of transactions that are aborted stand behind the last ledger that goes.
        log.roll(topic, topic.view.now_ms)
    topic, done = hard_trimming.with_name(topic), NO_STEP
    room = force.entries_max
    for ledger in list(log.closed_ledgers(topic.view, topic.topic_id, topic.state)):
        if not first_kept <= ledger.ledger_id < target:
            continue
        end = Position(ledger.ledger_id, ledger.entries - 1)
        freed = hard_trimming.free_through(topic, end, force.ends, room)
        done = done.plus(NO_STEP._replace(has_more=freed.has_more, lost=freed.lost, aborted=freed.aborted))
        room -= freed.entries
        if not freed.is_free:
            break
        first_kept = ledger.ledger_id + 1
        if room <= 0:
            break
    trimmed = drop(topic, first_kept)
    hard_trimming.note_losses(topic, trimmed, done.lost, force.ends.process())
    return done._replace(trimmed=trimmed, has_more=done.has_more or trimmed.ledgers > 0)


def trusted(view: ReadView, limits: RetentionLimits, trust_clock: bool) -> RetentionLimits:
    """The limits, without the limits of age where the wall clock was moved and no operator confirmed the move."""
    has_ages = limits.time_ms or limits.ttl_ms or limits.expire_after_ms
    if has_ages and not (trust_clock or clocks_agree(view)):
        return limits._replace(
            time_ms=None if limits.time_ms else limits.time_ms, ttl_ms=None, expire_after_ms=None
        )
    return limits


def drop(topic: OpenTopic[WriteBatch], first_kept: int) -> Trimmed:
    """Trim the ledgers below a given one, the open ledger too where that lies below; `trim.purge_step` follows."""
    state = topic.state
    if first_kept <= state.first_ledger:
        return NOTHING
    if first_kept > state.ledger_id:
        log.roll(topic, topic.view.now_ms)
    trimmed = trim.drop_ledgers(topic, first_kept)
    aborted.trim(topic)
    _forget_skipped(topic)
    return trimmed


def _forget_skipped(topic: OpenTopic[WriteBatch]) -> None:
    """Let dispatch start anew behind markers of skipped transactions that went with the ledgers unmet."""
    if not topic.view.has_records(AWAITED):
        return
    begin = Position(topic.state.first_ledger, -1)
    for subscription in behind.subscriptions_behind(topic.view, topic.topic_id, begin):
        cursor = cursors.load(topic.view, subscription.subscription_id)
        if cursor.skipped_txns:
            opened = OpenSubscription(topic.view, subscription)
            skipped_txns.clear(opened)
            opened.delayed.clear()
            cursor.read = cursor.mark_delete

"""Trim topics to their retention limits: which ledgers may go, and what holds the others back.

A closed ledger at the front goes when every message of it is acknowledged by every subscription, no open transaction
has a message there, and a limit lets it go: the retention time, if its newest message is older; the retention size, if
the acknowledged messages behind it are at least as large. With both limits, the first one reached is enough. A topic
without a subscription has nothing to wait for: readers hold nothing back. The open ledger is closed first where all of
it may go, so that a quiet topic is trimmed too. Invariants 5, 15 and 19.

All paths come here: a write on its way, `store gc`, `topics trim` and its dry run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from storage.disk.codec import key1
from storage.disk.schema import HEADS
from storage.disk.view import ReadView, WriteBatch
from storage.disk.wall_clock import clocks_agree
from storage.limits import SEQUENCES_LOOKED_AT, TRIM_STEP_ENTRIES, TRIM_STEP_LEDGERS
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.topic import log, retention, sequence_retention, trim
from storage.topic.compaction import compaction_state
from storage.topic.log import LedgerInfo
from storage.topic.open_topic import OpenTopic
from storage.topic.retention import RetentionLimits
from storage.topic.sequence_retention import Expiry
from storage.topic.state import TopicState
from storage.topic.trim import Trimmed
from storage.txn import aborted, record as records, uncommitted_entries
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.values.txn_id import TxnID


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
    """The effects of one step on a topic, and whether another step has work."""

    trimmed: Trimmed
    entries_removed: int
    has_more: bool


NOTHING = Trimmed(0, 0, 0)


def find_hold(view: ReadView, topic_id: int, state: TopicState) -> Hold | None:
    """The slowest subscription, the oldest open transaction or the compaction of a topic, whichever is furthest back;
    None if none holds a message.
    """
    # A subscription that has everything up to the transaction can do nothing about it.
    holds = (_oldest(view, topic_id), _uncompacted(view, topic_id, state), _slowest(view, topic_id, state))
    return min(
        (hold for hold in holds if hold is not None),
        key=lambda hold: log.messages_through(view, topic_id, state, hold.position),
        default=None,
    )


def _uncompacted(view: ReadView, topic_id: int, state: TopicState) -> Hold | None:
    """The log behind the compacted view, of a topic with a view or a threshold: kept until it is compacted."""
    compaction = compaction_state.load(view, topic_id)
    if compaction is None or not (compaction.has_view or compaction.threshold is not None):
        return None
    horizon = compaction.horizon or Position(state.first_ledger, -1)
    if log.messages_through(view, topic_id, state, horizon) >= state.messages:
        return None
    following = log.next_entry(view, topic_id, horizon)
    return None if following is None else Hold("compaction", str(horizon), horizon, following.publish_time)


def _slowest(view: ReadView, topic_id: int, state: TopicState) -> Hold | None:
    marks = [
        (cursors.load(view, subscription.subscription_id).mark_delete, subscription.name)
        for subscription in subscriptions.every(view, topic_id)
    ]
    position, name = min(marks, default=(state.last_confirmed, ""))
    # Behind the last message there may be markers, which no consumer has passed yet; they hold nothing.
    if log.messages_through(view, topic_id, state, position) >= state.messages:
        return None
    following = log.next_entry(view, topic_id, position)
    return None if following is None else Hold("subscription", name, position, following.publish_time)


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
    state = topic.state
    messages, size, free = state.messages_trimmed, state.bytes_trimmed, None
    for ledger in _in_order(topic) if not limits.keeps_everything else ():
        messages, size = messages + ledger.messages, size + ledger.bytes
        if ledger.entries == 0 or ledger.ledger_id >= state.first_ledger + ledgers_max:
            return ledger.ledger_id
        is_old = limits.time_ms is not None and (
            limits.time_ms == 0
            or trim.newest_ms(topic.view, topic.topic_id, ledger) + limits.time_ms <= now_ms
        )
        if not is_old and limits.bytes is None:
            return ledger.ledger_id
        free = free or _Free(topic, heeds_holds)
        is_large = limits.bytes is not None and max(free.bytes - size, 0) >= limits.bytes
        if messages > free.messages or not (is_old or is_large):
            return ledger.ledger_id
    return state.first_ledger if limits.keeps_everything else state.ledger_id + 1


def _in_order(topic: OpenTopic[ReadView]) -> Iterator[LedgerInfo]:
    yield from log.closed_ledgers(topic.view, topic.topic_id, topic.state)
    yield log.open_ledger(topic.state)


def step(topic: OpenTopic[WriteBatch], limits: RetentionLimits, *, trust_clock: bool = False) -> Step:
    """Remove entries of trimmed ledgers, or else trim ledgers: work of bounded size within one store transaction."""
    removed = trim.purge_step(topic, TRIM_STEP_ENTRIES)
    if removed == TRIM_STEP_ENTRIES:
        return Step(NOTHING, removed, has_more=True)
    batch = topic.view
    limits = trusted(batch, limits, trust_clock)
    trimmed = drop(topic, plan(topic, limits, batch.now_ms, TRIM_STEP_LEDGERS))
    removed += trim.purge_step(topic, TRIM_STEP_ENTRIES - removed)
    return Step(trimmed, removed, has_more=bool(trimmed.ledgers or removed))


def trusted(view: ReadView, limits: RetentionLimits, trust_clock: bool) -> RetentionLimits:
    """The limits without the retention time where the wall clock was moved and nobody confirmed it."""
    if limits.time_ms and not (trust_clock or clocks_agree(view)):
        return limits._replace(time_ms=None)
    return limits


def drop(topic: OpenTopic[WriteBatch], first_kept: int) -> Trimmed:
    """Trim the ledgers below one that stays, the open ledger too if it is below; `trim.purge_step` follows."""
    state = topic.state
    if first_kept <= state.first_ledger:
        return NOTHING
    if first_kept > state.ledger_id:
        log.roll(topic, topic.view.now_ms)
    trimmed = trim.drop_ledgers(topic, first_kept)
    aborted.trim(topic)
    return trimmed


class Trimmer:
    """Trims topics on the way of other writes: a few topics at a time, in turn."""

    __slots__ = ("_next_sequence", "_next_topic")

    def __init__(self) -> None:
        self._next_topic: int | None = None
        self._next_sequence: bytes | None = None

    def trim_some(self, batch: WriteBatch, topics: int) -> bool:
        """Look at some topics, and do at most one step; whether another step has work.

        A process begins at a topic of its own, so that many short commands reach all topics.
        """
        if self._next_topic is None:
            self._next_topic = batch.superblock.commits % (batch.superblock.last_topic + 1)
        for topic_id in _topics_from(batch, self._next_topic, topics):
            self._next_topic = topic_id + 1
            done = step(OpenTopic.load(batch, topic_id), retention.of_topic(batch, topic_id))
            if done.has_more:
                self._next_topic = topic_id
                return True
        self._forget_some_sequences(batch)
        return False

    def _forget_some_sequences(self, batch: WriteBatch) -> None:
        """Look at the next ranges of sequence ids, and forget ranges past the retention."""
        after = self._next_sequence
        if after is None:
            after = key1(batch.superblock.commits % (batch.superblock.last_topic + 1))
        expiry = Expiry.by_setting(batch)
        keys, following = sequence_retention.find_old(batch, after, expiry, SEQUENCES_LOOKED_AT)
        sequence_retention.expire(batch, keys, expiry)
        self._next_sequence = following or b"\0"


def _topics_from(view: ReadView, start: int, count: int) -> list[int]:
    """Ids of the next topics, in turn."""

    def ids(first: int) -> Iterator[int]:
        for key in view.keys(HEADS, start=key1(first)):
            topic_id = int.from_bytes(key, "big")
            if topic_id >= 1 << 63:
                return
            yield topic_id

    turn = list(islice(ids(max(start, 1)), count))
    return turn + [topic_id for topic_id in islice(ids(1), count - len(turn)) if topic_id not in turn]

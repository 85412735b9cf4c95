"""Forecast what limits let go of: ledgers, messages that nobody has acknowledged, subscriptions, transactions.

Limits that heed every holder are forecast from a view. Others take the steps themselves, in a rehearsal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from storage.disk.view import ReadView, WriteBatch
from storage.engine import Engine
from storage.subscription import topic_upkeep, trimming
from storage.subscription.trimming import NO_STEP, Step
from storage.topic import catalogue as topics, log, retention
from storage.topic.compaction import compaction_state
from storage.topic.open_topic import OpenTopic
from storage.topic.retention import RetentionLimits
from storage.topic.sequence_retention import KeptMessages
from storage.topic.trim import Trimmed
from storage.txn.reaper import EVERY
from storage.values.named_tuple import NamedTuple

LimitsOf = Callable[[ReadView, int], RetentionLimits]
"""The limits of the topic of an id."""


_NO_MESSAGES: Final = KeptMessages(0, is_trimmed=False, is_empty=True)


class LetGo(NamedTuple):
    """The effects of limits, in numbers over all topics concerned.

    Attributes:
        has_more: there is more that was not counted.
    """

    ledgers: int
    messages: int
    bytes: int
    messages_lost: int
    messages_expired: int
    subscriptions_expired: int
    transactions_aborted: int
    has_more: bool

    @classmethod
    def counted(cls, done: Step) -> LetGo:
        """The numbers of all steps."""
        lost, expired = (sum(loss.messages for loss in losses) for losses in (done.lost, done.expired))
        return cls(*done.trimmed, lost, expired, len(done.deleted), len(done.aborted), done.has_more)


class Forecast(NamedTuple):
    """The sum of all steps, and by the id of a topic the messages that each topic will have then."""

    step: Step
    kept: dict[int, KeptMessages]


def forecast(
    engine: Engine,
    name: str | None = None,
    limits_of: LimitsOf | None = None,
    trust_clock: bool = False,
    compacted: Collection[int] = (),
) -> Forecast:
    """The effects of the limits of one topic, or of all, without writes meanwhile.

    Args:
        limits_of: limits to be set, whose effects are counted up to a bound, for a quick answer about a setting; None
            for those that are set, counted whole.
        compacted: the ids of topics that are compacted before.

    Raises:
        TopicNotFound
    """
    stepwise, kept = list[int](), dict[int, KeptMessages]()
    total = NO_STEP
    with engine.connection.view() as view:
        # A run starts a clock that stands after a reboot, and from then on the clocks agree.
        trust_clock = trust_clock or not view.is_clock_running
        for entry in topics.every(view) if name is None else (topics.get(view, name),):
            topic = OpenTopic.load(view, entry.topic_id, entry.name)
            limits = (limits_of or retention.of_topic)(view, entry.topic_id)
            if topic_upkeep.acknowledges(limits) or entry.topic_id in compacted:
                stepwise.append(topic.topic_id)
            else:
                step, kept[topic.topic_id] = _planned(topic, trimming.trusted(view, limits, trust_clock))
                total = total.plus(step)
    has_more = False
    for topic_id in stepwise:
        is_compacted = topic_id in compacted
        step, kept[topic_id] = _dropped(engine, topic_id, limits_of, trust_clock, is_compacted)
        total = total.plus(step)
        has_more |= step.has_more
    return Forecast(total._replace(has_more=has_more), kept)


def _planned(topic: OpenTopic[ReadView], limits: RetentionLimits) -> tuple[Step, KeptMessages]:
    view, topic_id, state, trimmed = topic.view, topic.topic_id, topic.state, trimming.NOTHING
    first_kept = trimming.plan(topic, limits, view.clock.wall_ms(), 1 << 62)
    for ledger in log.ledgers(view, topic_id, state) if first_kept > state.first_ledger else ():
        if ledger.ledger_id < first_kept:
            trimmed = trimmed.plus(Trimmed(1, ledger.messages, ledger.bytes))
    before = KeptMessages.load(view, topic_id)
    kept = KeptMessages(
        max(first_kept, before.first_ledger),
        before.is_trimmed or first_kept > before.first_ledger,
        before.is_empty or first_kept > state.ledger_id,
    )
    return NO_STEP._replace(trimmed=trimmed), kept


def _dropped(
    engine: Engine, topic_id: int, limits_of: LimitsOf | None, trust_clock: bool, is_compacted: bool
) -> tuple[Step, KeptMessages]:
    take = topic_upkeep.all_steps if limits_of is None else topic_upkeep.first_steps

    def change(batch: WriteBatch) -> tuple[Step, KeptMessages]:
        if not topics.exists(batch, topic_id):
            return NO_STEP, _NO_MESSAGES
        limits = trimming.trusted(batch, (limits_of or retention.of_topic)(batch, topic_id), trust_clock)
        topic = OpenTopic.load(batch, topic_id)
        if is_compacted:
            compaction_state.load_or_add(batch, topic_id).horizon = topic.state.max_read
        done = take(topic, limits, engine.force)
        return done, KeptMessages.load(batch, topic_id)

    return engine.connection.rehearse(change, naming=EVERY)

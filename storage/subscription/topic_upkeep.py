"""The upkeep of topics by their limits: expired messages, forgotten subscriptions, and ledgers past the retention.

Every path does the same steps of bounded size: writes on their way, a few topics at a time; `store gc` for all topics;
`topics trim` for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from storage.disk.codec import key1
from storage.disk.schema import HEADS
from storage.disk.view import ReadView, WriteBatch
from storage.limits import FORECAST_STEPS_MAX, SEQUENCES_LOOKED_AT
from storage.subscription import trimming
from storage.subscription.trimming import NO_STEP, Force, Step
from storage.topic import retention, sequence_retention
from storage.topic.open_topic import OpenTopic
from storage.topic.retention import RetentionLimits
from storage.topic.sequence_retention import Expiry

_UNBOUNDED: Final = 1 << 62


def acknowledges(limits: RetentionLimits) -> bool:
    """Whether limits let go of messages that a subscription has not acknowledged."""
    lives = limits.ttl_ms is not None or limits.expire_after_ms is not None
    return lives or not limits.as_hard(retention.TRIM).keeps_everything


def step(topic: OpenTopic[WriteBatch], force: Force, *, is_run: bool, trust_clock: bool = False) -> Step:
    """Do one step on a topic: work of bounded size within one store transaction.

    Args:
        is_run: the step is of a run over the topic, not on the way of a write.
    """
    limits = retention.of_topic(topic.view, topic.topic_id)
    done = _end_lives(topic, trimming.trusted(topic.view, limits, trust_clock), force, is_run=is_run)
    if done.has_more:
        return done
    return done.plus(trimming.step(topic, limits, force, trust_clock=trust_clock))


def trim_step(topic: OpenTopic[WriteBatch], limits: RetentionLimits, force: Force) -> Step:
    """The same of a run, with limits that the clocks allow; the entries of trimmed ledgers stay."""
    done = _end_lives(topic, limits, force, is_run=True)
    return done if done.has_more else done.plus(trimming.trim_step(topic, limits, force))


def all_steps(topic: OpenTopic[WriteBatch], limits: RetentionLimits, force: Force) -> Step:
    """Do every step within one store transaction, for a dry run; the entries of trimmed ledgers stay."""
    force, total = force._replace(entries_max=_UNBOUNDED), NO_STEP._replace(has_more=True)
    while total.has_more:
        total = total.plus(_end_lives(topic, limits, force.after(total), is_run=True))
        if not total.has_more:
            total = total.plus(trimming.trim_step(topic, limits, force, _UNBOUNDED))
    return total


def first_steps(topic: OpenTopic[WriteBatch], limits: RetentionLimits, force: Force) -> Step:
    """Do some steps within one store transaction, of bounded work together; whether there are more."""
    total = NO_STEP._replace(has_more=True)
    for _ in range(FORECAST_STEPS_MAX):
        if total.has_more:
            total = total.plus(trim_step(topic, limits, force.after(total)))
    return total


def _end_lives(topic: OpenTopic[WriteBatch], limits: RetentionLimits, force: Force, *, is_run: bool) -> Step:
    """Acknowledge messages past their time to live, or delete a subscription past its time."""
    done = NO_STEP
    if limits.ttl_ms is None and limits.expire_after_ms is None:
        return done
    from storage.subscription import message_ttl

    if limits.ttl_ms is not None:
        expired, has_more = message_ttl.step(topic, limits.ttl_ms, force.entries_max)
        done = done._replace(expired=expired, has_more=has_more)
        if not has_more:
            message_ttl.note(topic, force.ends.process(), is_run=is_run)
    if limits.expire_after_ms is not None and not done.has_more:
        done = done.plus(_expire(topic, limits.expire_after_ms, force, is_run=is_run))
    return done


def _expire(topic: OpenTopic[WriteBatch], expire_after_ms: int, force: Force, *, is_run: bool) -> Step:
    """Delete a subscription past its time; a run looks at some subscriptions in each step."""
    from storage.subscription import subscription_expiry

    process = force.ends.process()
    if not is_run:
        deleted = subscription_expiry.step_on_the_way(topic, expire_after_ms, process)
        return NO_STEP._replace(deleted=[deleted] if deleted else [], has_more=deleted is not None)
    looked = subscription_expiry.step(topic, expire_after_ms, process, force.looked_through)
    has_more = looked.through != subscription_expiry.EVERY_NAME
    deleted_now = [looked.deleted] if looked.deleted else []
    return NO_STEP._replace(deleted=deleted_now, has_more=has_more, looked_through=looked.through)


class Upkeep:
    """Keeps topics within their limits on the way of other writes: a few topics at a time, in turn.

    In between it forgets sequence ids of producer names that are long gone.
    """

    __slots__ = ("_force", "_next_sequence", "_next_topic")

    def __init__(self, force: Force) -> None:
        self._force = force
        self._next_topic: int | None = None
        self._next_sequence: bytes | None = None

    def keep_some(self, batch: WriteBatch, topics: int) -> bool:
        """Look at some topics, and do at most one step; whether another step has work.

        A process begins at a topic of its own, so that many short commands reach all topics.
        """
        if self._next_topic is None:
            self._next_topic = batch.superblock.commits % (batch.superblock.last_topic + 1)
        for topic_id in _topics_from(batch, self._next_topic, topics):
            self._next_topic = topic_id + 1
            done = step(OpenTopic.load(batch, topic_id), self._force, is_run=False)
            if done.has_more:
                self._next_topic = topic_id
                return True
        self._forget_some_sequences(batch)
        return False

    def make_room(self, batch: WriteBatch, topic_id: int) -> bool:
        """Do a step on a topic that was full; whether the topic takes messages now."""
        from storage.subscription import full_topic

        topic = OpenTopic.load(batch, topic_id)
        step(topic, self._force, is_run=False)
        return full_topic.has_room(topic)

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

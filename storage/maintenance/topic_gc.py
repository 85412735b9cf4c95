"""Collect garbage of topics: messages past their limits, and the entries of trimmed ledgers.

Finding takes views, removing takes store transactions of bounded size; after a kill the next run goes on.
"""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.disk.view import ReadView, WriteBatch
from storage.engine import Engine
from storage.subscription import topic_upkeep, trimming
from storage.subscription.trimming import NO_STEP, Step
from storage.topic import catalogue as topics, retention, trim
from storage.topic.open_topic import OpenTopic
from storage.topic.retention import RetentionLimits
from storage.txn import aborted_blocks

_SEGMENTS_AT_ONCE = 200
"""Segments of an aborted set that one store transaction reads (2.4 MiB)."""


def collect(engine: Engine, trust_clock: bool = False) -> Step:
    """Hold every topic to its limits, and remove the entries of trimmed ledgers; return the sum of all steps.

    Args:
        trust_clock: the operator has checked the wall clock, however far it was moved.
    """
    with engine.connection.view() as view:
        with_work = [topic.topic_id for topic in _every(view) if _has_work(topic)]
    total = NO_STEP
    for topic_id in with_work:
        done = NO_STEP._replace(has_more=True)
        while done.has_more:

            def change(batch: WriteBatch, topic_id: int = topic_id, before: Step = done) -> Step:
                if not topics.exists(batch, topic_id):
                    return NO_STEP
                opened, force = OpenTopic.load(batch, topic_id), engine.force.after(before)
                return topic_upkeep.step(opened, force, is_run=True, trust_clock=trust_clock)

            done = engine.connection.write(change, share=ReserveShare.WHOLE)
            total = total.plus(done)
    return total


def complete_aborted_blocks(connection: Connection) -> None:
    """Write the blocks that the aborted sets of an earlier release lack, so that readers find their way in them."""
    with connection.view() as view:
        incomplete = [
            topic.topic_id
            for topic in _every(view)
            if not aborted_blocks.is_complete(view, topic.topic_id, topic.state.aborted_segment)
        ]
    for topic_id in incomplete:

        def change(batch: WriteBatch, topic_id: int = topic_id) -> bool:
            if not topics.exists(batch, topic_id):
                return False
            open_segment = OpenTopic.load(batch, topic_id).state.aborted_segment
            return aborted_blocks.complete(batch, topic_id, open_segment, _SEGMENTS_AT_ONCE)

        while connection.write(change, share=ReserveShare.WHOLE):
            pass


def _has_work(topic: OpenTopic[ReadView]) -> bool:
    limits = retention.of_topic(topic.view, topic.topic_id)
    return (
        topic_upkeep.acknowledges(limits)
        or _plan(topic, limits, trust_clock=True) > topic.state.first_ledger
        or bool(trim.remains(topic.view, topic.topic_id, topic.state, 1))
    )


def _every(view: ReadView) -> list[OpenTopic[ReadView]]:
    return [OpenTopic.load(view, topic.topic_id, topic.name) for topic in topics.every(view)]


def _plan(topic: OpenTopic[ReadView], limits: RetentionLimits, trust_clock: bool) -> int:
    limits = trimming.trusted(topic.view, limits, trust_clock)
    return trimming.plan(topic, limits, topic.view.clock.wall_ms(), 1 << 62)

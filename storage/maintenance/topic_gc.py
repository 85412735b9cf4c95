"""Collect garbage of topics: ledgers past their retention, and the entries of trimmed ledgers.

Finding takes views, removing takes store transactions of bounded size; after a kill the next run goes on.
"""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.disk.view import ReadView, WriteBatch
from storage.subscription import trimming
from storage.subscription.trimming import NOTHING, Step
from storage.topic import catalogue as topics, log, retention, trim
from storage.topic.open_topic import OpenTopic
from storage.topic.sequence_retention import KeptMessages
from storage.topic.trim import Trimmed
from storage.txn import aborted_blocks

_SEGMENTS_AT_ONCE = 200
"""Segments of an aborted set that one store transaction reads (2.4 MiB)."""


def forecast(connection: Connection, trust_clock: bool = False) -> Trimmed:
    """The ledgers that `collect` would trim now without writes meanwhile, from one view."""
    total = NOTHING
    with connection.view() as view:
        # `collect` starts a clock that stands after a reboot, and from then on the clocks agree.
        trust_clock = trust_clock or not view.is_clock_running
        for topic in _every(view):
            first_kept, state = _plan(topic, trust_clock), topic.state
            for ledger in (*log.closed_ledgers(view, topic.topic_id, state), log.open_ledger(state)):
                if ledger.ledger_id < first_kept:
                    total = total.plus(Trimmed(1, ledger.messages, ledger.bytes))
    return total


def kept_after(view: ReadView, topic_id: int, trust_clock: bool) -> KeptMessages:
    """The messages that a topic will have after `collect`."""
    topic = OpenTopic.load(view, topic_id)
    kept, first_kept = KeptMessages.load(view, topic_id), _plan(topic, trust_clock)
    return KeptMessages(
        first_kept,
        kept.is_trimmed or first_kept > kept.first_ledger,
        kept.is_empty or first_kept > topic.state.ledger_id,
    )


def collect(connection: Connection, trust_clock: bool = False) -> Trimmed:
    """Trim every topic to its retention limits, and remove the entries of trimmed ledgers.

    Args:
        trust_clock: the operator has checked the wall clock, however far it was moved.
    """
    with connection.view() as view:
        with_work = [
            topic.topic_id
            for topic in _every(view)
            if _plan(topic, trust_clock=True) > topic.state.first_ledger
            or trim.remains(view, topic.topic_id, topic.state, 1)
        ]
    total = NOTHING
    for topic_id in with_work:

        def change(batch: WriteBatch, topic_id: int = topic_id) -> Step:
            if not topics.exists(batch, topic_id):
                return Step(NOTHING, 0, has_more=False)
            limits = retention.of_topic(batch, topic_id)
            return trimming.step(OpenTopic.load(batch, topic_id), limits, trust_clock=trust_clock)

        step = Step(NOTHING, 0, has_more=True)
        while step.has_more:
            step = connection.write(change, share=ReserveShare.WHOLE)
            total = total.plus(step.trimmed)
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


def _every(view: ReadView) -> list[OpenTopic[ReadView]]:
    return [OpenTopic.load(view, topic.topic_id, topic.name) for topic in topics.every(view)]


def _plan(topic: OpenTopic[ReadView], trust_clock: bool) -> int:
    limits = trimming.trusted(topic.view, retention.of_topic(topic.view, topic.topic_id), trust_clock)
    return trimming.plan(topic, limits, topic.view.clock.wall_ms(), 1 << 62)

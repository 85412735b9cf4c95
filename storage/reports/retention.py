"""The retention limits of topics, and the objects that hold messages back from trimming."""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.reports.facts import RetentionHeld
from storage.subscription import trimming
from storage.subscription.trimming import Hold
from storage.topic import catalogue as topics, log, retention, state as topic_states
from storage.topic.open_topic import OpenTopic
from storage.topic.retention import RetentionLimits
from storage.values.named_tuple import NamedTuple


class TopicRetention(NamedTuple):
    """The limits in force, those of the topic's own record, and the hold, from one view.

    Attributes:
        has_letters: whether the topic has dead letters, whose limits the store sets apart.
    """

    topic: str
    in_force: RetentionLimits
    own: RetentionLimits
    held_by: Hold | None
    has_letters: bool


def held_topics(view: ReadView) -> list[RetentionHeld]:
    """The topics that keep messages past their retention."""
    rows: list[RetentionHeld] = []
    for topic in topics.every(view) if retention.are_set(view) else ():
        opened = OpenTopic.load(view, topic.topic_id, topic.name)
        limits = trimming.trusted(view, retention.of_topic(view, topic.topic_id), trust_clock=False)
        due, free = (
            trimming.plan(opened, limits, view.clock.wall_ms(), 1 << 62, heeds_holds=heeds_holds)
            for heeds_holds in (False, True)
        )
        hold = trimming.find_hold(view, topic.topic_id, opened.state) if due > free else None
        if hold is not None:
            kept = [
                ledger
                for ledger in log.ledgers(view, topic.topic_id, opened.state)
                if free <= ledger.ledger_id < due
            ]
            messages, size = sum(ledger.messages for ledger in kept), sum(ledger.bytes for ledger in kept)
            rows.append(RetentionHeld(topic.full_name, topic.name, messages, size, hold))
    return rows


def topic_retention(connection: Connection, name: str) -> TopicRetention:
    """Return the retention of one topic.

    Raises:
        TopicNotFound, InvalidName
    """
    with connection.view() as view:
        topic = topics.get(view, name)
        hold = trimming.find_hold(view, topic.topic_id, topic_states.load(view, topic.topic_id))
        in_force, own = retention.of_topic(view, topic.topic_id), retention.own(view, topic.topic_id)
        has_letters = retention.has_letters(view, topic.topic_id)
        return TopicRetention(topic.full_name, in_force, own, hold, has_letters)

"""The retention limits of a topic, and the object that holds messages back from trimming."""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.subscription import trimming
from storage.subscription.trimming import Hold
from storage.topic import catalogue as topics, retention, state as topic_states
from storage.topic.retention import RetentionLimits
from storage.values.named_tuple import NamedTuple


class TopicRetention(NamedTuple):
    """The limits in force, those of the topic's own record, and the hold, from one view."""

    topic: str
    in_force: RetentionLimits
    own: RetentionLimits
    held_by: Hold | None


def topic_retention(connection: Connection, name: str) -> TopicRetention:
    """Return the retention of one topic.

    Raises:
        TopicNotFound, InvalidName
    """
    with connection.view() as view:
        topic = topics.get(view, name)
        hold = trimming.find_hold(view, topic.topic_id, topic_states.load(view, topic.topic_id))
        in_force, own = retention.of_topic(view, topic.topic_id), retention.own(view, topic.topic_id)
        return TopicRetention(topic.full_name, in_force, own, hold)

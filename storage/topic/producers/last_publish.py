"""The last publish of each session, recorded without a write for each message.

The topic's state has the session and time of the latest publish. A session's own record gets the time when a different
session publishes next.
"""

from __future__ import annotations

from storage.disk.view import WriteBatch
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import session as sessions
from storage.topic.producers.epoch import OpenTransactions
from storage.topic.producers.session import ProducerSession
from storage.topic.producers.session_end import end_former_owner
from storage.topic.state import TopicState


def note_publisher(
    topic: OpenTopic[WriteBatch], number: int, txn: int, transactions: OpenTransactions
) -> None:
    """Note which session publishes next, before the message is appended. The topic must be open to that session.

    Without effect, and so not called, for the session that `TopicState.has_publisher` confirms.

    Args:
        number: of the session; 0 for a producer that is not connected between sends.
        txn: the transaction of the publish; 0 for none.
    """
    state = topic.state
    if state.owner_session not in (0, number):
        why = "the owner whose messages it held was gone when others published"
        end_former_owner(topic, transactions, txn, why)
    if state.publish_session != number:
        before = (
            sessions.find(topic.view, topic.topic_id, state.publish_session)
            if state.publish_session
            else None
        )
        if before is not None:
            before.last_publish_ms = state.last_publish_ms
            sessions.save(topic.view, before)
        state.publish_session = number


def last_publish_ms(state: TopicState, session: ProducerSession) -> int | None:
    """The time of a session's last publish; None if the session has published nothing."""
    return state.last_publish_ms if state.publish_session == session.number else session.last_publish_ms

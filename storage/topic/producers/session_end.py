"""The end of a producer's session: closed, found dead, expired, or fenced."""

from __future__ import annotations

from storage.disk.codec import key2
from storage.disk.schema import PRODUCERS
from storage.disk.view import WriteBatch
from storage.process.identity import ProcessIdentity
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import ownership, session as sessions, session_index
from storage.topic.producers.epoch import OpenTransactions
from storage.topic.producers.session import ProducerSession


def remove_session(
    topic: OpenTopic[WriteBatch],
    session: ProducerSession,
    how: str,
    closed_by: ProcessIdentity | None = None,
) -> None:
    """Delete the record of a session.

    Args:
        how: closed, dead, expired, fenced or restored (by any new incarnation); only a dead or expired owner may
            resume.
        closed_by: the process of the operator who closes the session; None for its owner.
    """
    topic.view.delete(PRODUCERS, key2(session.topic_id, session.number))
    session_index.leave(topic.view, session)
    topic.state.session_changes += 1
    if session.is_owner:
        successor = topic.state.epoch + 1 if how == "fenced" else None
        ownership.end(topic, how, successor, closed_by)
        if how not in ("dead", "expired"):
            topic.state.owner_session = 0


def leave(batch: WriteBatch, departing: ProducerSession, closed_by: ProcessIdentity | None = None) -> None:
    """End a session, connected or waiting, for good, if the session is still recorded; args as `remove_session`."""
    session = sessions.find(batch, departing.topic_id, departing.number)
    if session is not None and session.is_same(departing):
        remove_session(OpenTopic.load(batch, departing.topic_id), session, "closed", closed_by)


def lose(batch: WriteBatch, owner: ProducerSession, transactions: OpenTransactions) -> None:
    """End the last owner, whose lease has expired, together with the owner's open transactions, for good."""
    topic = OpenTopic.load(batch, owner.topic_id)
    if topic.state.owner_session == owner.number:
        end_former_owner(topic, transactions, 0, "its producer's lease ended, and others wait")


def end_former_owner(
    topic: OpenTopic[WriteBatch], transactions: OpenTransactions, spare: int, why: str
) -> None:
    """Fence the last owner, dead or expired, without a new epoch: a different producer publishes or waits.

    Messages that the owner sent in open transactions must not appear in the past of the next publisher. Under the
    owner's epoch no different producer has published yet, so every open transaction on the topic is the owner's,
    except the transaction of the publisher itself.
    """
    owner = sessions.find(topic.view, topic.topic_id, topic.state.owner_session)
    if owner is not None:
        remove_session(topic, owner, "dead" if owner.lease else "expired")
    topic.state.owner_session = 0
    transactions.end_fenced(topic.view, topic.topic_id, topic.state.epoch, spare, why)

"""Making producers: one that connects, one that is connected during its sends only, one by the session of another."""

from __future__ import annotations

from storage.client.connect import ConnectOptions, check_is_of, connect
from storage.client.producer import Producer
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.errors import InvalidValue, SessionNotFound
from storage.topic import catalogue as topics
from storage.topic.catalogue import Topic
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import errors, ownership as owners, session as sessions
from storage.topic.producers.credential import Borrowed, Connected, Passing
from storage.topic.producers.session import ProducerSession, Token
from storage.txn.coordinator import Coordinator
from storage.txn.fence import Fence


def create(connection: Connection, coordinator: Coordinator, ask: ConnectOptions) -> Producer:
    """A producer that is connected as asked.

    Raises:
        as `connect`
    """
    topic, session = connect(connection, coordinator, ask)
    return Producer(connection, coordinator, topic, Connected(topic, session))


def create_passing(connection: Connection, coordinator: Coordinator, ask: ConnectOptions) -> Producer:
    """A Shared producer that is connected during each send and not in between.

    Raises:
        TopicNotFound, InvalidName, InvalidValue
    """
    mode, name = ask.request.mode, ask.request.name
    if mode.is_exclusive:
        raise InvalidValue(f"access mode {mode.value} needs a producer that stays connected")
    with connection.view() as view:
        topic = topics.find(view, ask.topic) if ask.create_topic else topics.get(view, ask.topic)
    topic = topic or connection.write(ask.topic_in)
    return Producer(connection, coordinator, topic, Passing(topic, name))


def borrow(connection: Connection, coordinator: Coordinator, name: str, text: str) -> Producer:
    """A producer that publishes through a session of a topic which somebody else holds.

    Raises:
        TopicNotFound
        InvalidValue: it is no token.
        SessionNotFound: no such session was ever on this topic.
        ProducerFenced: it has ended.
    """
    token = Token(text)
    with connection.view() as view:
        topic = topics.get(view, name)
        check_is_of(view, topic, token)
        session = sessions.find(view, topic.topic_id, token.number) or _past(view, topic, token)
        opened = OpenTopic(view, topic.topic_id, topic.name)
        if session is None and token.number <= view.superblock.last_producer:
            why = "the session was closed, or the topic was taken over"
            raise errors.fenced(opened, f"of session {token.number}", None, why)
        if session is not None and not token.names(session):
            why = "its session was connected again, by another token"
            raise errors.fenced(opened, session.name, session.epoch, why)
        if session is None:
            raise SessionNotFound(
                f"there is no session {token.number} on topic {topic.name} with that token",
                hint=f"`txnctl producers list {topic.name}` shows the sessions; `producers open` opens one.",
                topic=topic.name,
            )
    if not session.keeps_sequences:
        raise InvalidValue(
            f"session {session.number} belongs to a nameless Shared producer: only its own process publishes by it",
            hint="Give that producer a name, or open a session with `txnctl producers open`.",
        )
    lent = Borrowed(topic, token, session, connection.owner, Fence(coordinator, connection.owner))
    return Producer(connection, coordinator, topic, lent)


def _past(view: ReadView, topic: Topic, token: Token) -> ProducerSession | None:
    """An owner that is connected no longer."""
    for ownership in owners.every(view, topic.topic_id):
        if token.names(ownership.session):
            return ownership.session
    return None

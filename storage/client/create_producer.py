"""Making producers: connected for good, connected during each send, or by the session of a second process."""

from __future__ import annotations

from storage.actions import Action, Hint
from storage.client.connect_options import ConnectOptions
from storage.client.producer import Producer
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.errors import InvalidValue, SessionNotFound
from storage.topic import catalogue as topics
from storage.topic.catalogue import Topic
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import errors, ownership as owners, session as sessions
from storage.topic.producers.publish_check import Borrowed, Connected, Passing
from storage.topic.producers.session import ProducerSession, Token
from storage.txn.coordinator import Coordinator
from storage.txn.fenced_txns import FencedTransactions


def create(connection: Connection, coordinator: Coordinator, options: ConnectOptions) -> Producer:
    """Make a producer that is connected until it is closed, at once or by a first message that creates its topic.

    Raises:
        as `connect`
    """
    from storage.client.admission_wait import connect

    if options.create_late and options.may_create_late(connection):
        return _creating(connection, coordinator, options, connects=True)
    topic, session = connect(connection, coordinator, options)
    return Producer(connection, coordinator, topic, Connected(topic, session))


def create_passing(connection: Connection, coordinator: Coordinator, options: ConnectOptions) -> Producer:
    """Make a Shared producer that is connected during each send and not in between.

    Raises:
        TopicNotFound, InvalidName, InvalidValue
    """
    mode, name = options.request.mode, options.request.name
    if mode.is_exclusive:
        raise InvalidValue(f"access mode {mode.value} needs a producer that stays connected")
    if options.may_create_late(connection):
        return _creating(connection, coordinator, options, connects=False)
    with connection.view() as view:
        topic = topics.get(view, options.topic)
    return Producer(connection, coordinator, topic, Passing(topic, name))


def _creating(
    connection: Connection, coordinator: Coordinator, options: ConnectOptions, *, connects: bool
) -> Producer:
    """Make a producer whose first message creates the topic."""
    from storage.client.topic_creation import TopicCreation, Unconnected

    creation = TopicCreation(connection, coordinator, options, connects=connects)
    connection.check_writable()
    return Producer(
        connection, coordinator, topics.unborn(options.topic), Unconnected(options.request), creation
    )


def borrow(connection: Connection, coordinator: Coordinator, name: str, text: str) -> Producer:
    """Make a producer that publishes through a session held elsewhere, by a lease or a second process.

    Args:
        text: the token of the session.

    Raises:
        TopicNotFound
        InvalidValue: the text is no token, or the session belongs to a nameless Shared producer.
        SessionNotFound: no such session was ever on this topic.
        ProducerFenced: the session has ended.
    """
    from storage.client.admission_wait import check_is_of

    token = Token(text)
    with connection.view() as view:
        topic = topics.get(view, name)
        check_is_of(view, topic, token)
        session = sessions.find(view, topic.topic_id, token.number) or _past(view, topic, token)
        opened = OpenTopic.load(view, topic.topic_id, topic.name)
        if session is None and token.number <= view.superblock.last_producer:
            why = "the session was closed, or the topic was taken over"
            raise errors.fenced(opened, f"of session {token.number}", None, why)
        if session is not None and not token.names(session):
            why = "its session was connected again, by another token"
            raise errors.fenced(opened, session.name, session.epoch, why)
        if session is None:
            raise SessionNotFound(
                f"there is no session {token.number} on topic {topic.name} with that token",
                hint=Hint(
                    "`{}` shows the sessions; `{}` opens one.",
                    Action("store.reports.list_producers", topic.name),
                    Action("store.open_session", topic.name),
                ),
                topic=topic.name,
            )
    if not session.keeps_sequences:
        raise InvalidValue(
            f"session {session.number} belongs to a nameless Shared producer: only its own process publishes by it",
            hint=Hint(
                "Give that producer a name, or open a session with `{}`.",
                Action("store.open_session", topic.name),
            ),
        )
    borrowed = Borrowed(
        topic, token, session, connection.identity, FencedTransactions(coordinator, connection.identity)
    )
    return Producer(connection, coordinator, topic, borrowed)


def _past(view: ReadView, topic: Topic, token: Token) -> ProducerSession | None:
    """The session of a former owner of the topic."""
    for ownership in owners.every(view, topic.topic_id):
        if token.names(ownership.session):
            return ownership.session
    return None

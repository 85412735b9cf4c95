"""Producers of a topic: connected and waiting sessions, past owners, and the answer to a new producer."""

from __future__ import annotations

from storage.actions import Action, Hint
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.errors import SessionNotFound
from storage.json_form import Flat
from storage.process.identity import ProcessIdentity
from storage.process.locks import Locks
from storage.topic import catalogue as topics, state as topic_states
from storage.topic.catalogue import Topic
from storage.topic.producers import errors, ownership, session as sessions
from storage.topic.producers.access_mode import AccessMode, Answer, judge_access
from storage.topic.producers.errors import shown_epoch
from storage.topic.producers.last_publish import last_publish_ms
from storage.topic.producers.ownership import Ownership
from storage.topic.producers.session import ProducerSession, Token
from storage.topic.state import TopicState
from storage.values.arguments import check_count
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position

OWNERS_SHOWN = 20
"""The most past owners in the report of one topic."""


class ProducerRow(NamedTuple):
    """A session of a producer.

    Attributes:
        place: rank in the queue; None for a session that does not wait, or is dead.
    """

    topic: str
    name: str
    producer_name: str
    access_mode: str
    session_id: int
    epoch: int | None
    is_owner: bool
    is_waiting: bool
    place: int | None
    owner: ProcessIdentity
    pid: int
    host: str
    user: str
    program: str
    state: str
    alive: bool
    connected_since_at_ms: int
    last_publish_at_ms: int | None
    lease_ms: int | None
    lease_ends_in_ms: int | None


class SessionRow(NamedTuple):
    """A session with its token."""

    row: Flat[ProducerRow]
    session: str


class OwnershipRow(NamedTuple):
    """An owner of a topic: from `granted` to `ended`, for the entries in (after, through]."""

    topic: str
    name: str
    topic_epoch: int
    producer_name: str | None
    access_mode: str
    owner: ProcessIdentity
    session_id: int | None
    waited: bool
    granted_at_ms: int
    ended_at_ms: int | None
    ended_by: str | None
    taken_over_by: int | None
    after: Position
    through: Position | None
    transactions_aborted: int


class AdmissionAnswer(NamedTuple):
    """The answer to a new producer of one access mode."""

    access_mode: str
    result: str
    because: str | None


class TopicProducers(NamedTuple):
    """The producers of one topic."""

    topic: str
    name: str
    as_of_at_ms: int
    topic_epoch: int | None
    owner: ProducerRow | None
    publishers: list[ProducerRow]
    waiting_publishers: int
    waiting: list[ProducerRow]
    admission: list[AdmissionAnswer]
    history: list[OwnershipRow]


def list_producers(connection: Connection, name: str | None) -> list[ProducerRow]:
    """Return the sessions of one topic, or of all topics: connected sessions first, then the queue in order."""
    with connection.view() as view:
        chosen = [topics.get(view, name)] if name is not None else list(topics.every(view))
        locks = connection.environment.locks
        return [row for topic in chosen for row in rows_of(view, locks, topic)]


def rows_of(view: ReadView, locks: Locks, topic: Topic) -> list[ProducerRow]:
    """The sessions of one topic in a view, in the same order."""
    topic_state = topic_states.load(view, topic.topic_id)
    listed = list(sessions.every(view, topic.topic_id))
    listed.sort(key=lambda session: (session.is_waiting, session.number))
    queue = [session.number for session in listed if session.is_waiting and session.is_alive(view, locks)]
    rows = []
    for session in listed:
        row = row_of(view, locks, topic, topic_state, session)
        place = queue.index(session.number) + 1 if session.number in queue else None
        rows.append(row._replace(place=place))
    return rows


def row_of(
    view: ReadView, locks: Locks, topic: Topic, topic_state: TopicState, session: ProducerSession
) -> ProducerRow:
    """One session, without its place in the queue."""
    owner, state, alive = session.owner, session.state(view, locks), session.is_alive(view, locks)
    ends_in_ms = max(0, session.until_ns - view.now_ns) // 1_000_000 if session.lease_ms else None
    return ProducerRow(
        topic=topic.full_name, name=topic.name, producer_name=session.name, access_mode=session.mode.value,
        session_id=session.number, epoch=shown_epoch(session.epoch),
        is_owner=session.is_owner and alive, is_waiting=session.is_waiting, place=None,
        owner=owner, pid=owner.pid, host=owner.host, user=owner.user, program=owner.program,
        state=state, alive=alive, connected_since_at_ms=session.connected_ms,
        last_publish_at_ms=last_publish_ms(topic_state, session),
        lease_ms=session.lease_ms or None, lease_ends_in_ms=ends_in_ms,
    )  # fmt: skip


def publishers(
    view: ReadView, locks: Locks, topic: Topic, topic_state: TopicState
) -> tuple[list[ProducerRow], int]:
    """Connected sessions, and the number of living sessions in the queue."""
    listed = list(sessions.every(view, topic.topic_id))
    connected = [
        row_of(view, locks, topic, topic_state, session) for session in listed if not session.is_waiting
    ]
    return connected, sum(session.is_waiting and session.is_alive(view, locks) for session in listed)


def ownership_history(connection: Connection, name: str, limit: int) -> list[OwnershipRow]:
    """The owners of a topic, the newest first."""
    check_count("a number of rows", limit)
    with connection.view() as view:
        return _history(view, topics.get(view, name), limit)


def _history(view: ReadView, topic: Topic, limit: int) -> list[OwnershipRow]:
    rows = [_ownership(topic, owned) for owned in ownership.every(view, topic.topic_id)]
    rows.reverse()
    return rows[:limit]


def _ownership(topic: Topic, owned: Ownership) -> OwnershipRow:
    session = owned.session
    return OwnershipRow(
        topic=topic.full_name, name=topic.name, topic_epoch=owned.epoch,
        producer_name=session.name if session else None, access_mode=owned.how, owner=owned.by,
        session_id=session.number if session else None, waited=session.waited if session else False,
        granted_at_ms=owned.granted_ms, ended_at_ms=owned.ended_ms, ended_by=owned.ended_by,
        taken_over_by=owned.successor, after=Position(*owned.after),
        through=Position(*owned.through) if owned.through else None, transactions_aborted=owned.aborted,
    )  # fmt: skip


def show_producers(connection: Connection, name: str) -> TopicProducers:
    """The producers of a topic, and the answer a new producer would get."""
    with connection.view() as view:
        topic, locks = topics.get(view, name), connection.environment.locks
        topic_state, rows = topic_states.load(view, topic.topic_id), rows_of(view, locks, topic)
        connected = [row for row in rows if not row.is_waiting]
        waiting = [row for row in rows if row.is_waiting]
        return TopicProducers(
            topic=topic.full_name, name=topic.name, as_of_at_ms=connection.clock.wall_ms(),
            topic_epoch=shown_epoch(topic_state.epoch), owner=next((row for row in connected if row.is_owner), None),
            publishers=connected, waiting_publishers=sum(row.alive for row in waiting), waiting=waiting,
            admission=_admission(view, locks, topic, topic_state), history=_history(view, topic, OWNERS_SHOWN),
        )  # fmt: skip


def _admission(view: ReadView, locks: Locks, topic: Topic, topic_state: TopicState) -> list[AdmissionAnswer]:
    """The answer for each access mode."""
    living = sessions.living(view, topic.topic_id, locks)
    answers = []
    for mode in AccessMode:
        answer = judge_access(
            mode, epoch=topic_state.epoch, brings=None, may_resume=None, occupancy=sessions.occupancy(living)
        )
        why = None
        if answer in (Answer.BUSY, Answer.WAIT, Answer.TAKE_OVER):
            why = errors.busy(view, locks, topic.name, mode, living).message
        answers.append(AdmissionAnswer(mode.value, answer.value, why))
    return answers


def show_session(engine: Engine, text: str) -> SessionRow:
    """The session of a token.

    Raises:
        InvalidValue, SessionNotFound
    """
    token = Token(text)
    with engine.connection.view() as view:
        topic, session = find_session(view, token)
        return _session_row(view, engine, topic, session)


def granted(engine: Engine, topic: Topic, session: ProducerSession) -> SessionRow:
    """Return a session with the values at its grant, although the session may have ended since."""
    with engine.connection.view() as view:
        return _session_row(view, engine, topic, session)


def _session_row(view: ReadView, engine: Engine, topic: Topic, session: ProducerSession) -> SessionRow:
    topic_state = topic_states.load(view, topic.topic_id)
    return SessionRow(row_of(view, engine.locks, topic, topic_state, session), session.token)


def find_session(view: ReadView, token: Token) -> tuple[Topic, ProducerSession]:
    """The session of a token.

    Raises:
        SessionNotFound
    """
    for topic in topics.every(view):
        if topic.topic_id == token.topic_id:
            session = sessions.find(view, topic.topic_id, token.number)
            if session is not None and token.names(session):
                return topic, session
    raise SessionNotFound(
        f"session {token.number} is not there: it was closed, lost its topic, or never was",
        hint=Hint(
            "`{}` shows the sessions there are, `{}` those that were.",
            Action("store.reports.list_producers"),
            Action("store.reports.show_producers", "TOPIC"),
        ),
    )

"""Producers for operators: who is connected, who waits, who owned a topic, and why one cannot connect."""

from __future__ import annotations

from typing import Any

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.errors import SessionNotFound
from storage.process.locks import LockFile
from storage.topic import catalogue as topics, state as topic_head
from storage.topic.catalogue import Topic
from storage.topic.producers import errors, ownership, session as sessions
from storage.topic.producers.access_mode import AccessMode, Answer, judge_access
from storage.topic.producers.last_publish import last_publish_ms
from storage.topic.producers.ownership import Ownership
from storage.topic.producers.session import ProducerSession, Token
from storage.topic.state import TopicState
from storage.values.position import Position
from storage.values.timestamps import both


def rows(connection: Connection, name: str | None) -> list[dict[str, Any]]:
    """The sessions of one topic, or of all: connected ones first, then waiting ones in the order of their turn."""
    with connection.view() as view:
        found = [topics.get(view, name)] if name is not None else list(topics.every(view))
        locks = connection.environment.lock_file
        return [row for topic in found for row in rows_of(view, locks, topic)]


def rows_of(view: ReadView, locks: LockFile, topic: Topic) -> list[dict[str, Any]]:
    """The sessions of one topic in a view, in the same order."""
    head = topic_head.load(view, topic.topic_id)
    there = list(sessions.every(view, topic.topic_id))
    there.sort(key=lambda each: (each.is_waiting, each.number))
    living = [each.number for each in there if each.is_waiting and each.is_alive(view, locks)]
    found = []
    for each in there:
        place = living.index(each.number) + 1 if each.number in living else None
        found.append(row(view, locks, topic, head, each, place))
    return found


def row(
    view: ReadView, locks: LockFile, topic: Topic, head: TopicState, each: ProducerSession, place: int | None
) -> dict[str, Any]:
    """One session.

    Args:
        place: in the queue, 1 for the next; None for one that does not wait, or is dead.
    """
    owner, state = each.owner, each.state(view, locks)
    ends_in_ms = max(0, each.until_ns - view.now_ns) // 1_000_000 if each.lease_ms else None
    return {
        "topic": topic.full_name, "name": topic.name, "producerName": each.name, "accessMode": each.mode.value,
        "sessionId": each.number, "epoch": errors.shown_epoch(each.epoch),
        "isOwner": each.is_owner and each.is_alive(view, locks), "isWaiting": each.is_waiting, "place": place,
        "owner": str(owner), "pid": owner.pid, "host": owner.host, "user": owner.user, "program": owner.program,
        "state": state, "alive": each.is_alive(view, locks),
        **both("connectedSince", each.connected_ms),
        **both("lastPublish", last_publish_ms(head, each)),
        "leaseMs": each.lease_ms or None, "leaseEndsInMs": ends_in_ms,
    }  # fmt: skip


def publishers(view: ReadView, locks: LockFile, topic: Topic, head: TopicState) -> dict[str, Any]:
    """For `topics stats`: who publishes, and how many wait."""
    there = list(sessions.every(view, topic.topic_id))
    return {
        "waitingPublishers": sum(each.is_waiting and each.is_alive(view, locks) for each in there),
        "publishers": [row(view, locks, topic, head, each, None) for each in there if not each.is_waiting],
    }


def history(connection: Connection, name: str, limit: int) -> list[dict[str, Any]]:
    """Who owned a topic, the newest first."""
    with connection.view() as view:
        return _history(view, topics.get(view, name), limit)


def _history(view: ReadView, topic: Topic, limit: int) -> list[dict[str, Any]]:
    found = [_ownership(topic, each) for each in ownership.every(view, topic.topic_id)]
    found.reverse()
    return found[:limit]


def _ownership(topic: Topic, each: Ownership) -> dict[str, Any]:
    session = each.session
    return {
        "topic": topic.full_name, "name": topic.name, "topicEpoch": each.epoch,
        "producerName": session.name if session else None, "accessMode": each.how, "owner": str(each.by),
        "sessionId": session.number if session else None, "waited": session.waited if session else False,
        **both("granted", each.granted_ms), **both("ended", each.ended_ms), "endedBy": each.ended_by,
        "takenOverBy": each.successor, "after": str(Position(*each.after)),
        "through": str(Position(*each.through)) if each.through else None, "transactionsAborted": each.aborted,
    }  # fmt: skip


def show(connection: Connection, name: str) -> dict[str, Any]:
    """Why a producer can or cannot connect to a topic."""
    with connection.view() as view:
        topic, locks = topics.get(view, name), connection.environment.lock_file
        head, found = topic_head.load(view, topic.topic_id), rows_of(view, locks, topic)
        connected = [each for each in found if not each["isWaiting"]]
        waiting = [each for each in found if each["isWaiting"]]
        return {
            "topic": topic.full_name, "name": topic.name, **both("asOf", connection.clock.wall_ms()),
            "topicEpoch": errors.shown_epoch(head.epoch),
            "owner": next((each for each in connected if each["isOwner"]), None),
            "publishers": connected, "waitingPublishers": sum(each["alive"] for each in waiting),
            "waiting": waiting, "admission": _admission(view, locks, topic, head),
            "history": _history(view, topic, 20),
        }  # fmt: skip


def _admission(view: ReadView, locks: LockFile, topic: Topic, head: TopicState) -> list[dict[str, Any]]:
    """What a new producer would get, for each access mode."""
    there = sessions.living(view, topic.topic_id, locks)
    found = []
    for mode in AccessMode:
        answer = judge_access(
            mode, epoch=head.epoch, brings=None, may_resume=None, occupancy=sessions.occupancy(there)
        )
        why = None
        if answer in (Answer.BUSY, Answer.WAIT, Answer.TAKE_OVER):
            why = errors.busy(view, locks, topic.name, mode, there).message
        found.append({"accessMode": mode.value, "result": answer.value, "because": why})
    return found


def show_session(engine: Engine, text: str) -> dict[str, Any]:
    """The session of a token.

    Raises:
        InvalidValue, SessionNotFound
    """
    token, connection = Token(text), engine.connection
    with connection.view() as view:
        topic, session = find_session(view, token)
        head = topic_head.load(view, topic.topic_id)
        found = row(view, connection.environment.lock_file, topic, head, session, None)
        return {**found, "session": session.token}


def granted(engine: Engine, topic: Topic, session: ProducerSession) -> dict[str, Any]:
    """A session as it was granted, whatever has become of it meanwhile; with the token as `session`."""
    connection = engine.connection
    with connection.view() as view:
        head = topic_head.load(view, topic.topic_id)
        found = row(view, connection.environment.lock_file, topic, head, session, None)
        return {**found, "session": session.token}


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
        hint="`txnctl producers list` shows the sessions there are, `producers show TOPIC` those that were.",
    )

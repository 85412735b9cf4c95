"""The index of a topic's sessions: how many wait, and the connected ones by name.

A Shared producer may connect unless the topic has an owner, a queue, or a producer of the same name. The index answers
all three without a look at the rest of the Shared sessions, however many. Dead sessions are removed a few at a time, in
turn. A topic of an earlier release has no index before the first admission.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from storage.disk.codec import U64X2, key1, key2, unpack
from storage.disk.schema import PRODUCERS, SESSION_INDEX
from storage.disk.view import ReadView, WriteBatch
from storage.process.locks import Locks
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import session as sessions
from storage.topic.producers.session import ProducerSession

EXAMINED_AT_ONCE = 4
"""Sessions that the admission of a Shared producer examines for death: more than the one session added."""


def _name_prefix(topic_id: int, name: str) -> bytes:
    return key1(topic_id) + name.encode("ascii") + b"\0"


def _name_key(session: ProducerSession) -> bytes:
    return _name_prefix(session.topic_id, session.name) + key1(session.number)


def _summary(view: ReadView, topic_id: int) -> tuple[int, int] | None:
    """The number of waiting sessions, and the last session examined for death; None without an index."""
    payload = view.get(SESSION_INDEX, key1(topic_id))
    if payload is None:
        return None
    waiting, examined = U64X2.unpack(payload)
    return waiting, examined


def _put_summary(batch: WriteBatch, topic_id: int, waiting: int, examined: int) -> None:
    batch.put(SESSION_INDEX, key1(topic_id), U64X2.pack(waiting, examined))


def make(batch: WriteBatch, topic_id: int, listed: Iterable[ProducerSession]) -> None:
    """Make the index of a topic without one, from all sessions of the topic."""
    if batch.has(SESSION_INDEX, key1(topic_id)):
        return
    _put_summary(batch, topic_id, 0, 0)
    for session in listed:
        enter(batch, session)


def enter(batch: WriteBatch, session: ProducerSession) -> None:
    """Note a session that has connected, or begun to wait."""
    _change(batch, session, 1)


def leave(batch: WriteBatch, session: ProducerSession) -> None:
    """Note that a session has ended, or waits no more."""
    _change(batch, session, -1)


def _change(batch: WriteBatch, session: ProducerSession, difference: int) -> None:
    summary = _summary(batch, session.topic_id)
    if summary is None:
        return
    if session.is_waiting:
        _put_summary(batch, session.topic_id, summary[0] + difference, summary[1])
    elif difference > 0:
        batch.put(SESSION_INDEX, _name_key(session), b"")
    else:
        batch.delete(SESSION_INDEX, _name_key(session))


def waiting(view: ReadView, topic_id: int) -> int | None:
    """The number of waiting sessions, dead ones included; None without an index."""
    summary = _summary(view, topic_id)
    return None if summary is None else summary[0]


def is_shared_alone(topic: OpenTopic[ReadView]) -> bool:
    """Whether the index says that all sessions of a topic are Shared and connected."""
    view, topic_id, owner = topic.view, topic.topic_id, topic.state.owner_session
    return waiting(view, topic_id) == 0 and not (owner and sessions.find(view, topic_id, owner))


def beside_shared(topic: OpenTopic[ReadView], locks: Locks, name: str | None) -> list[ProducerSession]:
    """The living sessions in the way of a Shared producer: all beside an owner or a queue, else those of the name."""
    view, topic_id = topic.view, topic.topic_id
    if not is_shared_alone(topic):
        return sessions.living(view, topic_id, locks)
    return [session for session in _named(view, topic_id, name) if session.is_alive(view, locks)]


def _named(view: ReadView, topic_id: int, name: str | None) -> list[ProducerSession]:
    if name is None:
        return []
    numbers = [
        int.from_bytes(key[-8:], "big") for key in view.keys(SESSION_INDEX, _name_prefix(topic_id, name))
    ]
    candidates = (sessions.find(view, topic_id, number) for number in numbers)
    return [session for session in candidates if session is not None]


def next_examined(batch: WriteBatch, topic_id: int, name: str | None) -> list[ProducerSession]:
    """Return the sessions to be examined for death, those of a name and the next in turn; note the last of these."""
    summary = _summary(batch, topic_id)
    assert summary is not None, "the topic has an index"
    last, limit = summary[1], EXAMINED_AT_ONCE
    payloads = [
        payload
        for _, payload in islice(batch.scan(PRODUCERS, key1(topic_id), key2(topic_id, last + 1)), limit)
    ]
    payloads += [
        payload
        for _, payload in islice(
            batch.scan(PRODUCERS, key1(topic_id), stop=key2(topic_id, last)), limit - len(payloads)
        )
    ]
    examined = [ProducerSession.of(unpack(payload, 17)) for payload in payloads]
    if examined and examined[-1].number != last:
        _put_summary(batch, topic_id, summary[0], examined[-1].number)
    numbers = {session.number for session in examined}
    return examined + [session for session in _named(batch, topic_id, name) if session.number not in numbers]


def entries(view: ReadView, topic_id: int) -> tuple[int | None, set[tuple[str, int]]]:
    """The number of waiting sessions, and names and numbers of connected ones, for a comparison with the records."""
    named = set()
    for key in view.keys(SESSION_INDEX, key1(topic_id)):
        if len(key) > 8:
            named.add((key[8:-9].decode("ascii"), int.from_bytes(key[-8:], "big")))
    return waiting(view, topic_id), named

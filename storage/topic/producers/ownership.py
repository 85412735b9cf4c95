"""Ownership of a topic: one record per epoch, for operators, for `verify`, and for an owner that reconnects.

Each grant of a new epoch writes a record: to an exclusive producer, to an operator's `fence` (an owner that leaves at
once), to a restored backup or a store on another server (likewise). The last OWNERS_KEPT records are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from storage.disk.codec import key1, key2, missing, pack, unpack
from storage.disk.schema import OWNERS
from storage.disk.view import ReadView, WriteBatch
from storage.limits import OWNERS_KEPT
from storage.process.identity import ProcessIdentity
from storage.topic.open_topic import OpenTopic
from storage.topic.producers.session import ProducerSession
from storage.values.position import Position


class Ownership:
    """The ownership of one epoch of a topic.

    Attributes:
        session: the session at the time of the grant; None where an operator took the epoch.
        how: the access mode, or `fence`, `restore` or `failover`.
        after, through: lastConfirmedEntry at the grant, and at the end or None.
        ended_by: closed, dead, expired, fenced, restored; None while the ownership lasts.
        successor: the epoch that fenced it.
        closed_by: the process of the operator who closed the session; None where its owner did, or in an older record.
        aborted: open transactions that the grant aborted.
    """

    __slots__ = (
        "aborted", "after", "by_fields", "closed_by", "ended_by", "ended_ms", "epoch", "granted_ms", "how", "session",
        "successor", "through",
    )  # fmt: skip

    def __init__(self, epoch: int, session: ProducerSession | None, how: str, by_fields: list[Any]) -> None:
        self.epoch = epoch
        self.session = session
        self.how = how
        self.by_fields = by_fields
        self.granted_ms = 0
        self.after = Position(0, -1)
        self.aborted = 0
        self.ended_ms: int | None = None
        self.ended_by: str | None = None
        self.through: Position | None = None
        self.successor: int | None = None
        self.closed_by: ProcessIdentity | None = None

    @property
    def by(self) -> ProcessIdentity:
        return ProcessIdentity.of(self.by_fields)

    @property
    def words(self) -> str:
        """The owner and the epoch, for messages."""
        name = f"{self.session.name} ({self.how}, {self.by})" if self.session else f"{self.how} by {self.by}"
        return f"{name}, epoch {self.epoch}"


def grant(
    topic: OpenTopic[WriteBatch],
    session: ProducerSession | None,
    how: str,
    process: ProcessIdentity,
    aborted: int,
) -> Ownership:
    """Note that the topic's epoch, raised before, was granted."""
    batch, state = topic.view, topic.state
    granted = Ownership(state.epoch, session, how, process.fields())
    granted.granted_ms, granted.after, granted.aborted = batch.now_ms, state.last_confirmed, aborted
    _save(batch, topic.topic_id, granted)
    if state.epoch >= OWNERS_KEPT:
        batch.delete(OWNERS, key2(topic.topic_id, state.epoch - OWNERS_KEPT))
    return granted


def end(
    topic: OpenTopic[WriteBatch],
    ended_by: str,
    successor: int | None = None,
    closed_by: ProcessIdentity | None = None,
) -> None:
    """Note that the owner of the topic's epoch is connected no longer."""
    batch = topic.view
    owned = find(batch, topic.topic_id, topic.state.epoch)
    if owned is None or owned.ended_by is not None:
        return
    owned.ended_ms, owned.ended_by, owned.successor = batch.now_ms, ended_by, successor
    owned.through, owned.closed_by = topic.state.last_confirmed, closed_by
    _save(batch, topic.topic_id, owned)


def go_on(topic: OpenTopic[WriteBatch], session: ProducerSession) -> None:
    """Note that the owner of the topic's epoch is connected again, by a session."""
    owned = stored(topic)
    owned.session = session
    owned.ended_ms = owned.ended_by = owned.through = owned.successor = owned.closed_by = None
    _save(topic.view, topic.topic_id, owned)


def stored(topic: OpenTopic[WriteBatch]) -> Ownership:
    """The ownership of the topic's epoch, whose owner resumes.

    Raises:
        CorruptStore: its record is missing.
    """
    owned = find(topic.view, topic.topic_id, topic.state.epoch)
    if owned is None:
        raise missing(OWNERS, key2(topic.topic_id, max(topic.state.epoch, 0)))
    return owned


def find(view: ReadView, topic_id: int, epoch: int) -> Ownership | None:
    """Find the ownership of an epoch; None if the epoch has no record, or the record is no longer kept."""
    if epoch < 0:
        return None
    payload = view.get(OWNERS, key2(topic_id, epoch))
    return None if payload is None else _decode(epoch, payload)


def every(view: ReadView, topic_id: int) -> Iterator[Ownership]:
    """Yield the kept ownerships of a topic, in order."""
    for key, payload in view.scan(OWNERS, key1(topic_id)):
        yield _decode(int.from_bytes(key[8:], "big"), payload)


def _save(batch: WriteBatch, topic_id: int, owned: Ownership) -> None:
    fields = [
        owned.session.fields() if owned.session else None, owned.how, owned.by_fields, owned.granted_ms, owned.after,
        owned.aborted, owned.ended_ms, owned.ended_by, owned.through, owned.successor,
    ]  # fmt: skip
    if owned.closed_by is not None:
        fields.append(owned.closed_by.fields())
    batch.put(OWNERS, key2(topic_id, owned.epoch), pack(fields))


def _decode(epoch: int, payload: memoryview) -> Ownership:
    fields = unpack(payload, 10)
    session, how, process, granted, after, aborted, ended, ended_by, through, successor, *further = fields
    owned = Ownership(epoch, ProducerSession.of(session) if session else None, how, process)
    owned.granted_ms, owned.after, owned.aborted = granted, Position(*after), aborted
    owned.ended_ms, owned.ended_by = ended, ended_by
    owned.through = Position(*through) if through else None
    owned.successor = successor
    owned.closed_by = ProcessIdentity.of(further[0]) if further else None
    return owned

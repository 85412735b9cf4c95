"""Who owned a topic: one record an epoch, for operators, for `verify`, and for an owner that reconnects.

Each grant of a new epoch writes one: to an exclusive producer, to an operator's `fence` (an owner that leaves at
once), to a restored backup (likewise). The last OWNERS_KEPT are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from storage.disk.codec import key1, key2, pack, unpack
from storage.disk.schema import OWNERS
from storage.disk.view import ReadView, WriteBatch
from storage.limits import OWNERS_KEPT
from storage.process.identity import ProcessIdentity
from storage.topic.producers.session import ProducerSession
from storage.topic.state import TopicState


class Ownership:
    """One epoch of a topic.

    Attributes:
        session: as it was when the epoch was granted; None where an operator took the epoch.
        how: the access mode, or `fence` or `restore`.
        after, through: lastConfirmedEntry at the grant, and at the end or None.
        ended_by: closed, dead, expired, fenced, restored; None while it lasts.
        successor: the epoch that fenced it.
        aborted: open transactions that the grant aborted.
    """

    __slots__ = (
        "aborted", "after", "by_fields", "ended_by", "ended_ms", "epoch", "granted_ms", "how", "session", "successor",
        "through",
    )  # fmt: skip

    def __init__(self, epoch: int, session: ProducerSession | None, how: str, by_fields: list[Any]) -> None:
        self.epoch = epoch
        self.session = session
        self.how = how
        self.by_fields = by_fields
        self.granted_ms = 0
        self.after: tuple[int, int] = (0, -1)
        self.aborted = 0
        self.ended_ms: int | None = None
        self.ended_by: str | None = None
        self.through: tuple[int, int] | None = None
        self.successor: int | None = None

    @property
    def by(self) -> ProcessIdentity:
        return ProcessIdentity.of(self.by_fields)

    @property
    def words(self) -> str:
        """Who it was, for messages."""
        name = f"{self.session.name} ({self.how}, {self.by})" if self.session else f"{self.how} by {self.by}"
        return f"{name}, epoch {self.epoch}"


def grant(
    batch: WriteBatch,
    topic_id: int,
    head: TopicState,
    session: ProducerSession | None,
    how: str,
    by: ProcessIdentity,
    aborted: int,
) -> Ownership:
    """Note that the epoch of `head` was granted; the caller has raised it."""
    made = Ownership(head.epoch, session, how, by.fields())
    made.granted_ms, made.after, made.aborted = batch.now_ms, head.last_confirmed, aborted
    _save(batch, topic_id, made)
    if head.epoch >= OWNERS_KEPT:
        batch.delete(OWNERS, key2(topic_id, head.epoch - OWNERS_KEPT))
    return made


def end(
    batch: WriteBatch, topic_id: int, head: TopicState, ended_by: str, successor: int | None = None
) -> None:
    """Note that the owner of the topic's epoch is connected no longer."""
    found = find(batch, topic_id, head.epoch)
    if found is None or found.ended_by is not None:
        return
    found.ended_ms, found.ended_by, found.successor = batch.now_ms, ended_by, successor
    found.through = head.last_confirmed
    _save(batch, topic_id, found)


def go_on(batch: WriteBatch, topic_id: int, epoch: int, session: ProducerSession) -> None:
    """Its owner is connected again, by this session."""
    found = find(batch, topic_id, epoch)
    assert found is not None, "only the last owner resumes, and its record is kept"
    found.session = session
    found.ended_ms = found.ended_by = found.through = found.successor = None
    _save(batch, topic_id, found)


def find(view: ReadView, topic_id: int, epoch: int) -> Ownership | None:
    """Who owned the topic under an epoch; None if nobody did, or it is no longer kept."""
    if epoch < 0:
        return None
    payload = view.get(OWNERS, key2(topic_id, epoch))
    return None if payload is None else _decode(epoch, payload)


def every(view: ReadView, topic_id: int) -> Iterator[Ownership]:
    """The epochs of a topic that are kept, in order."""
    for key, payload in view.scan(OWNERS, key1(topic_id)):
        yield _decode(int.from_bytes(key[8:], "big"), payload)


def _save(batch: WriteBatch, topic_id: int, found: Ownership) -> None:
    fields = [
        found.session.fields() if found.session else None, found.how, found.by_fields, found.granted_ms, found.after,
        found.aborted, found.ended_ms, found.ended_by, found.through, found.successor,
    ]  # fmt: skip
    batch.put(OWNERS, key2(topic_id, found.epoch), pack(fields))


def _decode(epoch: int, payload: memoryview) -> Ownership:
    session, how, by, granted, after, aborted, ended, ended_by, through, successor = unpack(payload)[:10]
    found = Ownership(epoch, ProducerSession.of(session) if session else None, how, by)
    found.granted_ms, found.after, found.aborted = granted, tuple(after), aborted
    found.ended_ms, found.ended_by = ended, ended_by
    found.through = tuple(through) if through else None
    found.successor = successor
    return found

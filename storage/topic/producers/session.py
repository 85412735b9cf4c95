"""Sessions of producers: the connection of a producer to a topic, and the catalogue of sessions.

A session is *attached* (a process that streams: a kernel lock is the connection, so that death by any means ends the
session) or *leased* (opened by one shell command and used by the next, alive until the lease expires, which every use
renews). A waiting producer has a session as well; session numbers grow, so that the lowest living waiting session is
next (invariant 11).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from storage.actions import Action, Hint
from storage.disk.codec import key1, key2, pack, unpack
from storage.disk.schema import PRODUCERS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidValue
from storage.process.identity import ProcessIdentity
from storage.process.locks import Locks
from storage.topic.producers.access_mode import AccessMode, Occupancy

_SECRET_BYTES = 8
_STORE_BYTES = 4


class ProducerSession:
    """One session.

    Attributes:
        store: the first bytes of the store's id, so that a token of a different store is recognised.
        number: grows over the whole store.
        is_waiting: whether the producer waits for a turn; a waiting producer has no epoch yet (-1).
        waited: whether the session was promoted after waiting.
        brings, resumes: of a waiting producer: epoch and session of the connection before.
        epoch: the topic's epoch at the connection; -1 if the topic had none.
        lease: the kernel lock of the process that is connected; 0 for a leased session.
        lease_ms, until_ns: of a leased session: the time that each use adds, and the end on the store clock.
        last_publish_ms: None before the first publish; for the latest publisher see last_publish.py.
    """

    __slots__ = (
        "brings", "connected_ms", "epoch", "is_waiting", "last_publish_ms", "lease", "lease_ms", "mode", "name",
        "number",
        "owner_fields", "resumes", "secret", "store", "topic_id", "until_ns", "waited",
    )  # fmt: skip

    def __init__(self, store: bytes, topic_id: int, number: int, name: str, mode: AccessMode) -> None:
        self.store = store[:_STORE_BYTES]
        self.topic_id = topic_id
        self.number = number
        self.name = name
        self.mode = mode
        self.is_waiting = self.waited = False
        self.brings: int | None = None
        self.resumes = 0
        self.epoch = -1
        self.secret = os.urandom(_SECRET_BYTES)
        self.lease = self.lease_ms = self.until_ns = 0
        self.owner_fields: list[Any] = []
        self.connected_ms = 0
        self.last_publish_ms: int | None = None

    @property
    def token(self) -> str:
        """The name of the session outside the process: `store-topic-number-secret`."""
        return f"{self.store.hex()}-{self.topic_id}-{self.number}-{self.secret.hex()}"

    @property
    def owner(self) -> ProcessIdentity:
        return ProcessIdentity.of(self.owner_fields)

    @property
    def is_owner(self) -> bool:
        """Whether the session has the topic without company."""
        return self.mode.is_exclusive and not self.is_waiting

    @property
    def keeps_sequences(self) -> bool:
        """Whether sequence ids are recorded under the producer's name, for later producers of that name.

        A nameless Shared producer does without, which saves a record per commit: its session cannot be lent.
        """
        return self.mode.is_exclusive or not self.lease or self.name != f"producer-{self.number}"

    def is_same(self, session: ProducerSession) -> bool:
        """Whether two records are of one session: a dropped batch may have issued the same number."""
        return (self.number, self.secret) == (session.number, session.secret)

    def renew_token(self) -> None:
        """Give the session a new token; the former token is refused from now on."""
        self.secret = os.urandom(_SECRET_BYTES)

    def is_alive(self, view: ReadView, locks: Locks) -> bool:
        """Whether the process lives, or the lease has not expired."""
        return locks.leases.is_held(self.lease) if self.lease else view.now_ns < self.until_ns

    def state(self, view: ReadView, locks: Locks) -> str:
        """alive, stopped, dead, rebooted or unknown-host if attached; leased or expired if leased."""
        if self.lease:
            return locks.leases.state_of(self.lease, self.owner, view.clock.boot_id())
        return "leased" if view.now_ns < self.until_ns else "expired"

    def fields(self) -> list[Any]:
        return [
            self.topic_id, self.number, self.name, self.mode.value, self.is_waiting, self.waited, self.epoch,
            self.secret, self.lease, self.lease_ms, self.until_ns, self.owner_fields, self.connected_ms,
            self.last_publish_ms, self.brings, self.resumes, self.store,
        ]  # fmt: skip

    @classmethod
    def of(cls, fields: list[Any]) -> ProducerSession:
        session = cls(fields[16], fields[0], fields[1], fields[2], AccessMode(fields[3]))
        (
            session.is_waiting, session.waited, session.epoch, session.secret, session.lease, session.lease_ms,
            session.until_ns,
            session.owner_fields, session.connected_ms, session.last_publish_ms, session.brings, session.resumes,
        ) = fields[4:16]  # fmt: skip
        return session


class Token:
    """A token from outside; the session may not exist."""

    __slots__ = ("number", "store", "text", "topic_id")

    def __init__(self, text: str) -> None:
        """Raises:
        InvalidValue: the text is no token.
        """
        parts = str(text).split("-") if str(text).isascii() else []
        try:
            self.store, self.topic_id, self.number = bytes.fromhex(parts[0]), int(parts[1]), int(parts[2])
            bytes.fromhex(parts[3])
        except (IndexError, ValueError):
            parts = []
        if (
            len(parts) != 4
            or [len(part) for part in parts[::3]] != [2 * _STORE_BYTES, 2 * _SECRET_BYTES]
            or not (0 < self.topic_id < 1 << 63 and 0 < self.number < 1 << 63)
        ):
            raise InvalidValue(
                f"{ascii(text)[:80]} is not the token of a session",
                hint=Hint("`{}` returns one.", Action("store.open_session", "TOPIC")),
            )
        self.text = text

    def names(self, session: ProducerSession | None) -> bool:
        """Whether the token is that of a session."""
        return session is not None and self.text == session.token

    def is_of(self, view: ReadView) -> bool:
        """Whether the token is of this store."""
        return self.store == view.superblock.store_id[:_STORE_BYTES]


def find(view: ReadView, topic_id: int, number: int) -> ProducerSession | None:
    """Find the session of a number, or None."""
    payload = view.get(PRODUCERS, key2(topic_id, number))
    return None if payload is None else ProducerSession.of(unpack(payload, 17))


def every(view: ReadView, topic_id: int) -> Iterator[ProducerSession]:
    """Yield the sessions of a topic in the order of their numbers, dead ones that are not yet removed included."""
    for _, payload in view.scan(PRODUCERS, key1(topic_id)):
        yield ProducerSession.of(unpack(payload, 17))


def save(batch: WriteBatch, session: ProducerSession) -> None:
    """Write the record of a session."""
    batch.put(PRODUCERS, key2(session.topic_id, session.number), pack(session.fields()))


def living(view: ReadView, topic_id: int, locks: Locks) -> list[ProducerSession]:
    """The sessions of a topic whose process lives or whose lease has not expired."""
    return [session for session in every(view, topic_id) if session.is_alive(view, locks)]


def before(view: ReadView, topic_id: int, locks: Locks, number: int) -> Iterator[ProducerSession]:
    """Yield the living sessions that a waiting one waits for: connected ones, and those with an earlier place.

    A session that is not recorded any more, or whose process is dead, waits for none.
    """
    waiting = find(view, topic_id, number)
    if waiting is None or not waiting.is_alive(view, locks):
        return
    for session in every(view, topic_id):
        is_before = session.number != number and (not session.is_waiting or session.number < number)
        if is_before and session.is_alive(view, locks):
            yield session


def occupancy(sessions: list[ProducerSession]) -> Occupancy:
    """Count living sessions for the decision on a new producer."""
    connected = [session for session in sessions if not session.is_waiting]
    return Occupancy(
        any(session.is_owner for session in connected), len(connected), len(sessions) - len(connected)
    )

"""The session of a producer: what connects it to a topic, and the catalogue of sessions.

A session is *attached* (a process that streams: a kernel lock is its connection, so that death by any means ends it)
or *leased* (opened by one shell command and used by the next: it lives while its lease runs, which every use renews).
A waiting producer has a session as well; their numbers grow, so that the lowest living one is next (invariant 11).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from storage.disk.codec import key1, key2, pack, unpack
from storage.disk.schema import PRODUCERS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidValue
from storage.process.identity import ProcessIdentity
from storage.process.locks import LockFile
from storage.topic.producers.access_mode import AccessMode

_SECRET_BYTES = 8
_STORE_BYTES = 4


class ProducerSession:
    """One session.

    Attributes:
        store: the first bytes of the store's id, so that a token is known for one of another store.
        number: grows over the whole store.
        is_waiting: for its turn; then it has no epoch yet (-1).
        waited: it was promoted after having waited.
        brings, resumes: of a waiting one: the epoch, and the session, under which it was connected before.
        epoch: the topic's when it connected; -1 while that is absent.
        lease: the kernel lock of the process that is connected; 0 for a leased session.
        lease_ms, until_ns: of a leased one: how long each use renews it, and its end on the store clock.
        last_publish_ms: None before the first; of the session that published last the topic's head knows better.
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
        """What names the session from outside the process: `store-topic-number-secret`."""
        return f"{self.store.hex()}-{self.topic_id}-{self.number}-{self.secret.hex()}"

    @property
    def owner(self) -> ProcessIdentity:
        return ProcessIdentity.of(self.owner_fields)

    @property
    def is_owner(self) -> bool:
        """It has the topic for itself."""
        return self.mode.is_exclusive and not self.is_waiting

    @property
    def keeps_sequences(self) -> bool:
        """Its sequence ids are recorded under its name, so that others may go on with them.

        Only a nameless Shared producer does without, which costs a record a commit less: nobody can lend its session.
        """
        return self.mode.is_exclusive or not self.lease or self.name != f"producer-{self.number}"

    def is_same(self, other: ProducerSession) -> bool:
        """Whether it is that very session: its number may have been given to another by a batch that was dropped."""
        return (self.number, self.secret) == (other.number, other.secret)

    def renew_token(self) -> None:
        """From now on another token names it: who had the former one is out."""
        self.secret = os.urandom(_SECRET_BYTES)

    def is_alive(self, view: ReadView, locks: LockFile) -> bool:
        """Whether its process lives, or its lease runs."""
        return locks.leases.is_held(self.lease) if self.lease else view.now_ns < self.until_ns

    def state(self, view: ReadView, locks: LockFile) -> str:
        """alive, stopped, dead, rebooted or unknown-host of an attached one; leased or expired."""
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
        found = cls(fields[16], fields[0], fields[1], fields[2], AccessMode(fields[3]))
        (
            found.is_waiting, found.waited, found.epoch, found.secret, found.lease, found.lease_ms, found.until_ns,
            found.owner_fields, found.connected_ms, found.last_publish_ms, found.brings, found.resumes,
        ) = fields[4:16]  # fmt: skip
        return found


class Token:
    """A token as somebody gave it; nothing says yet that there is such a session."""

    __slots__ = ("number", "store", "text", "topic_id")

    def __init__(self, text: str) -> None:
        """Raises:
        InvalidValue: it cannot be one.
        """
        parts = str(text).split("-") if str(text).isascii() else []
        try:
            self.store, self.topic_id, self.number = bytes.fromhex(parts[0]), int(parts[1]), int(parts[2])
            bytes.fromhex(parts[3])
        except (IndexError, ValueError):
            parts = []
        if (
            len(parts) != 4
            or [len(each) for each in parts[::3]] != [2 * _STORE_BYTES, 2 * _SECRET_BYTES]
            or not (0 < self.topic_id < 1 << 63 and 0 < self.number < 1 << 63)
        ):
            raise InvalidValue(
                f"{ascii(text)[:80]} is not the token of a session",
                hint="`txnctl producers open` prints one; under `txnctl producers lead` it is in TXNCTL_SESSION.",
            )
        self.text = text

    def names(self, session: ProducerSession | None) -> bool:
        """Whether it is that session's."""
        return session is not None and self.text == session.token

    def is_of(self, view: ReadView) -> bool:
        """Whether it is one of this store."""
        return self.store == view.superblock.store_id[:_STORE_BYTES]


def find(view: ReadView, topic_id: int, number: int) -> ProducerSession | None:
    """The session of that number, or None."""
    payload = view.get(PRODUCERS, key2(topic_id, number))
    return None if payload is None else ProducerSession.of(unpack(payload))


def every(view: ReadView, topic_id: int) -> Iterator[ProducerSession]:
    """The sessions of a topic in the order of their numbers; dead ones that nobody noticed yet included."""
    for _, payload in view.scan(PRODUCERS, key1(topic_id)):
        yield ProducerSession.of(unpack(payload))


def save(batch: WriteBatch, session: ProducerSession) -> None:
    """Write the record of a session."""
    batch.put(PRODUCERS, key2(session.topic_id, session.number), pack(session.fields()))


def living(view: ReadView, topic_id: int, locks: LockFile) -> list[ProducerSession]:
    """The sessions of a topic whose process lives or whose lease runs."""
    return [each for each in every(view, topic_id) if each.is_alive(view, locks)]

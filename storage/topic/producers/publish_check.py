"""Credentials: the right of a producer to publish, checked inside the store transaction of every append.

So no message of a fenced producer can follow a message of the successor, whatever dies or stalls in between (invariant
10). Ownership is topic incarnation, epoch and session; a Shared producer that was evicted has no record any more.
"""

from __future__ import annotations

from typing import Protocol

from storage.actions import Action, Hint
from storage.disk.view import WriteBatch
from storage.errors import ProducerBusy, ProducerFenced
from storage.process.identity import ProcessIdentity
from storage.topic.catalogue import Topic
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import errors, ownership, session as sessions, session_end, session_index
from storage.topic.producers.access_mode import AccessMode
from storage.topic.producers.admission import AccessRequest, ProducerRegistry, SessionLifetime
from storage.topic.producers.epoch import OpenTransactions
from storage.topic.producers.session import ProducerSession, Token
from storage.topic.sequence_ids import SequenceIds


class Credential(Protocol):
    """A kind of right to publish.

    Attributes:
        keeps_sequences: whether sequence ids are recorded under the producer's name, so that a later producer of that
            name goes on with them.
    """

    mode: AccessMode
    keeps_sequences: bool

    @property
    def name(self) -> str | None: ...

    @property
    def epoch(self) -> int | None: ...

    @property
    def token(self) -> str | None: ...

    def check_publish(self, topic: OpenTopic[WriteBatch], name: str | None) -> tuple[int, str]:
        """Return number of the session and name of a producer that may publish now.

        Args:
            name: the name of the producer's earlier publishes.

        Raises:
            ProducerFenced, ProducerBusy
        """


class Connected:
    """The session of a producer of this process, alive as long as the process holds the kernel lock.

    The session ends otherwise only by an eviction.
    """

    def __init__(self, topic: Topic, session: ProducerSession) -> None:
        self._topic = topic
        self.session = session
        self._changes = -1
        self.mode = session.mode
        self.keeps_sequences = session.keeps_sequences

    @property
    def name(self) -> str:
        return self.session.name

    @property
    def epoch(self) -> int:
        return self.session.epoch

    @property
    def token(self) -> str:
        return self.session.token

    def check_publish(self, topic: OpenTopic[WriteBatch], name: str | None) -> tuple[int, str]:  # noqa: ARG002
        """Compare two numbers; look the session up only if some session of the topic has ended since the last check."""
        session, state = self.session, topic.state
        if state.session_changes != self._changes or state.epoch != session.epoch:
            recorded = sessions.find(topic.view, topic.topic_id, session.number)
            if recorded is None or state.epoch != session.epoch:
                raise _fenced(topic, session.name, session.epoch)
            self._changes = state.session_changes
        return session.number, session.name


class Passing:
    """The right of a Shared producer that is connected only during the store transaction of each message."""

    mode = AccessMode.SHARED
    epoch = None
    token = None

    def __init__(self, topic: Topic, name: str | None) -> None:
        self._topic = topic
        self.name = name
        self.keeps_sequences = name is not None

    def check_publish(self, topic: OpenTopic[WriteBatch], name: str | None) -> tuple[int, str]:
        """Check that a Shared producer of this name might connect now."""
        batch = topic.view
        present = session_index.beside_shared(topic, batch.locks, name)
        if any(session.is_owner or session.is_waiting for session in present):
            raise errors.busy(batch, batch.locks, self._topic.name, self.mode, present)
        if name is None:
            batch.superblock.last_producer += 1
            return 0, f"producer-{batch.superblock.last_producer}"
        for session in present:
            if session.name == name:
                raise errors.name_taken(batch, batch.locks, self._topic.name, session)
        return 0, name


class Borrowed:
    """A session of a different holder: a lease of the shell, or the process of `producers lead`.

    A publish through an expired lease is a reconnect: it succeeds only if no producer took over, none waits, and no
    publish through a different session followed.
    """

    keeps_sequences = True

    def __init__(
        self,
        topic: Topic,
        token: Token,
        session: ProducerSession,
        owner: ProcessIdentity,
        transactions: OpenTransactions,
    ) -> None:
        self._topic = topic
        self._token = token
        self._owner = owner
        self._transactions = transactions
        self.mode = session.mode
        self.name = session.name
        self.epoch = session.epoch
        self.token = token.text

    def check_publish(self, topic: OpenTopic[WriteBatch], name: str | None) -> tuple[int, str]:  # noqa: ARG002
        """Check the session, and renew the lease."""
        batch = topic.view
        session = sessions.find(batch, topic.topic_id, self._token.number)
        if session is None or not self._token.names(session) or not session.is_alive(batch, batch.locks):
            session = self._reconnect(topic, session)
        if session.is_waiting:
            raise ProducerBusy(
                f"session {session.number} still waits for topic {self._topic.name}",
                hint=Hint("`{}` says for whom.", Action("store.reports.show_producers", self._topic.name)),
                topic=self._topic.name,
            )
        if session.lease_ms:
            session.until_ns = batch.now_ns + session.lease_ms * 1_000_000
            sessions.save(batch, session)
        return session.number, session.name

    def _reconnect(self, topic: OpenTopic[WriteBatch], session: ProducerSession | None) -> ProducerSession:
        """Connect again after the lease has expired.

        Raises:
            ProducerFenced: for good; `Appender.refusal` makes the fencing durable.
            ProducerBusy: Shared producers are connected that have not published yet; or the session is Shared, and
                producers wait.
        """
        batch, topic_id = topic.view, topic.topic_id
        session = self._recorded(topic, session)
        if session.lease:
            # The owner may connect again, and gets a new token then: work under this token is refused.
            raise self._fenced(topic, f"the process that held its session is dead: {session.owner}")
        if session.mode.is_exclusive:
            present = sessions.living(batch, topic_id, batch.locks)
        else:
            present = session_index.beside_shared(topic, batch.locks, session.name)
        waiting = next((queued for queued in present if queued.is_waiting), None)
        if not session.mode.is_exclusive:
            if waiting is not None:
                raise errors.busy(batch, batch.locks, self._topic.name, self.mode, present)
            for living in present:
                if living.name == session.name:
                    raise errors.name_taken(batch, batch.locks, self._topic.name, living)
            return session
        if waiting is not None:
            raise self._lost(topic, session, f"its lease ended, and {waiting.name} waits for the topic")
        if topic.state.owner_session != session.number:
            raise self._lost(topic, session, "its lease ended, and others have published since")
        if present:
            raise errors.busy(batch, batch.locks, self._topic.name, self.mode, present)
        again = AccessRequest(self.mode, resume=self._token)
        again.keeps_token = True
        registry = ProducerRegistry(topic, self._transactions)
        return registry.admit(again, SessionLifetime(self._owner, lease_ms=session.lease_ms))

    def _recorded(self, topic: OpenTopic[WriteBatch], session: ProducerSession | None) -> ProducerSession:
        """The session of the token: connected, or of the last owner.

        Raises:
            ProducerFenced: there is none, or it was closed.
        """
        if session is not None and self._token.names(session):
            return session
        last = ownership.find(topic.view, topic.topic_id, topic.state.epoch)
        if last is None or last.session is None or not self._token.names(last.session):
            raise self._fenced(topic)
        closed = errors.closed_words(last)
        if closed is not None:
            raise self._fenced(topic, closed)
        return last.session

    def _lost(self, topic: OpenTopic[WriteBatch], session: ProducerSession, why: str) -> ProducerFenced:
        error = self._fenced(topic, why)
        session_end.lose(topic.view, session, self._transactions)
        return error

    def _fenced(self, topic: OpenTopic[WriteBatch], why: str | None = None) -> ProducerFenced:
        return _fenced(topic, self.name, self.epoch, why)


def _fenced(topic: OpenTopic[WriteBatch], name: str, epoch: int, why: str | None = None) -> ProducerFenced:
    last = SequenceIds(topic.view, topic.topic_id, name).last
    return errors.fenced(topic, name, epoch, why, last if last >= 0 else None)

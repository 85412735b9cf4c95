"""By what right a producer publishes: looked at inside the store transaction of every append.

So no message of a fenced producer can follow one of its successor, whatever dies or stalls in between (invariant 10).
Ownership is topic incarnation, epoch and session; a Shared producer that was evicted has no record any more.
"""

from __future__ import annotations

from typing import Protocol

from storage.disk.view import WriteBatch
from storage.errors import ProducerBusy, ProducerFenced
from storage.process.identity import ProcessIdentity
from storage.topic import sequence_ids
from storage.topic.catalogue import Topic
from storage.topic.producers import admission, errors, ownership, session as sessions
from storage.topic.producers.access_mode import AccessMode
from storage.topic.producers.admission import Liveness, ProducerRegistry, Request, Transactions
from storage.topic.producers.session import ProducerSession, Token
from storage.topic.state import TopicState

Checked = tuple[TopicState, int, str]


class Credential(Protocol):
    """One way of being allowed to publish."""

    mode: AccessMode
    keeps_sequences: bool
    """Its sequence ids are recorded under its name, which others may go on with."""

    @property
    def name(self) -> str | None: ...

    @property
    def epoch(self) -> int | None: ...

    @property
    def token(self) -> str | None: ...

    def check(self, batch: WriteBatch, head: TopicState, name: str | None) -> Checked:
        """The topic's head, number of the session and name, if it may publish now.

        Args:
            name: the one it published under before.

        Raises:
            ProducerFenced, ProducerBusy
        """


class Connected:
    """A session of this process, whose kernel lock we hold: it is there unless somebody took it away."""

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

    def check(self, batch: WriteBatch, head: TopicState, name: str | None) -> Checked:  # noqa: ARG002
        """Two comparisons, unless some session of the topic has ended since the last time."""
        mine = self.session
        if head.session_changes != self._changes or head.epoch != mine.epoch:
            found = sessions.find(batch, self._topic.topic_id, mine.number)
            if found is None or head.epoch != mine.epoch:
                raise _fenced(batch, self._topic, head, mine.name, mine.epoch)
            self._changes = head.session_changes
        return head, mine.number, mine.name


class Passing:
    """A Shared producer that is connected for no longer than the store transaction of its message."""

    mode = AccessMode.SHARED
    epoch = None
    token = None

    def __init__(self, topic: Topic, name: str | None) -> None:
        self._topic = topic
        self.name = name
        self.keeps_sequences = name is not None

    def check(self, batch: WriteBatch, head: TopicState, name: str | None) -> Checked:
        """Whether a Shared producer of this name might connect now."""
        there = sessions.living(batch, self._topic.topic_id, batch.lock_file)
        if any(each.is_owner or each.is_waiting for each in there):
            raise errors.busy(batch, batch.lock_file, self._topic.name, self.mode, there)
        if name is None:
            batch.superblock.last_producer += 1
            return head, 0, f"producer-{batch.superblock.last_producer}"
        for each in there:
            if each.name == name:
                raise errors.name_taken(batch, batch.lock_file, self._topic.name, each)
        return head, 0, name


class Borrowed:
    """A session that somebody else holds: a lease of the shell, or the process of `producers lead`.

    A publish through an expired lease is a reconnect: it goes on only if nobody took over, nobody waits, and nobody
    else has produced.
    """

    keeps_sequences = True

    def __init__(
        self,
        topic: Topic,
        token: Token,
        session: ProducerSession,
        owner: ProcessIdentity,
        transactions: Transactions,
    ) -> None:
        self._topic = topic
        self._token = token
        self._owner = owner
        self._transactions = transactions
        self.mode = session.mode
        self.name = session.name
        self.epoch = session.epoch
        self.token = token.text

    def check(self, batch: WriteBatch, head: TopicState, name: str | None) -> Checked:  # noqa: ARG002
        """Renews the lease."""
        mine = sessions.find(batch, self._topic.topic_id, self._token.number)
        if mine is None or not self._token.names(mine) or not mine.is_alive(batch, batch.lock_file):
            head, mine = self._go_on(batch, head, mine)
        if mine.is_waiting:
            raise ProducerBusy(
                f"session {mine.number} still waits for topic {self._topic.name}",
                hint=f"`txnctl producers show {self._topic.name}` says for whom.",
                topic=self._topic.name,
            )
        if mine.lease_ms:
            mine.until_ns = batch.now_ns + mine.lease_ms * 1_000_000
            sessions.save(batch, mine)
        return head, mine.number, mine.name

    def _go_on(
        self, batch: WriteBatch, head: TopicState, mine: ProducerSession | None
    ) -> tuple[TopicState, ProducerSession]:
        """Reconnect: its lease has ended, or the process that held it is dead.

        Raises:
            ProducerFenced: for good; the caller makes that durable.
            ProducerBusy: Shared producers are connected, who have not published yet; or a Shared one, and others wait.
        """
        topic_id = self._topic.topic_id
        if not self._token.names(mine):
            last = ownership.find(batch, topic_id, head.epoch)
            mine = last.session if last is not None and self._token.names(last.session) else None
        if mine is None:
            raise self._fenced(batch, head)
        there = sessions.living(batch, topic_id, batch.lock_file)
        waiting = next((each for each in there if each.is_waiting), None)
        if mine.lease:
            # It may connect again, and gets another token then: what it has left behind is out.
            raise self._fenced(batch, head, f"the process that held its session is dead: {mine.owner}")
        if not mine.mode.is_exclusive:
            if waiting is not None:
                raise errors.busy(batch, batch.lock_file, self._topic.name, self.mode, there)
            for each in there:
                if each.name == mine.name:
                    raise errors.name_taken(batch, batch.lock_file, self._topic.name, each)
            return head, mine
        if waiting is not None:
            raise self._lost(batch, head, mine, f"its lease ended, and {waiting.name} waits for the topic")
        if head.owner_session != mine.number:
            raise self._lost(batch, head, mine, "its lease ended, and others have published since")
        if there:
            raise errors.busy(batch, batch.lock_file, self._topic.name, self.mode, there)
        registry = ProducerRegistry(batch, topic_id, self._topic.name, self._transactions)
        again = Request(self.mode, resume=self._token, keeps_token=True)
        mine = registry.admit(again, Liveness(self._owner, lease_ms=mine.lease_ms))
        return registry.head, mine

    def _lost(self, batch: WriteBatch, head: TopicState, mine: ProducerSession, why: str) -> ProducerFenced:
        error = self._fenced(batch, head, why)
        admission.lose(batch, mine, self._transactions)
        return error

    def _fenced(self, batch: WriteBatch, head: TopicState, why: str | None = None) -> ProducerFenced:
        return _fenced(batch, self._topic, head, self.name, self.epoch, why)


def _fenced(
    batch: WriteBatch, topic: Topic, head: TopicState, name: str, epoch: int, why: str | None = None
) -> ProducerFenced:
    last = sequence_ids.last_sequence_id(batch, topic.topic_id, name)
    return errors.fenced(
        batch, topic.topic_id, topic.name, head, name, epoch, why, last if last >= 0 else None
    )

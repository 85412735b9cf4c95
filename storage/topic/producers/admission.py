"""Admission: connect producers to a topic, queue them, promote them, evict them.

Invariants: 9, each grant to a new owner raises topicEpoch by one; 10, at most one exclusive owner, with no producer
beside the owner; 11, waiting producers are promoted in the order in which their queue records were committed.

Must not know: transactions, except through the protocol in epoch.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from storage import faults
from storage.actions import Action, Hint, Keyword
from storage.disk.codec import corrupt, key2
from storage.disk.schema import OWNERS, PRODUCERS
from storage.disk.view import WriteBatch
from storage.errors import InvalidValue, ProducerBusy, ProducerFenced
from storage.limits import SESSION_LEASE_MS_MAX
from storage.process.identity import ProcessIdentity
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import errors, ownership, session as sessions, session_index
from storage.topic.producers.access_mode import AccessMode, Answer, judge_access
from storage.topic.producers.epoch import OpenTransactions, raise_epoch
from storage.topic.producers.session import ProducerSession, Token
from storage.topic.producers.session_end import remove_session
from storage.values.counters import TAKEOVERS


class SessionLifetime:
    """The bound of a session's life: the kernel lock of a process, or a lease of some milliseconds."""

    __slots__ = ("lease", "lease_ms", "owner")

    def __init__(self, owner: ProcessIdentity, *, lease: int = 0, lease_ms: int = 0) -> None:
        assert (lease > 0) != (lease_ms > 0), "a session is attached or leased"
        self.owner = owner
        self.lease = lease
        self.lease_ms = lease_ms


class AccessRequest:
    """The access that a producer asks for.

    Attributes:
        name: None for a name that the store gives.
        brings: the epoch of a producer that was connected before.
        resume: the session of a producer that was connected before.
        spare: the transaction that a take-over spares, because the new owner itself produces in it; 0 for none.
        keeps_token: True for a publish through an expired lease, which goes on with the same token. A producer that
            connects again gets a new token, so that work started with the old token is refused.
    """

    __slots__ = ("brings", "keeps_token", "mode", "name", "resume", "spare")

    def __init__(
        self,
        mode: AccessMode,
        name: str | None = None,
        brings: int | None = None,
        resume: Token | None = None,
        spare: int = 0,
    ) -> None:
        self.mode = mode
        self.name = name
        self.brings = brings
        self.resume = resume
        self.spare = spare
        self.keeps_token = False


class ProducerRegistry:
    """The registry of one topic, within one write batch. A refusal leaves no trace in the store.

    Attributes:
        present: the sessions that are connected or wait; for a Shared producer, those that may be in its way.
    """

    def __init__(
        self,
        topic: OpenTopic[WriteBatch],
        transactions: OpenTransactions,
        *,
        is_swept: bool = True,
        request: AccessRequest | None = None,
    ) -> None:
        """Args:
        is_swept: remove dead sessions first; a few in turn where all sessions are Shared and the producer is, too.
        request: of the producer to be admitted. A Shared one excludes no Shared session: an expired Shared session is
            not removed, as its next publish may connect it again.
        """
        self._batch = batch = topic.view
        self._transactions = transactions
        self.topic = topic
        self._resumed_name: str | None = None
        shared = request if request is not None and not request.mode.is_exclusive else None
        if is_swept:
            if shared is not None and session_index.is_shared_alone(topic):
                self._sweep(session_index.next_examined(batch, topic.topic_id, shared.name), is_shared=True)
            else:
                self._sweep(sessions.every(batch, topic.topic_id), is_shared=shared is not None)
                session_index.make(batch, topic.topic_id, sessions.every(batch, topic.topic_id))
        if shared is not None:
            self.present = session_index.beside_shared(topic, batch.locks, shared.name)
        else:
            self.present = list(sessions.every(batch, topic.topic_id))

    def _sweep(self, examined: Iterable[ProducerSession], *, is_shared: bool) -> None:
        """Remove the dead ones of some sessions from the topic. A dead owner may still resume."""
        batch = self._batch
        dead = [
            session
            for session in examined
            if not session.is_alive(batch, batch.locks) and not (is_shared and _may_come_back(batch, session))
        ]
        for lease in {session.lease for session in dead if session.lease}:
            self._transactions.end_owned(batch, lease)
        for session in dead:
            remove_session(self.topic, session, "dead" if session.lease else "expired")

    def admit(self, request: AccessRequest, lifetime: SessionLifetime) -> ProducerSession:
        """Connect a producer, or put the producer into the queue; return the session.

        Raises:
            ProducerBusy, ProducerFenced, InvalidValue
        """
        answer = self._judge(request)
        if answer in (Answer.JOIN, Answer.OWN, Answer.RESUME):
            self._check_name(request.name)
        if answer is Answer.RESUME:
            return self._resume(request.mode, lifetime, keeps_token=request.keeps_token)
        session = self._new_session(request, lifetime)
        if answer is Answer.JOIN:
            session.epoch = self.topic.state.epoch
            self._save(session)
        elif answer is Answer.WAIT:
            session.is_waiting, session.brings = True, request.brings
            session.resumes = request.resume.number if request.resume else 0
            self._save(session)
        else:
            if answer is Answer.TAKE_OVER:
                self._evict()
                self._batch.counted[TAKEOVERS] += 1
                faults.reach("producer.after_eviction")
            self._grant(session, request.spare)
        return session

    def promote(self, waiting: ProducerSession, lifetime: SessionLifetime, spare: int) -> ProducerSession:
        """Make a waiting producer the owner if the turn has come; return the session, which else still waits.

        Raises:
            ProducerFenced: the producer was evicted, or the session to resume is over.
        """
        session = next((member for member in self.present if member.number == waiting.number), None)
        if session is None:
            raise self.fenced_error(waiting.name, None)
        if not session.is_waiting:
            key = key2(self.topic.topic_id, session.number)
            raise corrupt(PRODUCERS, key, "it is connected, and its process waits for the topic")
        if any(not member.is_waiting or member.number < session.number for member in self.present):
            return session
        if session.brings is not None and session.brings != self.topic.state.epoch:
            raise self.fenced_error(session.name, session.brings)
        if session.resumes and session.resumes != self.topic.state.owner_session:
            raise self.fenced_error(
                session.name, None, "others produced, or owned the topic, while it was gone"
            )
        if session.resumes:
            remove_session(self.topic, session, "closed")
            return self._resume(session.mode, lifetime, keeps_token=False)
        session_index.leave(self._batch, session)
        session.is_waiting, session.waited = False, True
        _attach(session, lifetime, self._batch)
        session.connected_ms = self._batch.now_ms
        self._grant(session, spare)
        return session

    def fence_producers(
        self, process: ProcessIdentity, how: str, *, spares_waiting: bool = False
    ) -> tuple[list[ProducerSession], list[int]]:
        """Evict all producers, as an owner that leaves at once; return evicted sessions and aborted transactions.

        Args:
            how: `fence` for an operator; `restore` or `failover` for a new incarnation of the store.
            spares_waiting: leave the queue as it is: the next waiting producer may have the topic.
        """
        waiting = [session for session in self.present if spares_waiting and session.is_waiting]
        evicted = self.present = [session for session in self.present if session not in waiting]
        self._evict("fenced" if how == "fence" else "restored")
        self.present = waiting
        aborted = raise_epoch(self.topic, self._transactions, f"{how} by {process}", 0)
        self.topic.state.owner_session = 0
        ownership.grant(self.topic, None, how, process, len(aborted))
        ownership.end(self.topic, "closed")
        return evicted, aborted

    def fenced_error(self, name: str | None, epoch: int | None, why: str | None = None) -> ProducerFenced:
        """Make the error for a producer that has lost the topic."""
        return errors.fenced(self.topic, name, epoch, why)

    def _judge(self, request: AccessRequest) -> Answer:
        """Decide on a request; raise the decision if it is a refusal."""
        topic, state, resume, may_resume = self.topic, self.topic.state, request.resume, None
        if resume is not None:
            self._check_not_connected(resume)
            last = ownership.find(self._batch, topic.topic_id, state.epoch)
            session = last.session if last is not None and resume.names(last.session) else None
            closed = errors.closed_words(last) if session is not None and last is not None else None
            if session is not None and closed is not None:
                raise self.fenced_error(session.name, None, closed)
            may_resume = session is not None and state.owner_session == resume.number
            self._resumed_name = session.name if session is not None else None
        answer = judge_access(
            request.mode, epoch=state.epoch, brings=request.brings, may_resume=may_resume,
            occupancy=sessions.occupancy(self.present),
        )  # fmt: skip
        if answer is Answer.UNKNOWN_EPOCH:
            raise InvalidValue(
                f"topic {topic.name} never had epoch {request.brings}; "
                + (f"it has epoch {state.epoch}" if state.epoch >= 0 else "it has none yet"),
                hint=Hint("`{}` has the history.", Action("store.reports.show_producers", topic.name)),
                topicEpoch=errors.shown_epoch(state.epoch),
            )
        if answer is Answer.FENCED:
            why = None
            if may_resume is False:
                # Only an owner leaves a record of its end.
                is_owner = self._resumed_name is not None
                produced = "others produced, or owned the topic, while it was gone"
                why = produced if is_owner else "the session was closed, or the topic was taken over"
            name = request.name or (f"of session {resume.number}" if resume is not None else None)
            raise self.fenced_error(name, request.brings, why)
        if answer is Answer.BUSY:
            raise errors.busy(self._batch, self._batch.locks, topic.name, request.mode, self.present)
        return answer

    def _check_not_connected(self, token: Token) -> None:
        batch, session = self._batch, sessions.find(self._batch, self.topic.topic_id, token.number)
        if session is None or not token.names(session) or not session.is_alive(batch, batch.locks):
            return
        shown = errors.described(batch, batch.locks, session)
        raise ProducerBusy(
            f"session {session.number} of topic {self.topic.name} is connected: {shown}",
            hint=Hint(
                "Publish through it with {}, or close it: `{}`.",
                Keyword("session"),
                Action("store.admin.producers.close_session", "SESSION"),
            ),
            topic=self.topic.name,
        )

    def _check_name(self, name: str | None) -> None:
        """Refuse a name that a connected producer has. A waiting producer may have the name: it connects later."""
        for session in self.present:
            if session.name == name and not session.is_waiting:
                raise errors.name_taken(self._batch, self._batch.locks, self.topic.name, session)

    def _new_session(self, request: AccessRequest, lifetime: SessionLifetime) -> ProducerSession:
        superblock = self._batch.superblock
        superblock.last_producer += 1
        number = superblock.last_producer
        name = request.name or self._resumed_name or f"producer-{number}"
        session = ProducerSession(superblock.store_id, self.topic.topic_id, number, name, request.mode)
        session.connected_ms = self._batch.now_ms
        _attach(session, lifetime, self._batch)
        return session

    def _resume(self, mode: AccessMode, lifetime: SessionLifetime, *, keeps_token: bool) -> ProducerSession:
        """Connect the last owner again, under the owner's epoch."""
        session = ownership.stored(self.topic).session
        if session is None:
            key = key2(self.topic.topic_id, self.topic.state.epoch)
            raise corrupt(OWNERS, key, "it has no session, and the topic's state names its owner")
        session.mode, session.connected_ms = mode, self._batch.now_ms
        if not keeps_token:
            session.renew_token()
        _attach(session, lifetime, self._batch)
        self._save(session)
        ownership.go_on(self.topic, session)
        return session

    def _save(self, session: ProducerSession) -> None:
        """Write the record of a session that connects or begins to wait, and index it."""
        sessions.save(self._batch, session)
        session_index.enter(self._batch, session)

    def _evict(self, how: str = "fenced") -> None:
        for session in self.present:
            remove_session(self.topic, session, how)
        self.topic.state.owner_session = 0
        self.present = []

    def _grant(self, session: ProducerSession, spare: int) -> None:
        """Make a session the owner under the next epoch."""
        aborted = raise_epoch(self.topic, self._transactions, session.name, spare)
        session.epoch = self.topic.state.epoch
        self.topic.state.owner_session = session.number
        self._save(session)
        ownership.grant(self.topic, session, session.mode.value, session.owner, len(aborted))


def _may_come_back(batch: WriteBatch, session: ProducerSession) -> bool:
    """Whether a leased Shared session expired so recently that its next publish connects it again."""
    is_shared = not session.lease and not session.mode.is_exclusive
    return is_shared and batch.now_ns < session.until_ns + SESSION_LEASE_MS_MAX * 1_000_000


def _attach(session: ProducerSession, lifetime: SessionLifetime, batch: WriteBatch) -> None:
    session.lease, session.lease_ms = lifetime.lease, lifetime.lease_ms
    session.until_ns = batch.now_ns + lifetime.lease_ms * 1_000_000 if lifetime.lease_ms else 0
    session.owner_fields = lifetime.owner.fields()

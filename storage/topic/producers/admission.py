"""Connecting producers to a topic: who is let in, who owns it, who is evicted, whose turn it is.

Invariants: 9, each grant to a new owner raises topicEpoch by one; 10, at most one exclusive owner, and nobody beside
it; 11, waiting producers are promoted in the order in which their queue records were committed.

What it must not know: transactions, but for the two things it asks of them.
"""

from __future__ import annotations

from typing import Protocol

from storage import faults
from storage.disk.codec import key2
from storage.disk.schema import PRODUCERS
from storage.disk.view import WriteBatch
from storage.errors import InvalidValue, ProducerBusy, ProducerFenced
from storage.limits import SESSION_LEASE_MS_MAX
from storage.process.identity import ProcessIdentity
from storage.topic import state
from storage.topic.producers import errors, ownership, session as sessions
from storage.topic.producers.access_mode import AccessMode, Answer, judge
from storage.topic.producers.session import ProducerSession, Token
from storage.topic.state import TopicState


class Transactions(Protocol):
    """What a topic's producers ask of transactions; storage/txn/fence.py answers."""

    def end_owned(self, batch: WriteBatch, lease: int) -> None:
        """End the transactions of an owner that is found dead."""

    def end_fenced(self, batch: WriteBatch, topic_id: int, epoch: int, spare: int, why: str) -> list[int]:
        """Abort the open transactions with messages on a topic whose epoch becomes `epoch`, but for `spare`."""


class Liveness:
    """What keeps a session alive: the kernel lock of a process, or a lease of so many milliseconds."""

    __slots__ = ("lease", "lease_ms", "owner")

    def __init__(self, owner: ProcessIdentity, *, lease: int = 0, lease_ms: int = 0) -> None:
        assert (lease > 0) != (lease_ms > 0), "a session is attached or leased"
        self.owner = owner
        self.lease = lease
        self.lease_ms = lease_ms


class Request:
    """What a producer asks for.

    Attributes:
        name: None for one that the store gives.
        brings: the epoch of a producer that was connected before.
        resume: the session by which it was.
        spare: the transaction that a take-over spares, as the new owner produces in it; 0 for none.
        keeps_token: a publish whose lease had ended goes on by its token. Who connects again gets another one, so that
            what it had started before, and is still about, is out.
    """

    __slots__ = ("brings", "keeps_token", "mode", "name", "resume", "spare")

    def __init__(
        self,
        mode: AccessMode,
        name: str | None = None,
        brings: int | None = None,
        resume: Token | None = None,
        spare: int = 0,
        keeps_token: bool = False,
    ) -> None:
        self.mode = mode
        self.name = name
        self.brings = brings
        self.resume = resume
        self.spare = spare
        self.keeps_token = keeps_token


class ProducerRegistry:
    """The registry of one topic, within one write batch. What it refuses leaves nothing behind.

    Attributes:
        head: of the topic, as this batch leaves it.
    """

    def __init__(
        self,
        batch: WriteBatch,
        topic_id: int,
        topic: str,
        transactions: Transactions,
        *,
        is_swept: bool = True,
        is_shared: bool = False,
    ) -> None:
        """Args:
        is_swept: take the dead off the topic first.
        is_shared: for a Shared producer, who is in nobody's way: sessions that are so too may come back after their
            lease has ended.
        """
        self._batch = batch
        self._topic_id = topic_id
        self._topic = topic
        self._transactions = transactions
        if is_swept:
            self._sweep(is_shared)
        self.head = state.load(batch, topic_id)
        self.there = [
            each
            for each in sessions.every(batch, topic_id)
            if not is_shared or each.is_alive(batch, batch.lock_file)
        ]
        """Everybody who is connected or waits."""
        self._kept_name: str | None = None

    def _sweep(self, is_shared: bool) -> None:
        """Take the dead off the topic. An owner among them may still resume."""
        batch, topic_id = self._batch, self._topic_id
        dead = [
            each
            for each in sessions.every(batch, topic_id)
            if not each.is_alive(batch, batch.lock_file) and not (is_shared and _may_come_back(batch, each))
        ]
        for lease in {each.lease for each in dead if each.lease}:
            self._transactions.end_owned(batch, lease)
        if dead:
            head = state.load(batch, topic_id)
            for each in dead:
                _remove(batch, head, each, "dead" if each.lease else "expired")
            state.save(batch, topic_id, head)

    def admit(self, request: Request, hold: Liveness) -> ProducerSession:
        """Connect a producer, or queue it up; its session.

        Raises:
            ProducerBusy, ProducerFenced, InvalidValue
        """
        answer = self._judge(request)
        if answer in (Answer.JOIN, Answer.OWN, Answer.RESUME):
            self._check_name(request.name)
        if answer is Answer.RESUME:
            return self._resume(request.mode, hold, keeps_token=request.keeps_token)
        session = self._new_session(request, hold)
        if answer is Answer.JOIN:
            session.epoch = self.head.epoch
            sessions.save(self._batch, session)
        elif answer is Answer.WAIT:
            session.is_waiting, session.brings = True, request.brings
            session.resumes = request.resume.number if request.resume else 0
            sessions.save(self._batch, session)
        else:
            if answer is Answer.TAKE_OVER:
                self._evict()
                faults.reach("producer.after_eviction")
            self._grant(session, request.spare)
        return session

    def promote(self, waiting: ProducerSession, hold: Liveness, spare: int) -> ProducerSession:
        """Make a waiting producer the owner if its turn has come; its session, which waits on if it has not.

        Raises:
            ProducerFenced: it was evicted, or what it wanted to resume is over.
        """
        mine = next((each for each in self.there if each.number == waiting.number), None)
        if mine is None:
            raise self.fenced(waiting.name, None)
        assert mine.is_waiting, "only a waiting producer is promoted"
        if any(not each.is_waiting or each.number < mine.number for each in self.there):
            return mine
        if mine.brings is not None and mine.brings != self.head.epoch:
            raise self.fenced(mine.name, mine.brings)
        if mine.resumes and mine.resumes != self.head.owner_session:
            raise self.fenced(mine.name, None, "others produced, or owned the topic, while it was gone")
        if mine.resumes:
            _remove(self._batch, self.head, mine, "closed")
            return self._resume(mine.mode, hold, keeps_token=False)
        mine.is_waiting, mine.waited = False, True
        _put_on(mine, hold, self._batch)
        mine.connected_ms = self._batch.now_ms
        self._grant(mine, spare)
        return mine

    def fence(
        self, by: ProcessIdentity, how: str, *, spares_waiting: bool = False
    ) -> tuple[list[ProducerSession], list[int]]:
        """Evict everybody, as an owner that leaves at once; who they were, and which transactions were aborted.

        Args:
            how: `fence` for an operator, `restore` for a new incarnation of the store.
            spares_waiting: those who wait keep their place: the next of them may have the topic.
        """
        waiting = [each for each in self.there if spares_waiting and each.is_waiting]
        evicted = self.there = [each for each in self.there if each not in waiting]
        self._evict("fenced" if how == "fence" else "restored")
        self.there = waiting
        aborted = self._raise_epoch(f"{how} by {by}", 0)
        self.head.owner_session = 0
        ownership.grant(self._batch, self._topic_id, self.head, None, how, by, len(aborted))
        ownership.end(self._batch, self._topic_id, self.head, "closed")
        state.save(self._batch, self._topic_id, self.head)
        return evicted, aborted

    def fenced(self, name: str | None, epoch: int | None, why: str | None = None) -> ProducerFenced:
        """The error for who has lost the topic."""
        return errors.fenced(self._batch, self._topic_id, self._topic, self.head, name, epoch, why)

    def _judge(self, request: Request) -> Answer:
        """The answer, if it is not a refusal."""
        head, resume, may_resume = self.head, request.resume, None
        if resume is not None:
            self._check_not_connected(resume)
            last = ownership.find(self._batch, self._topic_id, head.epoch)
            mine = last.session if last is not None and resume.names(last.session) else None
            if mine is not None and last is not None and last.ended_by == "closed":
                raise self.fenced(mine.name, None, "its session was closed")
            may_resume = mine is not None and head.owner_session == resume.number
            self._kept_name = mine.name if mine is not None else None
        connected = [each for each in self.there if not each.is_waiting]
        answer = judge(
            request.mode, epoch=head.epoch, brings=request.brings, may_resume=may_resume,
            is_owned=any(each.is_owner for each in connected), connected=len(connected),
            waiting=len(self.there) - len(connected),
        )  # fmt: skip
        if answer is Answer.UNKNOWN_EPOCH:
            raise InvalidValue(
                f"topic {self._topic} never had epoch {request.brings}; "
                + (f"it has epoch {head.epoch}" if head.epoch >= 0 else "it has none yet"),
                hint=f"`txnctl producers show {self._topic}` has the history.",
                topicEpoch=errors.shown_epoch(head.epoch),
            )
        if answer is Answer.FENCED:
            why = "others produced, or owned the topic, while it was gone" if may_resume is False else None
            name = request.name or (f"of session {resume.number}" if resume is not None else None)
            raise self.fenced(name, request.brings, why)
        if answer is Answer.BUSY:
            raise errors.busy(self._batch, self._batch.lock_file, self._topic, request.mode, self.there)
        return answer

    def _check_not_connected(self, token: Token) -> None:
        for each in self.there:
            if token.names(each):
                shown = errors.described(self._batch, self._batch.lock_file, each)
                raise ProducerBusy(
                    f"session {each.number} of topic {self._topic} is connected: {shown}",
                    hint="Publish through it with --session, or close it: `txnctl producers close`.",
                    topic=self._topic,
                )

    def _check_name(self, name: str | None) -> None:
        """A connected producer has its name alone. A waiting one may bear it: it connects when that one has left."""
        for each in self.there:
            if each.name == name and not each.is_waiting:
                raise errors.name_taken(self._batch, self._batch.lock_file, self._topic, each)

    def _new_session(self, request: Request, hold: Liveness) -> ProducerSession:
        self._batch.superblock.last_producer += 1
        number = self._batch.superblock.last_producer
        name = request.name or self._kept_name or f"producer-{number}"
        store_id = self._batch.superblock.store_id
        session = ProducerSession(store_id, self._topic_id, number, name, request.mode)
        session.connected_ms = self._batch.now_ms
        _put_on(session, hold, self._batch)
        return session

    def _resume(self, mode: AccessMode, hold: Liveness, *, keeps_token: bool) -> ProducerSession:
        """Connect the last owner again, under its epoch."""
        last = ownership.find(self._batch, self._topic_id, self.head.epoch)
        assert last is not None and last.session is not None, "who resumes was the last owner"
        session = last.session
        session.mode, session.connected_ms = mode, self._batch.now_ms
        if not keeps_token:
            session.renew_token()
        _put_on(session, hold, self._batch)
        sessions.save(self._batch, session)
        ownership.go_on(self._batch, self._topic_id, self.head.epoch, session)
        state.save(self._batch, self._topic_id, self.head)
        return session

    def _evict(self, how: str = "fenced") -> None:
        for each in self.there:
            _remove(self._batch, self.head, each, how)
        self.head.owner_session = 0
        self.there = []

    def _grant(self, session: ProducerSession, spare: int) -> None:
        """Give the next epoch to a session."""
        aborted = self._raise_epoch(session.name, spare)
        session.epoch = self.head.epoch
        self.head.owner_session = session.number
        sessions.save(self._batch, session)
        ownership.grant(
            self._batch, self._topic_id, self.head, session, session.mode.value, session.owner, len(aborted)
        )
        state.save(self._batch, self._topic_id, self.head)

    def _raise_epoch(self, who: str, spare: int) -> list[int]:
        """The next epoch; the transactions that this aborted. The caller saves the head."""
        epoch = self.head.epoch + 1
        state.save(self._batch, self._topic_id, self.head)
        aborted = self._transactions.end_fenced(
            self._batch, self._topic_id, epoch, spare, f"{who} took the topic over, epoch {epoch}"
        )
        faults.reach("producer.after_fencing")
        self.head = state.load(self._batch, self._topic_id)
        assert self.head.epoch == epoch - 1, "each grant raises the epoch by one (invariant 9)"
        self.head.epoch = epoch
        self.head.session_changes += 1
        return aborted


def leave(batch: WriteBatch, mine: ProducerSession) -> None:
    """End a session, connected or waiting, for good, if it is still there."""
    session = sessions.find(batch, mine.topic_id, mine.number)
    if session is not None and session.is_same(mine):
        head = state.load(batch, mine.topic_id)
        _remove(batch, head, session, "closed")
        state.save(batch, mine.topic_id, head)


def lose(batch: WriteBatch, mine: ProducerSession, transactions: Transactions) -> None:
    """The last owner, whose lease has ended, has lost its topic: it can never come back, nor can what it had begun."""
    head = state.load(batch, mine.topic_id)
    if head.owner_session == mine.number:
        _end_former_owner(
            batch, mine.topic_id, head, 0, transactions, "its producer's lease ended, and others wait"
        )


def publishes(
    batch: WriteBatch, topic_id: int, head: TopicState, number: int, txn: int, transactions: Transactions
) -> TopicState:
    """Note who publishes next, for whom the topic must be open; the head, before the message is appended.

    The last publish of each session is known without a write each time: that of the latest publisher is the topic's.

    Args:
        number: of the session; 0 for a producer that is not connected between sends.
        txn: the transaction it publishes in; 0 for none.
    """
    if head.owner_session not in (0, number):
        why = "the owner whose messages it held was gone when others published"
        head = _end_former_owner(batch, topic_id, head, txn, transactions, why)
    if head.publish_session != number:
        before = sessions.find(batch, topic_id, head.publish_session) if head.publish_session else None
        if before is not None:
            before.last_publish_ms = head.last_publish_ms
            sessions.save(batch, before)
        head.publish_session = number
    return head


def _end_former_owner(
    batch: WriteBatch, topic_id: int, head: TopicState, spare: int, transactions: Transactions, why: str
) -> TopicState:
    """The last owner, dead or expired, is fenced from here on, by no new epoch but by who publishes or waits.

    What it had sent in open transactions must not appear in another's past. Under its epoch nobody else has published
    yet, so all that is open on the topic is its own, but for what a publisher itself sends in.
    """
    gone = sessions.find(batch, topic_id, head.owner_session)
    if gone is not None:
        _remove(batch, head, gone, "dead" if gone.lease else "expired")
    head.owner_session = 0
    state.save(batch, topic_id, head)
    transactions.end_fenced(batch, topic_id, head.epoch, spare, why)
    return state.load(batch, topic_id)


def last_publish_ms(head: TopicState, session: ProducerSession) -> int | None:
    """When a session published last; None if it has not."""
    return head.last_publish_ms if head.publish_session == session.number else session.last_publish_ms


def _may_come_back(batch: WriteBatch, session: ProducerSession) -> bool:
    """A leased Shared session whose lease ended not long ago: its next publish connects it again."""
    is_shared = not session.lease and not session.mode.is_exclusive
    return is_shared and batch.now_ns < session.until_ns + SESSION_LEASE_MS_MAX * 1_000_000


def _put_on(session: ProducerSession, hold: Liveness, batch: WriteBatch) -> None:
    session.lease, session.lease_ms = hold.lease, hold.lease_ms
    session.until_ns = batch.now_ns + hold.lease_ms * 1_000_000 if hold.lease_ms else 0
    session.owner_fields = hold.owner.fields()


def _remove(batch: WriteBatch, head: TopicState, session: ProducerSession, how: str) -> None:
    """Delete a session's record. The caller saves the head.

    Args:
        how: closed, dead, expired, fenced or restored; only a dead or expired owner may resume.
    """
    batch.delete(PRODUCERS, key2(session.topic_id, session.number))
    head.session_changes += 1
    if session.is_owner:
        successor = head.epoch + 1 if how == "fenced" else None
        ownership.end(batch, session.topic_id, head, how, successor)
        if how not in ("dead", "expired"):
            head.owner_session = 0

"""A plain model of who may produce to a topic: sessions, epochs, waiters, leases, and the transactions among them.

It is semantics section 6 written down once more, without records, sweeps or counters: everything is asked of the list
of all sessions that ever were, at the moment at which it is asked.
"""

from __future__ import annotations

from typing import Any

from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, SHARED, WAITING

EXCLUSIVE_MODES = (EXCLUSIVE, WAITING, FENCING)
OPEN, COMMITTED, ABORTED = "OPEN", "COMMITTED", "ABORTED"


class Process:
    """A process; everything attached to it ends with it."""

    def __init__(self) -> None:
        self.alive = True


class Session:
    """One producer's connection, from its asking to its end.

    Attributes:
        number: in the order of asking.
        holder: the process that it is attached to; None for a leased one, which lives until `until_ns`.
        waits_ns: when its patience ends, while it waits.
        brings, resumes, spares: what it asked with: an epoch, a former session, a transaction.
        ended: closed or evicted, for good. A dead or expired one has not ended: it may come back.
    """

    def __init__(
        self, number: int, mode: str, name: str | None, holder: Process | None, lease_ns: int
    ) -> None:
        self.number = number
        self.mode = mode
        self.name = name
        self.holder = holder
        self.lease_ns = lease_ns
        self.until_ns = self.waits_ns = 0
        self.waiting = self.ended = False
        self.epoch = -1
        self.brings: int | None = None
        self.resumes: Session | None = None
        self.spares: Txn | None = None
        self.token = ""

    @property
    def is_owner(self) -> bool:
        return self.mode != SHARED and not self.waiting

    def alive(self, now_ns: int) -> bool:
        if self.ended:
            return False
        return self.holder.alive if self.holder is not None else now_ns < self.until_ns


class Txn:
    """A detached transaction, and the topics that it has messages on."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.state = OPEN
        self.topics: set[Topic] = set()


class Topic:
    """One life of a topic.

    Attributes:
        last_owner: the session that may resume; None once it ended, or somebody else produced or took over.
        log: value, epoch and transaction of every message.
        grants: the mode of each epoch of this life.
    """

    def __init__(self, name: str, epoch: int) -> None:
        self.name = name
        self.epoch = epoch
        self.exists = True
        self.sessions: list[Session] = []
        self.last_owner: Session | None = None
        self.log: list[tuple[bytes, int, Txn | None]] = []
        self.grants: list[tuple[int, str]] = []


class Model:
    """All topics and transactions. Every method that changes something assumes that its `…_problems` is empty."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.topics: dict[str, Topic] = {}
        self.past: list[Topic] = []
        self.txns: list[Txn] = []
        self.numbers = 0

    # What there is

    def there(self, topic: Topic) -> list[Session]:
        """Whoever is connected or waits."""
        return [each for each in topic.sessions if each.alive(self.now_ns)]

    def connected(self, topic: Topic) -> list[Session]:
        return [each for each in self.there(topic) if not each.waiting]

    def queue(self, topic: Topic) -> list[Session]:
        return [each for each in self.there(topic) if each.waiting]

    def sessions(self) -> list[Session]:
        """All that ever were."""
        return [each for topic in [*self.past, *self.topics.values()] for each in topic.sessions]

    def open_txns(self) -> list[Txn]:
        return [txn for txn in self.txns if txn.state == OPEN]

    def topic_of(self, session: Session) -> Topic:
        return next(topic for topic in [*self.past, *self.topics.values()] if session in topic.sessions)

    def admission(self, topic: Topic) -> dict[str, str]:
        """The decision table."""
        there, connected = self.there(topic), self.connected(topic)
        taken = any(each.is_owner for each in connected) or len(there) > len(connected)
        return {
            SHARED: "busy" if taken else "connects",
            EXCLUSIVE: "busy" if there else "owns",
            WAITING: "waits" if there else "owns",
            FENCING: "takes over" if there else "owns",
        }

    # Connecting

    def connect_problems(
        self, topic: Topic, mode: str, name: str | None, brings: int | None, resumes: Session | None
    ) -> set[str]:
        """Why a producer that asks for this is refused."""
        if not topic.exists:
            return {"TopicNotFound"}
        if resumes is not None and resumes in self.there(topic):
            return {"ProducerBusy"}
        if brings is not None and brings != topic.epoch:
            return {"InvalidValue"} if brings > topic.epoch else {"ProducerFenced"}
        if resumes is not None and topic.last_owner is not resumes:
            return {"ProducerFenced"}
        if self.admission(topic)[mode] == "busy":
            return {"ProducerBusy"}
        if mode == SHARED and name is not None and name in [each.name for each in self.connected(topic)]:
            return {"ProducerBusy"}
        return set()

    def connect(
        self,
        topic: Topic,
        mode: str,
        name: str | None,
        holder: Process | None,
        lease_ns: int,
        brings: int | None,
        resumes: Session | None,
        spares: Txn | None,
    ) -> Session:
        """Let it in, or queue it up."""
        answer = self.admission(topic)[mode]
        if mode != SHARED:
            self._sweep(topic)
        if answer == "owns" and resumes is not None:
            self._hold(resumes, mode, holder, lease_ns)
            return resumes
        session = self._new_session(topic, mode, name if resumes is None else resumes.name)
        if answer == "waits":
            session.waiting, session.holder = True, holder
            session.brings, session.resumes, session.spares = brings, resumes, spares
            return session
        if answer == "takes over":
            self._evict(topic)
        self._hold(session, mode, holder, lease_ns)
        if answer == "connects":
            session.epoch = topic.epoch
        else:
            self._grant(topic, session, spares)
        return session

    def _new_session(self, topic: Topic, mode: str, name: str | None) -> Session:
        self.numbers += 1
        session = Session(self.numbers, mode, name, None, 0)
        topic.sessions.append(session)
        return session

    def _hold(self, session: Session, mode: str, holder: Process | None, lease_ns: int) -> None:
        session.mode, session.lease_ns = mode, lease_ns
        session.holder = None if lease_ns else holder
        session.until_ns = self.now_ns + lease_ns

    def _evict(self, topic: Topic) -> None:
        for each in self.there(topic):
            each.ended = True

    def _grant(self, topic: Topic, session: Session | None, spares: Txn | None, how: str = "") -> None:
        topic.epoch += 1
        topic.last_owner = session
        if session is not None:
            session.epoch = topic.epoch
        topic.grants.append((topic.epoch, how or (session.mode if session else "")))
        self._abort_open(topic, spares)

    def _abort_open(self, topic: Topic, spares: Txn | None) -> None:
        for txn in self.open_txns():
            if topic in txn.topics and txn is not spares:
                txn.state = ABORTED

    def _sweep(self, topic: Topic) -> None:
        """Somebody wants the topic for itself: Shared leases that have ended do not come back."""
        for each in topic.sessions:
            if each.mode == SHARED and not each.alive(self.now_ns):
                each.ended = True

    def look(
        self, topic: Topic, mine: Session, lease_ns: int, holder: Process
    ) -> tuple[set[str], Session | None]:
        """A waiting one looks: errors if its waiting has failed, the session that it owns the topic by, or neither."""
        if not topic.exists:
            return {"TopicNotFound", "ProducerFenced"}, None
        if mine.ended:
            return {"ProducerFenced"}, None
        there = self.there(topic)
        if any(not each.waiting or each.number < mine.number for each in there):
            if self.now_ns < mine.waits_ns:
                return set(), None
            mine.ended = True
            return {"WaitTimeout"}, None
        spares, resumes = mine.spares, mine.resumes
        problems = set()
        if mine.brings is not None and mine.brings != topic.epoch:
            problems.add("ProducerFenced")
        if resumes is not None and topic.last_owner is not resumes:
            problems.add("ProducerFenced")
        if spares is not None and spares.state != OPEN:
            problems.add("TransactionNotOpen")
        if problems or resumes is not None:
            mine.ended = True
        if problems:
            return problems, None
        self._sweep(topic)
        if resumes is not None:
            self._hold(resumes, mine.mode, holder, lease_ns)
            return set(), resumes
        mine.waiting = False
        self._hold(mine, mine.mode, holder, lease_ns)
        self._grant(topic, mine, spares)
        return set(), mine

    # Leaving

    def leave(self, topic: Topic, session: Session) -> None:
        """For good."""
        session.ended = True
        if topic.last_owner is session:
            topic.last_owner = None

    def fence(self, topic: Topic, waiting: bool) -> None:
        """By an operator: an owner that leaves at once. Who waits keeps its place, unless it is evicted as well."""
        self._sweep(topic)
        for each in self.there(topic) if waiting else self.connected(topic):
            each.ended = True
        self._grant(topic, None, None, "fence")

    def delete(self, topic: Topic) -> None:
        """By force."""
        for each in topic.sessions:
            each.ended = True
        for txn in self.open_txns():
            if topic in txn.topics:
                txn.state = ABORTED
        topic.exists = False
        self.past.append(topic)

    # Publishing

    def send_problems(self, topic: Topic, session: Session, borrowed: bool) -> set[str]:
        """Why a publish through a session is refused."""
        if not topic.exists:
            return {"ProducerFenced"} if self._is_there_again(topic) else {"TopicNotFound"}
        if session.ended:
            return {"ProducerFenced"}
        if session.alive(self.now_ns):
            return set()
        assert borrowed, "who sends itself is alive"
        if session.holder is not None:
            return {"ProducerFenced"}
        # A lease that has ended: it goes on if nobody took over, produced or waits.
        if session.mode == SHARED:
            names = [each.name for each in self.connected(topic) if each.name is not None]
            return {"ProducerBusy"} if session.name in names or self.queue(topic) else set()
        if self.queue(topic):
            return {"ProducerFenced"}
        if topic.last_owner is not session:
            return {"ProducerFenced"}
        return {"ProducerBusy"} if self.there(topic) else set()

    def _is_there_again(self, topic: Topic) -> bool:
        return self.topics[topic.name] is not topic and self.topics[topic.name].exists

    def passing_problems(self, topic: Topic, name: str | None) -> set[str]:
        """Why a publish of a Shared producer that is not connected is refused."""
        if not topic.exists:
            return {"TopicNotFound"}
        names = [each.name for each in self.connected(topic)]
        taken = self.admission(topic)[SHARED] == "busy" or (name is not None and name in names)
        return {"ProducerBusy"} if taken else set()

    def lose(self, topic: Topic, session: Session) -> None:
        """It was told that it is fenced: then it is so for good, with all that it had begun.

        The dead owner that others published for does not count: that one may come back, by another token.
        """
        if topic.last_owner is session and session.holder is None and not session.alive(self.now_ns):
            self.leave(topic, session)
            self._abort_open(topic, None)

    def send(self, topic: Topic, session: Session | None, value: bytes, txn: Txn | None) -> None:
        """Store a message; a lease is renewed by it. The open transactions of an owner that is gone end with it."""
        if session is not None and session.lease_ns:
            if session.mode != SHARED and not session.alive(self.now_ns):
                self._sweep(topic)
            session.until_ns = self.now_ns + session.lease_ns
        if topic.last_owner not in (None, session):
            assert topic.last_owner is not None
            self.leave(topic, topic.last_owner)
            self._abort_open(topic, txn)
        topic.log.append((value, topic.epoch, txn))
        if txn is not None:
            txn.topics.add(topic)

    # What can be read

    def visible(self, topic: Topic) -> list[bytes]:
        """READ_COMMITTED: up to the first message of an open transaction, without aborted ones."""
        found = []
        for value, _, txn in topic.log:
            if txn is not None and txn.state == OPEN:
                break
            if txn is None or txn.state == COMMITTED:
                found.append(value)
        return found

    def rows(self, topic: Topic) -> list[tuple[Any, ...]]:
        """Living sessions as `producer_rows` shows them: name, mode, epoch, owner, waiting, place, state."""
        connected = sorted(self.connected(topic), key=lambda each: each.number)
        queue = sorted(self.queue(topic), key=lambda each: each.number)
        rows = [
            (each.name, each.mode, each.epoch if each.epoch >= 0 else None, each.is_owner, False, None,
             "leased" if each.lease_ns else "alive")
            for each in connected
        ]  # fmt: skip
        return rows + [
            (each.name, each.mode, None, False, True, place, "alive") for place, each in enumerate(queue, 1)
        ]

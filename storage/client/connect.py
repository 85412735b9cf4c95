"""Connecting a producer: at once, or after waiting for its turn.

Who waits holds no view and no lock of the store meanwhile: it sleeps until somebody commits, looks every half second
for the death of those before it, and promotes itself in one store transaction when nobody is before it any more.
However the waiting ends, by an interrupt too, nothing of it stays behind.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from storage.client.transaction import Transaction, txn_number
from storage.disk.connection import Connection
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidName, InvalidValue, SessionNotFound, TxnctlError, WaitTimeout
from storage.limits import DEATH_CHECK_S, SESSION_LEASE_MS_MAX
from storage.process.clock import nanoseconds
from storage.topic import catalogue as topics
from storage.topic.catalogue import Topic
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import departure, errors, session as sessions
from storage.topic.producers.access_mode import AccessMode
from storage.topic.producers.admission import AccessRequest, Liveness, ProducerRegistry
from storage.topic.producers.session import ProducerSession, Token
from storage.txn import reaper
from storage.txn.coordinator import Coordinator
from storage.txn.fence import Fence
from storage.values.names import LETTERS_PREFIX, check_name, named
from storage.values.txn_id import TxnID

OnTurn = Callable[[list[str]], None]
"""Told once, when a producer begins to wait, who is before it."""

_LEAVE_S = 0.5
"""Who gives up waits no longer than this for the writer gate to give its place back."""

_LOOK_S = 0.02
"""A busy store commits often: a waiting producer looks no oftener than this."""


class ConnectOptions:
    """What a producer asks of a topic, checked; see `Store.create_producer` and `Store.open_session`.

    Attributes:
        lease_ms: of a session for the shell, Exclusive if no mode is named; 0 for one that is attached to this
            process, Shared if none is.
        create_topic: create the topic if it is missing.
    """

    __slots__ = ("create_topic", "lease_ms", "on_wait", "request", "timeout", "topic")

    def __init__(
        self,
        topic: str,
        access_mode: AccessMode | str | None,
        *,
        name: str | None = None,
        epoch: int | None = None,
        resume: str | None = None,
        spare: Transaction | TxnID | str | None = None,
        lease: float | None = None,
        timeout: float | None = None,
        create_topic: bool = False,
        on_wait: OnTurn | None = None,
    ) -> None:
        """Raises:
        InvalidName, InvalidValue, InvalidTxnId
        """
        unnamed = AccessMode.SHARED if lease is None else AccessMode.EXCLUSIVE
        mode = named(AccessMode, access_mode, "access mode") or unnamed
        txn_id = 0 if spare is None else txn_number(spare)
        if not mode.is_exclusive and (epoch is not None or resume is not None):
            raise InvalidValue(
                "a Shared producer brings no epoch and resumes no session: it just connects again",
                hint="Epoch and session belong to the exclusive access modes.",
            )
        if epoch is not None and (type(epoch) is not int or not 0 <= epoch < 1 << 62):
            raise InvalidValue(f"a topic's epoch is a whole number of 0 or more, not {epoch!r}")
        if resume is not None and name is not None:
            raise InvalidValue(
                "a session that is resumed keeps its name", hint="Leave the producer's name out."
            )
        self.topic = topic
        self.request = AccessRequest(
            mode,
            None if name is None else _check_given_name(name),
            epoch,
            None if resume is None else Token(resume),
            txn_id,
        )
        self.lease_ms = 0 if lease is None else _lease_ms(lease)
        self.timeout = timeout
        self.create_topic = create_topic
        self.on_wait = on_wait

    def topic_in(self, batch: WriteBatch) -> Topic:
        """Raises:
        TopicNotFound
        """
        return (
            topics.find_or_create(batch, self.topic) if self.create_topic else topics.get(batch, self.topic)
        )


def connect(
    connection: Connection, coordinator: Coordinator, ask: ConnectOptions
) -> tuple[Topic, ProducerSession]:
    """Connect a producer as asked; topic and session.

    Raises:
        TopicNotFound, InvalidName, InvalidValue
        ProducerBusy, ProducerFenced
        TransactionNotFound, TransactionNotOpen, TransactionTimedOut: the one to be spared cannot be used.
        WaitTimeout: its turn did not come in time.
    """
    return _Connecting(connection, coordinator, ask).run()


class _Connecting:
    """One attempt: asks once, then waits if it has to."""

    def __init__(self, connection: Connection, coordinator: Coordinator, ask: ConnectOptions) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self._ask = ask
        self._fence = Fence(coordinator, connection.owner)
        self._made: list[ProducerSession] = []
        """What this attempt has put into the store, or has tried to."""

    def run(self) -> tuple[Topic, ProducerSession]:
        connection, ask = self._connection, self._ask
        until_ns = connection.clock.boot_ns() + nanoseconds(ask.timeout, "a timeout")
        try:
            topic, session = connection.write(self._admit, naming=ask.request.spare)
            if session.is_waiting:
                session = self._wait(topic, session, until_ns)
        except BaseException:
            self._withdraw()
            raise
        return topic, session

    def _withdraw(self) -> None:
        """Whether it was connected, promoted or not; if the gate is held, our next write does it, or our death."""
        for session in self._made:
            with suppress(TxnctlError):
                self._connection.write_sometime(partial(departure.leave, departing=session), _LEAVE_S)

    def _hold(self, batch: WriteBatch, *, attached: bool) -> Liveness:
        if self._ask.lease_ms and not attached:
            return Liveness(self._connection.owner, lease_ms=self._ask.lease_ms)
        return Liveness(self._connection.owner, lease=self._connection.lease(batch))

    def _check_spare(self, batch: WriteBatch) -> None:
        spare = self._ask.request.spare
        if spare:
            self._coordinator.use(batch, spare, self._connection.owner)

    def _admit(self, batch: WriteBatch) -> tuple[Topic, ProducerSession]:
        ask, request = self._ask, self._ask.request
        topic = ask.topic_in(batch)
        if request.resume is not None:
            check_is_of(batch, topic, request.resume)
        self._check_spare(batch)
        is_shared = not request.mode.is_exclusive
        registry = ProducerRegistry(
            OpenTopic(batch, topic.topic_id, topic.name), self._fence, is_shared=is_shared
        )
        # Who may have to wait does so as long as its process lives.
        waits = request.mode.waits and bool(registry.present)
        session = registry.admit(request, self._hold(batch, attached=waits))
        self._made.append(session)
        return topic, session

    def _wait(self, topic: Topic, session: ProducerSession, until_ns: int) -> ProducerSession:
        """Wait until a session is promoted; the session as it is then."""
        connection, clock, spare = self._connection, self._connection.clock, self._ask.request.spare
        is_told = self._ask.on_wait is None
        while True:
            seen, before, is_work_left = self._look(topic, session)
            if not before:
                session = connection.write(partial(self._promote, topic=topic, mine=session), naming=spare)
                if not session.is_waiting:
                    return session
            elif is_work_left:
                connection.write(lambda _: None)
            if not is_told and self._ask.on_wait is not None:
                is_told = True
                self._ask.on_wait(self._described(before))
            now_ns = clock.boot_ns()
            if now_ns >= until_ns:
                first = self._described(before[:1]) or ["nobody"]
                raise WaitTimeout(
                    f"topic {topic.name} did not become free within {self._ask.timeout:g} s: {first[0]} is before us",
                    hint=f"`txnctl producers show {topic.name}` says who has it; ExclusiveWithFencing takes it over.",
                    topic=topic.name,
                )
            connection.wait_for_commit(seen, min(until_ns, now_ns + int(DEATH_CHECK_S * 1e9)))
            clock.sleep(_LOOK_S)

    def _described(self, before: list[ProducerSession]) -> list[str]:
        with self._connection.view() as view:
            locks = self._connection.environment.lock_file
            return [errors.described(view, locks, each) for each in before]

    def _look(self, topic: Topic, mine: ProducerSession) -> tuple[int, list[ProducerSession], bool]:
        """The commit that is seen, who is before us, and whether there are transactions to reap.

        Nobody is before one that was evicted: promoting it says so.
        """
        locks = self._connection.environment.lock_file
        with self._connection.view() as view:
            _check_there(view, topic)
            there = sessions.living(view, topic.topic_id, locks)
            is_there = any(each.number == mine.number for each in there)
            before = [
                each for each in there if is_there and (not each.is_waiting or each.number < mine.number)
            ]
            return view.commit, before, reaper.is_due(view, locks)

    def _promote(self, batch: WriteBatch, topic: Topic, mine: ProducerSession) -> ProducerSession:
        _check_there(batch, topic)
        if sessions.find(batch, topic.topic_id, mine.number) is not None:
            self._check_spare(batch)
        registry = ProducerRegistry(OpenTopic(batch, topic.topic_id, topic.name), self._fence)
        session = registry.promote(mine, self._hold(batch, attached=False), self._ask.request.spare)
        self._made.append(session)
        return session


def _check_there(view: ReadView, topic: Topic) -> None:
    """Raises:
    TopicNotFound, ProducerFenced: the topic was deleted while we waited, and perhaps created again.
    """
    found = topics.get(view, topic.full_name)
    if found.topic_id != topic.topic_id:
        raise errors.recreated(topic.name, None, None)


def check_is_of(view: ReadView, topic: Topic, token: Token) -> None:
    """Raises:
    SessionNotFound: the token is one of another store or topic.
    ProducerFenced: its topic was deleted, and created again.
    """
    if token.is_of(view) and token.topic_id == topic.topic_id:
        return
    was = next((each.name for each in topics.every(view) if each.topic_id == token.topic_id), None)
    if token.is_of(view) and was is None and token.topic_id <= view.superblock.last_topic:
        raise errors.recreated(topic.name, f"of session {token.number}", None)
    raise SessionNotFound(
        f"session {token.number} is not one of topic {topic.name}",
        hint=f"It is one of {was}." if token.is_of(view) and was else "It is one of another store.",
        topic=topic.name,
    )


def _lease_ms(seconds: float) -> int:
    lease_ms = nanoseconds(seconds, "a lease") // 1_000_000
    if not 0 < lease_ms <= SESSION_LEASE_MS_MAX:
        raise InvalidValue(f"a lease of {seconds:g} s is not between 1 ms and 24 h", leaseMs=lease_ms)
    return lease_ms


def _check_given_name(name: str) -> str:
    """Return a name that an application may give to a producer.

    Raises:
        InvalidName
    """
    check_name("producer name", name)
    prefix, _, number = name.rpartition("-")
    if (prefix == "producer" and number.isdigit()) or name.startswith(LETTERS_PREFIX):
        raise InvalidName(
            f"{name} is a name that the store gives", hint="Choose another name for the producer."
        )
    return name

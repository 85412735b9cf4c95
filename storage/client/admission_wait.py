"""Connecting a producer: at once, or after waiting in turn.

A waiting producer holds no view and no lock of the store: it sleeps until a commit, looks every half second for deaths
among the producers before it, and is promoted in one store transaction when none is left. However the waiting ends, by
an interrupt too, nothing stays behind.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from storage.actions import Action, Hint
from storage.client.connect_options import ConnectOptions
from storage.disk.connection import Connection
from storage.disk.view import ReadView, WriteBatch
from storage.errors import SessionNotFound, TxnctlError, WaitTimeout, WriterBusy
from storage.limits import DEATH_CHECK_S
from storage.process.clock import nanoseconds
from storage.topic import catalogue as topics
from storage.topic.catalogue import Topic
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import errors, session as sessions, session_end
from storage.topic.producers.admission import ProducerRegistry, SessionLifetime
from storage.topic.producers.session import ProducerSession, Token
from storage.txn import reaper
from storage.txn.coordinator import Coordinator
from storage.txn.fenced_txns import FencedTransactions

_LEAVE_S = 0.5
"""How long a producer that gives up waits for the writer gate, to leave the queue."""

_LOOK_S = 0.02
"""The shortest time from one look of a waiting producer to the next: a busy store commits more often."""


def connect(
    connection: Connection, coordinator: Coordinator, options: ConnectOptions
) -> tuple[Topic, ProducerSession]:
    """Connect a producer; topic and session.

    Raises:
        TopicNotFound, InvalidName, InvalidValue
        ProducerBusy, ProducerFenced
        TransactionNotFound, TransactionNotOpen, TransactionTimedOut: the transaction to be spared cannot be used.
        WaitTimeout: the turn did not come in time.
    """
    return _ConnectAttempt(connection, coordinator, options).connect_or_wait()


class _ConnectAttempt:
    """Asks for admission once, then waits if the answer is to wait."""

    def __init__(self, connection: Connection, coordinator: Coordinator, options: ConnectOptions) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self._options = options
        self._open_transactions = FencedTransactions(coordinator, connection.identity)
        self._made: list[ProducerSession] = []
        """The sessions that were put into the store by this attempt, or perhaps were."""

    def connect_or_wait(self) -> tuple[Topic, ProducerSession]:
        """See `connect`."""
        connection, options = self._connection, self._options
        until_ns = connection.clock.boot_ns() + nanoseconds(options.wait.timeout, "a timeout")
        try:
            topic, session = connection.write(
                self._admit, naming=options.request.spare, timeout_s=connection.gate_s(until_ns)
            )
            if session.is_waiting:
                session = self._wait(topic, session, until_ns)
        except BaseException:
            self._withdraw()
            raise
        return topic, session

    def _withdraw(self) -> None:
        """Leave the topic, connected or waiting. Behind a held gate the next write of this process leaves."""
        for session in self._made:
            with suppress(TxnctlError):
                self._connection.write_sometime(partial(session_end.leave, departing=session), _LEAVE_S)

    def _lifetime(self, batch: WriteBatch, *, attached: bool) -> SessionLifetime:
        if self._options.lease_ms and not attached:
            return SessionLifetime(self._connection.identity, lease_ms=self._options.lease_ms)
        return SessionLifetime(self._connection.identity, lease=self._connection.lease(batch))

    def _check_spare(self, batch: WriteBatch) -> None:
        spare = self._options.request.spare
        if spare:
            self._coordinator.use(batch, spare, self._connection.identity)

    def _admit(self, batch: WriteBatch) -> tuple[Topic, ProducerSession]:
        request = self._options.request
        topic = self._options.find_topic(batch)
        if request.resume is not None:
            check_is_of(batch, topic, request.resume)
        self._check_spare(batch)
        opened = OpenTopic.load(batch, topic.topic_id, topic.name)
        registry = ProducerRegistry(opened, self._open_transactions, request=request)
        # A producer that may have to wait does so as long as its process lives.
        waits = request.mode.waits and bool(registry.present)
        session = registry.admit(request, self._lifetime(batch, attached=waits))
        self._made.append(session)
        return topic, session

    def _wait(self, topic: Topic, session: ProducerSession, until_ns: int) -> ProducerSession:
        """Wait until a session is promoted; the promoted session."""
        connection, wait = self._connection, self._options.wait
        clock, spare = connection.clock, self._options.request.spare
        is_told = wait.on_wait is None
        while True:
            looked_ns = clock.boot_ns()
            seen, first, is_work_left = self._look(topic, session)
            gate_s = connection.gate_s(until_ns)
            try:
                if first is None:
                    promote = partial(self._promote, topic=topic, waiting=session)
                    session = connection.write(promote, naming=spare, timeout_s=gate_s)
                    if not session.is_waiting:
                        return session
                elif is_work_left:
                    connection.write(lambda _: None, timeout_s=gate_s)
            except WriterBusy:
                if clock.boot_ns() < until_ns:
                    raise
            if not is_told and wait.on_wait is not None:
                is_told = True
                wait.on_wait(self._before(topic, session))
            now_ns = clock.boot_ns()
            if now_ns >= until_ns:
                raise self._wait_timeout(topic, first)
            connection.wait_for_commit(seen, min(until_ns, now_ns + int(DEATH_CHECK_S * 1e9)))
            rest_s = _LOOK_S - (clock.boot_ns() - looked_ns) / 1e9
            if rest_s > 0:
                clock.sleep(rest_s)

    def _wait_timeout(self, topic: Topic, first: ProducerSession | None) -> WaitTimeout:
        described = "nobody"
        if first is not None:
            with self._connection.view() as view:
                described = errors.described(view, self._connection.environment.locks, first)
        timeout = self._options.wait.timeout
        return WaitTimeout(
            f"topic {topic.name} did not become free within {timeout:g} s: {described} is before us",
            hint=Hint(
                "`{}` says who has it; ExclusiveWithFencing takes it over.",
                Action("store.reports.show_producers", topic.name),
            ),
            topic=topic.name,
        )

    def _before(self, topic: Topic, waiting: ProducerSession) -> list[str]:
        """Every session before the waiting one, in words."""
        locks = self._connection.environment.locks
        with self._connection.view() as view:
            before = sessions.before(view, topic.topic_id, locks, waiting.number)
            return [errors.described(view, locks, session) for session in before]

    def _look(self, topic: Topic, waiting: ProducerSession) -> tuple[int, ProducerSession | None, bool]:
        """The commit that is seen, the first session before the waiting one, and whether there is work for the reaper.

        No session is before an evicted one, so that a promotion is tried and raises the eviction.
        """
        locks = self._connection.environment.locks
        with self._connection.view() as view:
            _check_not_recreated(view, topic)
            first = next(sessions.before(view, topic.topic_id, locks, waiting.number), None)
            return view.commit, first, reaper.is_due(view, locks)

    def _promote(self, batch: WriteBatch, topic: Topic, waiting: ProducerSession) -> ProducerSession:
        _check_not_recreated(batch, topic)
        if sessions.find(batch, topic.topic_id, waiting.number) is not None:
            self._check_spare(batch)
        registry = ProducerRegistry(
            OpenTopic.load(batch, topic.topic_id, topic.name), self._open_transactions
        )
        lifetime = self._lifetime(batch, attached=False)
        session = registry.promote(waiting, lifetime, self._options.request.spare)
        self._made.append(session)
        return session


def _check_not_recreated(view: ReadView, topic: Topic) -> None:
    """Raises:
    TopicNotFound, ProducerFenced: the topic was deleted during the wait, and perhaps created again.
    """
    if topics.get(view, topic.full_name).topic_id != topic.topic_id:
        raise errors.recreated(topic.name, None, None)


def check_is_of(view: ReadView, topic: Topic, token: Token) -> None:
    """See that the session of a token belongs to a topic.

    Raises:
        SessionNotFound: the session belongs to a different store or topic.
        ProducerFenced: the topic of the session was deleted, and created again.
    """
    if token.is_of(view) and token.topic_id == topic.topic_id:
        return
    names = (entry.name for entry in topics.every(view) if entry.topic_id == token.topic_id)
    actual = next(names, None)
    if token.is_of(view) and actual is None and token.topic_id <= view.superblock.last_topic:
        raise errors.recreated(topic.name, f"of session {token.number}", None)
    raise SessionNotFound(
        f"session {token.number} is not one of topic {topic.name}",
        hint=f"It is one of {actual}." if token.is_of(view) and actual else "It is one of another store.",
        topic=topic.name,
    )

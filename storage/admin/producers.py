"""Fence the producers of a topic, and close sessions."""

from __future__ import annotations

from storage import audit_trail
from storage.admin import abort_counts
from storage.admin.abort_counts import Unblocked
from storage.admin.audited_change import Changed, ChangeRequest, run_change
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.json_form import Flat
from storage.reports import producers
from storage.reports.producers import ProducerRow
from storage.topic import catalogue as topics, state
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import session as sessions, session_end, session_index
from storage.topic.producers.admission import ProducerRegistry
from storage.topic.producers.errors import shown_epoch
from storage.topic.producers.session import Token
from storage.txn.fenced_txns import FencedTransactions
from storage.values.arguments import check_flags
from storage.values.named_tuple import NamedTuple
from storage.values.txn_id import TxnID


class ProducersFenced(NamedTuple):
    """The effects of fencing a topic."""

    topic: str
    name: str
    topic_epoch_before: int | None
    topic_epoch: int
    evicted: list[ProducerRow]
    waiting: list[ProducerRow]
    transactions_aborted: list[TxnID]
    messages_discarded: int
    acknowledgements_released: int
    unblocks: dict[str, Unblocked]


class SessionClosed(NamedTuple):
    """The closed session, and the name of the next producer in the queue."""

    row: Flat[ProducerRow]
    next: str | None
    dry_run: bool


class ProducerAdmin:
    """Changes of the producers connected to topics, as `store.admin.producers`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def fence_producers(
        self, topic: str, *, waiting: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> Changed[ProducersFenced]:
        """Evict the connected producers of a topic and raise its epoch by one.

        Open transactions with messages on the topic are aborted. Producers in the queue keep their places, and the
        next is promoted.

        Args:
            waiting: evict the queue as well.

        Raises:
            TopicNotFound
        """
        check_flags(waiting=waiting, dry_run=dry_run)
        process, coordinator = self._engine.process, self._engine.coordinator

        def change(batch: WriteBatch) -> ProducersFenced:
            entry, transactions = topics.get(batch, topic), FencedTransactions(coordinator, process)
            registry = ProducerRegistry(OpenTopic.load(batch, entry.topic_id, entry.name), transactions)
            counted = abort_counts.before(batch, entry.topic_id)
            before, locks = registry.topic.state, batch.locks
            rows = {
                session.number: producers.row_of(batch, locks, entry, before, session)
                for session in registry.present
            }
            epoch = shown_epoch(before.epoch)
            evicted, aborted = registry.fence_producers(process, "fence", spares_waiting=not waiting)
            every = transactions.ended + transactions.ended_owned
            effects = [effect for ended in every for effect in ended.effects]
            return ProducersFenced(
                topic=entry.full_name, name=entry.name, topic_epoch_before=epoch,
                topic_epoch=registry.topic.state.epoch, evicted=[rows[session.number] for session in evicted],
                waiting=[rows[session.number] for session in registry.present],
                transactions_aborted=[TxnID(txn) for txn in aborted],
                messages_discarded=sum(ended.record.messages for ended in transactions.ended),
                acknowledgements_released=sum(ended.record.acknowledgements for ended in transactions.ended),
                unblocks=abort_counts.unblocked(
                    counted, abort_counts.after(batch, entry.topic_id, counted, effects)
                ),
            )  # fmt: skip

        return run_change(self._engine, ChangeRequest("producers fence", topic, dry_run, reason), change)

    def close_session(
        self, session: str, *, dry_run: bool = False, reason: str | None = None
    ) -> SessionClosed:
        """End a session. The topic is free, and the next producer in the queue is promoted.

        Raises:
            InvalidValue, SessionNotFound
        """
        check_flags(dry_run=dry_run)
        audit_trail.check_reason(reason)
        token, connection = Token(session), self._engine.connection

        def change(batch: WriteBatch) -> SessionClosed:
            topic, closed = producers.find_session(batch, token)
            topic_state = state.load(batch, topic.topic_id)
            row = producers.row_of(batch, batch.locks, topic, topic_state, closed)
            session_end.leave(batch, closed, connection.identity)
            queue = []
            if session_index.waiting(batch, topic.topic_id) != 0:
                living = sessions.living(batch, topic.topic_id, batch.locks)
                queue = [waiting for waiting in living if waiting.is_waiting]
            result = SessionClosed(row, queue[0].name if queue else None, dry_run)
            if reason is not None:
                process = connection.identity
                audit_trail.record(batch, process, "producers close", topic.full_name, reason, result)
            return result

        return connection.write(change, dry_run=dry_run)

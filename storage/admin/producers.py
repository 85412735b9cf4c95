"""Fence the producers of a topic, and close sessions."""

from __future__ import annotations

from typing import Any

from storage import audit_trail
from storage.admin import abort
from storage.admin.change import ChangeRequest, run_change
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.reports import producers
from storage.topic import catalogue as topics, state
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import departure, errors, session as sessions
from storage.topic.producers.admission import ProducerRegistry
from storage.topic.producers.session import Token
from storage.txn.fence import Fence
from storage.values.txn_id import TxnID


class ProducerAdmin:
    """Changes of the producers connected to topics, as `store.admin.producers`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def fence_producers(
        self, topic: str, *, waiting: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """Evict the connected producers of a topic, as an owner that leaves at once: the epoch grows by one.

        Open transactions with messages on the topic are aborted. Who waits keeps its place, so that the next one is
        promoted.

        Args:
            waiting: evict those who wait as well.

        Raises:
            TopicNotFound
        """
        by = self._engine.process

        def change(batch: WriteBatch) -> dict[str, Any]:
            found = topics.get(batch, topic)
            fence = Fence(self._engine.coordinator, by)
            registry = ProducerRegistry(OpenTopic(batch, found.topic_id, found.name), fence)
            counted = abort.counts(batch, found.topic_id)
            before, locks = registry.topic.state, batch.lock_file
            rows = {
                each.number: producers.row(batch, locks, found, before, each, None)
                for each in registry.present
            }
            epoch = errors.shown_epoch(before.epoch)
            evicted, aborted = registry.fence(by, "fence", spares_waiting=not waiting)
            return {
                "topic": found.full_name, "name": found.name, "topicEpochBefore": epoch,
                "topicEpoch": registry.topic.state.epoch, "evicted": [rows[each.number] for each in evicted],
                "waiting": [rows[each.number] for each in registry.present],
                "transactionsAborted": [str(TxnID(txn)) for txn in aborted],
                "messagesDiscarded": sum(each.record.messages for each in fence.ended),
                "acknowledgementsReleased": sum(each.record.acknowledgements for each in fence.ended),
                "unblocks": abort.unblocked(counted, abort.counts(batch, found.topic_id)),
            }  # fmt: skip

        return run_change(self._engine, ChangeRequest("producers fence", topic, dry_run, reason), change)

    def close_session(
        self, session: str, *, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """End a session. The topic is free, and the next waiting producer is promoted.

        Raises:
            InvalidValue, SessionNotFound
        """
        audit_trail.check_reason(reason)
        token, connection = Token(session), self._engine.connection

        def change(batch: WriteBatch) -> dict[str, Any]:
            topic, closed = producers.find_session(batch, token)
            head = state.load(batch, topic.topic_id)
            found = producers.row(batch, batch.lock_file, topic, head, closed, None)
            departure.leave(batch, closed)
            waiting = [
                each for each in sessions.living(batch, topic.topic_id, batch.lock_file) if each.is_waiting
            ]
            result = {**found, "next": waiting[0].name if waiting else None, "dryRun": dry_run}
            if reason is not None:
                audit_trail.record(
                    batch, connection.owner, "producers close", topic.full_name, reason, result
                )
            return result

        return connection.write(change, dry_run=dry_run)

"""Deletion of a topic, by an operator."""

from __future__ import annotations

from storage.actions import Action, Hint, Keyword
from storage.admin.audited_change import (
    Changed,
    ChangeRequest,
    abort_holders,
    run_change,
    to_delete,
    transactions_on,
)
from storage.admin.purge import purge_deleted
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.errors import ObjectHeld
from storage.subscription import attached_consumers, catalogue as subscriptions
from storage.topic import catalogue as topics, state
from storage.topic.catalogue import Topic
from storage.topic.producers import session as sessions
from storage.txn import uncommitted_entries
from storage.values.named_tuple import NamedTuple
from storage.values.txn_id import TxnID


class TopicDeleted(NamedTuple):
    """The effects of deleting a topic: deleted messages and subscriptions, evicted clients, aborted transactions."""

    topic: str
    messages: int
    bytes: int
    subscriptions: list[str]
    consumers_evicted: list[str]
    producers_evicted: list[str]
    transactions_aborted: list[TxnID]


class TopicAdmin:
    """Audited changes of topics, as `store.admin.topics`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def delete_topic(
        self, name: str, *, force: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> Changed[TopicDeleted]:
        """Delete a topic with its subscriptions; a later topic of this name continues the ledger ids and the epoch.

        Args:
            force: abort open transactions on the topic, and evict its producers and consumers, instead of refusing.
            dry_run: change nothing, and return the effects that the deletion would have.
            reason: for the audit trail.

        Raises:
            TopicNotFound
            ObjectHeld: without `force`, an open transaction, a producer or a consumer uses the topic.
        """

        def change(batch: WriteBatch) -> TopicDeleted:
            with to_delete(Action("store.reports.list_topics")):
                topic = topics.get(batch, name)
            attached = list(subscriptions.every(batch, topic.topic_id))
            holders = {txn for txn, _ in uncommitted_entries.open_transactions(batch, topic.topic_id)}
            holders.update(*(transactions_on(batch, subscription) for subscription in attached))
            producers = [session.name for session in sessions.living(batch, topic.topic_id, batch.lock_file)]
            consumers = [
                consumer.name
                for subscription in attached
                for consumer in attached_consumers.living(
                    batch, batch.lock_file, subscription.subscription_id
                )
            ]
            if not force:
                _check_unheld(topic, consumers, producers, sorted(holders))
            aborted = abort_holders(self._engine, batch, f"topic {topic.name}", sorted(holders), force)
            topic_state = state.load(batch, topic.topic_id)
            for subscription in attached:
                subscriptions.delete(batch, subscription)
            topics.delete(batch, topic)
            return TopicDeleted(
                topic=topic.full_name, messages=topic_state.messages - topic_state.messages_trimmed,
                bytes=topic_state.bytes - topic_state.bytes_trimmed,
                subscriptions=[subscription.name for subscription in attached],
                consumers_evicted=consumers, producers_evicted=producers, transactions_aborted=aborted,
            )  # fmt: skip

        result = run_change(self._engine, ChangeRequest("topics delete", name, dry_run, reason), change)
        if not dry_run:
            purge_deleted(self._engine.connection)
        return result


def _check_unheld(topic: Topic, consumers: list[str], producers: list[str], holders: list[int]) -> None:
    """Check that a topic has no consumer, no producer and no open transaction.

    Raises:
        ObjectHeld: names every consumer, producer and transaction.
    """
    ids = [str(TxnID(txn)) for txn in holders]
    held = [
        f"{kind}: {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
        for kind, names in (
            ("consumers attached", consumers), ("producers connected", producers), ("open transactions", ids)
        )
        if names
    ]  # fmt: skip
    if held:
        raise ObjectHeld(
            f"topic {topic.name} has {'; '.join(held)}",
            hint=Hint(
                "Close them, and let the transactions end; or use {}, which evicts and aborts them.",
                Keyword("force", True),
            ),
            consumers=consumers,
            producers=producers,
            transactions=ids,
        )

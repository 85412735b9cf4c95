"""Delete topics."""

from __future__ import annotations

from typing import Any

from storage.admin.change import ChangeRequest, abort_holders, living_consumers, run_change, transactions_on
from storage.admin.purge import purge_deleted
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.errors import ObjectHeld
from storage.subscription import catalogue as subscriptions
from storage.topic import catalogue as topics, state
from storage.topic.catalogue import Topic
from storage.topic.producers import session as sessions
from storage.txn import buffer
from storage.values.txn_id import TxnID


class TopicAdmin:
    """Changes of topics, as `store.admin.topics`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def delete_topic(
        self, name: str, *, force: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> dict[str, Any]:
        """Delete a topic with its subscriptions. Its ledger ids and epoch go on counting if it is created again.

        Raises:
            TopicNotFound
            ObjectHeld: open transactions, producers or consumers hold it; `force` aborts and evicts them first.
        """

        def change(batch: WriteBatch) -> dict[str, Any]:
            topic = topics.get(batch, name)
            mine = list(subscriptions.every(batch, topic.topic_id))
            holders = sorted(
                {txn for txn, _ in buffer.open_transactions(batch, topic.topic_id)}.union(
                    *(transactions_on(batch, each) for each in mine)
                )
            )
            producers_there = [each.name for each in sessions.living(batch, topic.topic_id, batch.lock_file)]
            consumers = [attached.name for each in mine for attached in living_consumers(batch, each)]
            if not force:
                _check_unheld(topic, consumers, producers_there, holders)
            abort_holders(self._engine, batch, f"topic {topic.name}", holders, force)
            head = state.load(batch, topic.topic_id)
            for each in mine:
                subscriptions.delete(batch, each)
            topics.delete(batch, topic)
            return {
                "topic": topic.full_name, "messages": head.messages - head.messages_trimmed,
                "bytes": head.bytes - head.bytes_trimmed, "subscriptions": [each.name for each in mine],
                "consumersEvicted": consumers,
                "producersEvicted": producers_there,
                "transactionsAborted": [str(TxnID(txn)) for txn in holders],
            }  # fmt: skip

        result = run_change(self._engine, ChangeRequest("topics delete", name, dry_run, reason), change)
        if not dry_run:
            purge_deleted(self._engine.connection)
        return result


def _check_unheld(topic: Topic, consumers: list[str], producers_there: list[str], holders: list[int]) -> None:
    """Raises:
    ObjectHeld: naming all that holds the topic.
    """
    ids = [str(TxnID(txn)) for txn in holders]
    found = [
        f"{what}: {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
        for what, names in (
            ("consumers attached", consumers), ("producers connected", producers_there), ("open transactions", ids)
        )
        if names
    ]  # fmt: skip
    if found:
        raise ObjectHeld(
            f"topic {topic.name} has {'; '.join(found)}",
            hint="Close them, and let the transactions end; or use --force, which evicts and aborts them.",
            consumers=consumers,
            producers=producers_there,
            transactions=ids,
        )

"""What operators do to topics and to the producers that are connected to them."""

from __future__ import annotations

from typing import Any

from storage.admin import abort
from storage.admin.change import Changes
from storage.admin.purge import purge_deleted
from storage.disk.view import WriteBatch
from storage.errors import ObjectHeld
from storage.reports import producers
from storage.subscription import catalogue as subscriptions
from storage.topic import catalogue as topics, state
from storage.topic.catalogue import Topic
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import errors, session as sessions
from storage.topic.producers.admission import ProducerRegistry
from storage.txn import buffer
from storage.txn.fence import Fence
from storage.values.txn_id import TxnID


class TopicChanges(Changes):
    """See the module. Every method returns what it changed, or would change with `dry_run`."""

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
                    *(self._holders(batch, each) for each in mine)
                )
            )
            producers_there = [each.name for each in sessions.living(batch, topic.topic_id, batch.lock_file)]
            consumers = [attached.name for each in mine for attached in self._living(batch, each)]
            if not force:
                _check_unheld(topic, consumers, producers_there, holders)
            self._end_holders(batch, f"topic {topic.name}", holders, force)
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

        result = self._change("topics delete", name, change, dry_run, reason)
        if not dry_run:
            purge_deleted(self._connection)
        return result

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
        by = self._connection.owner

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

        return self._change("producers fence", topic, change, dry_run, reason)


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

"""A new incarnation of a store: all that was under way in the one before ends.

Open transactions are aborted, consumers detached and every topic epoch raised (docs/SEMANTICS.md), so that no process
that used the store before can go on in the new incarnation. Restoring a backup makes one, and so does a change of the
server that keeps the store: a promoted standby may lack the last commits of its primary.
"""

from __future__ import annotations

from storage import audit_trail
from storage.disk.codec import U64X2
from storage.disk.schema import LEASES, TXN_DEADLINES
from storage.disk.view import ReadView, WriteBatch
from storage.limits import TRANSACTION_IDS_SKIPPED
from storage.process.identity import ProcessIdentity
from storage.subscription import attached_consumers, catalogue as subscriptions
from storage.subscription.open_subscription import OpenSubscription
from storage.table import other_lives as other_versions
from storage.topic import catalogue as topics, descent, other_lives as other_positions, state as states
from storage.topic.open_topic import OpenTopic
from storage.topic.producers.admission import ProducerRegistry
from storage.txn import record as records
from storage.txn.coordinator import Coordinator
from storage.txn.fenced_txns import FencedTransactions
from storage.values.named_tuple import NamedTuple
from storage.values.txn_state import AbortReason


class Inheritance(NamedTuple):
    """The part of an incarnation that the next one has too, found before anything is ended.

    The incarnation before may decide otherwise what is open in the copy.

    Attributes:
        ledgers: by the id of a topic, the first ledger that is not closed and decided.
        version: the last version of tables at which nothing was undecided.
    """

    ledgers: dict[int, int]
    version: int

    @classmethod
    def load(cls, view: ReadView) -> Inheritance:
        """The inheritance of a store that shows one commit of the incarnation before."""
        ledgers = {
            topic.topic_id: descent.first_undecided(states.load(view, topic.topic_id))
            for topic in topics.every(view)
        }
        version = view.superblock.last_timestamp
        oldest = records.oldest_writer(view, version)
        return cls(ledgers, version if oldest is None else oldest.timestamp - 1)


class Reincarnation(NamedTuple):
    """The new incarnation, and the transactions and consumers ended in it."""

    incarnation: int
    transactions_aborted: int
    consumers_detached: int


def reincarnate(
    batch: WriteBatch,
    coordinator: Coordinator,
    process: ProcessIdentity,
    inherited: Inheritance,
    *,
    action: str,
    reason: str | None,
    how: str = "restore",
) -> Reincarnation:
    """Within a batch, end every transaction, session, consumer and lease of the incarnation before.

    Args:
        inherited: from the incarnation before.
        action: the action that the audit trail names.
        how: the way in which the topics' owners lost them.
    """
    batch.superblock.incarnation += 1
    other_versions.note_incarnation(batch, inherited.version)
    first_ledger = other_positions.begin_life(batch)
    # A delayed commit of the incarnation before, or of another one that began with the same backup, must not meet a
    # transaction of this one.
    batch.superblock.last_txn = max(batch.superblock.last_txn + TRANSACTION_IDS_SKIPPED, first_ledger)
    aborted = [U64X2.unpack(key)[1] for key in batch.keys(TXN_DEADLINES)]
    for txn in aborted:
        coordinator.abort(batch, txn, process, AbortReason.INCARNATION)
    detached = 0
    for topic in list(topics.every(batch)):
        # No producer is connected to the new incarnation: sessions end by it, not because their process died.
        registry = ProducerRegistry(
            OpenTopic.load(batch, topic.topic_id, topic.name),
            FencedTransactions(coordinator, process),
            is_swept=False,
        )
        registry.fence_producers(process, how)
        descent.note(
            batch, topic.topic_id, batch.superblock.incarnation - 1, inherited.ledgers[topic.topic_id]
        )
        for subscription in subscriptions.every(batch, topic.topic_id):
            opened = OpenSubscription(batch, subscription)
            consumers = attached_consumers.every(batch, subscription.subscription_id)
            attached_consumers.detach(opened, [consumer.consumer_id for consumer in consumers])
            detached += len(consumers)
            # However old the state is: nobody could come for a subscription of this incarnation before now.
            attached_consumers.note_use(opened)
    for key in list(batch.keys(LEASES)):
        batch.delete(LEASES, key)
    result = Reincarnation(batch.superblock.incarnation, len(aborted), detached)
    audit_trail.record(batch, process, action, "store", reason, result)
    return result

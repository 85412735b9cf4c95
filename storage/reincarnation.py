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
from storage.process.identity import ProcessIdentity
from storage.subscription import attached_consumers, catalogue as subscriptions
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics, descent, state as states
from storage.topic.open_topic import OpenTopic
from storage.topic.producers.admission import ProducerRegistry
from storage.txn.coordinator import Coordinator
from storage.txn.fenced_txns import FencedTransactions
from storage.values.named_tuple import NamedTuple
from storage.values.txn_state import AbortReason


class Reincarnation(NamedTuple):
    """The new incarnation, and the transactions and consumers ended in it."""

    incarnation: int
    transactions_aborted: int
    consumers_detached: int


def decided_ledgers(view: ReadView) -> dict[int, int]:
    """The first ledger of each topic that is not closed and decided."""
    return {
        topic.topic_id: descent.first_undecided(states.load(view, topic.topic_id))
        for topic in topics.every(view)
    }


def reincarnate(
    batch: WriteBatch,
    coordinator: Coordinator,
    process: ProcessIdentity,
    decided: dict[int, int],
    *,
    action: str,
    reason: str | None,
    how: str = "restore",
) -> Reincarnation:
    """Within a batch, end every transaction, session, consumer and lease of the incarnation before.

    Args:
        decided: as `decided_ledgers` has found before anything was ended: the original may decide otherwise what is
            open here.
        action: the action that the audit trail names.
        how: the way in which the topics' owners lost them.
    """
    batch.superblock.incarnation += 1
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
        descent.note(batch, topic.topic_id, batch.superblock.incarnation - 1, decided[topic.topic_id])
        for subscription in subscriptions.every(batch, topic.topic_id):
            opened = OpenSubscription(batch, subscription)
            for consumer in attached_consumers.every(batch, subscription.subscription_id):
                attached_consumers.detach(opened, consumer.consumer_id)
                detached += 1
            # However old the state is: nobody could come for a subscription of this incarnation before now.
            attached_consumers.note_use(opened)
    for key in list(batch.keys(LEASES)):
        batch.delete(LEASES, key)
    result = Reincarnation(batch.superblock.incarnation, len(aborted), detached)
    audit_trail.record(batch, process, action, "store", reason, result)
    return result

"""Hard retention: let ledgers go that a limit wants gone although something in them is not acknowledged.

A ledger is made free first, and trimmed as any other then: open transactions with messages or pending acknowledgements
in the ledger are aborted, and the cursors of subscriptions move over the ledger, which counts for each subscription the
committed messages that it had not acknowledged. A subscription that loses a message of a committed transaction loses
the rest of that transaction too, so that no transaction is torn.

Each step is a store transaction of bounded work and leaves a sound store; after a kill the next step goes on. A
transaction that is aborted, or lost whole, is one such step. Invariants 15 and 19.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from storage import audit_trail
from storage.disk.codec import corrupt, key1
from storage.disk.schema import PENDING
from storage.disk.view import ReadView, WriteBatch
from storage.limits import FORCED_STEP_ENTRIES, FORCED_STEP_SUBSCRIPTIONS, FORCED_STEP_TRANSACTIONS
from storage.process.identity import ProcessIdentity
from storage.subscription import catalogue as subscriptions, cursor as cursors, forced_acks, pending_ack
from storage.subscription.behind import subscriptions_behind
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.topic import catalogue as topics
from storage.topic.open_topic import OpenTopic
from storage.topic.trim import Trimmed
from storage.txn import record as records, uncommitted_entries
from storage.txn.coordinator import Coordinator
from storage.values.named_tuple import NamedTuple
from storage.values.position import MessageId, Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import AbortReason, TransactionState

REASON = "retention-hard"
"""The reason in the audit trail."""


class Loss(NamedTuple):
    """Committed messages that a subscription had not acknowledged, and lost."""

    subscription: str
    messages: int


class LedgersLost(NamedTuple):
    """Ledgers trimmed although they were not acknowledged, as the audit trail stores it."""

    ledgers: int
    messages: int
    bytes: int
    lost: list[Loss]


class TxnEnds(NamedTuple):
    """The coordinator, and the identity of the process to which aborts are ascribed."""

    coordinator: Coordinator
    process: Callable[[], ProcessIdentity]


class Freed(NamedTuple):
    """The effects of a step.

    Attributes:
        is_free: whether nothing holds a message of the ledgers any more.
        has_more: whether a further step has work now.
        entries: entries examined.
    """

    is_free: bool
    has_more: bool
    entries: int
    lost: list[Loss]
    aborted: list[TxnID]


def free_through(topic: OpenTopic[WriteBatch], end: Position, ends: TxnEnds, entries_max: int) -> Freed:
    """Do a step towards a topic of which nothing up to a position is held.

    A transaction that the batch names is not aborted: then nothing is done.

    Raises:
        CorruptStore: a message stays pending though no open transaction has it.
    """
    batch = topic.view
    # One more than a step frees: then there is more to do.
    attached = list(islice(subscriptions_behind(batch, topic.topic_id, end), FORCED_STEP_SUBSCRIPTIONS + 1))
    if batch.naming > 0 and _is_held(topic, attached, end, batch.naming):
        return Freed(is_free=False, has_more=False, entries=0, lost=[], aborted=[])
    holders = _some_holders(topic, attached, end)
    aborted = []
    for txn in holders[:FORCED_STEP_TRANSACTIONS]:
        why = f"hard retention of topic {topic.name} removes messages up to {end}"
        ends.coordinator.abort(batch, txn, ends.process(), AbortReason.RETENTION, why)
        aborted.append(TxnID(txn))
    if len(holders) > FORCED_STEP_TRANSACTIONS or (aborted and _some_holders(topic, attached, end)):
        return Freed(is_free=False, has_more=True, entries=0, lost=[], aborted=aborted)
    lost, entries = list[Loss](), 0
    for subscription in attached[:FORCED_STEP_SUBSCRIPTIONS]:
        opened = OpenSubscription(batch, subscription)
        while opened.cursor.mark_delete < end and entries < entries_max:
            before = opened.cursor.mark_delete
            done = forced_acks.acknowledge(opened, before, end, entries_max - entries, FORCED_STEP_ENTRIES)
            if opened.cursor.mark_delete <= before and not done.is_gathering:
                why = f"a message after {before} is pending, and no open transaction has it"
                raise corrupt(PENDING, key1(subscription.subscription_id), why)
            rest = forced_acks.acknowledge_rest(opened, done.txns, done.position)
            messages = done.messages + rest
            opened.cursor.lost += messages
            # A rest is bounded for itself, and ends the step.
            entries = max(entries + done.entries, entries_max) if rest else entries + max(done.entries, 1)
            lost = added(lost, [Loss(subscription.name, messages)])
            if done.is_gathering:
                break
        if opened.cursor.mark_delete < end:
            return Freed(is_free=False, has_more=True, entries=entries, lost=lost, aborted=aborted)
    has_more = len(attached) > FORCED_STEP_SUBSCRIPTIONS
    return Freed(is_free=not has_more, has_more=has_more, entries=entries, lost=lost, aborted=aborted)


def _some_holders(topic: OpenTopic[ReadView], attached: list[Subscription], end: Position) -> list[int]:
    """Open transactions with messages or pending acknowledgements up to a position: some of them, if there are any.

    No more are looked for than one step aborts, and one further transaction tells that there are more.
    """
    holders = set[int]()
    for txn, first in uncommitted_entries.first_transactions(topic, FORCED_STEP_TRANSACTIONS + 1):
        if first <= end:
            holders.add(txn)
    for subscription in attached:
        opened = OpenSubscription(topic.view, subscription)
        if len(holders) <= FORCED_STEP_TRANSACTIONS and opened.cursor.mark_delete < end:
            holders.update(pending_ack.holders_through(opened, MessageId(*end), FORCED_STEP_ENTRIES))
    return sorted(holders)


def _is_held(topic: OpenTopic[ReadView], attached: list[Subscription], end: Position, txn: int) -> bool:
    """Whether a transaction has messages or pending acknowledgements up to a position."""
    part = uncommitted_entries.part_of(topic.view, txn, topic.topic_id)
    if part is not None and part.first <= end and records.state_of(topic.view, txn) is TransactionState.OPEN:
        return True
    every = (OpenSubscription(topic.view, subscription) for subscription in attached)
    return any(
        opened.cursor.mark_delete < end and pending_ack.holds_through(opened, txn, end) for opened in every
    )


def with_name(topic: OpenTopic[WriteBatch]) -> OpenTopic[WriteBatch]:
    """The topic with its name, for records that people read."""
    if topic.name:
        return topic
    names = (member.name for member in topics.every(topic.view) if member.topic_id == topic.topic_id)
    return topic._replace(name=next(names, ""))


def added(losses: list[Loss], more: list[Loss]) -> list[Loss]:
    """The sum of losses in the order of names, without those of nothing."""
    total = dict(losses)
    for subscription, messages in more:
        if messages:
            total[subscription] = total.get(subscription, 0) + messages
    return [Loss(*row) for row in sorted(total.items())]


def note_losses(
    topic: OpenTopic[WriteBatch], trimmed: Trimmed, lost: list[Loss], process: ProcessIdentity
) -> None:
    """Record ledgers that went in the audit trail, with the losses of subscriptions that are not recorded yet.

    A topic with more subscriptions than a step frees has a record for each step, so that no step looks at all of them.

    Args:
        lost: the losses of this step.
    """
    batch, unnoted = topic.view, list[Loss]()
    first_ones = list(islice(subscriptions.every(batch, topic.topic_id), FORCED_STEP_SUBSCRIPTIONS + 1))
    if len(first_ones) > FORCED_STEP_SUBSCRIPTIONS:
        first_ones = [subscriptions.by_name(batch, topic.topic_id, loss.subscription) for loss in lost]
    elif not trimmed.ledgers:
        return
    for subscription in first_ones:
        cursor = cursors.load(batch, subscription.subscription_id)
        if cursor.lost > cursor.lost_noted:
            unnoted.append(Loss(subscription.name, cursor.lost - cursor.lost_noted))
            cursor.lost_noted = cursor.lost
    if unnoted:
        effects = LedgersLost(*trimmed, unnoted)
        audit_trail.record(
            batch, process, "messages lost", topic.name, REASON, effects, audit_trail.Kind.EXPIRY
        )

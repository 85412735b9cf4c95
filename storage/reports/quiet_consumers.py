"""Quiet consumers: living processes that hold messages of a subscription in flight and acknowledge none.

The one query behind `status`, `doctor`, `check`, the page, `blocked`, `explain` and `lag`. Deliveries tell which
messages are in flight at a consumer, and the quiet time (`storage/disk/shared_state.py`) since when the consumer has
acknowledged none, so that receiving and acknowledging write nothing more to the store (docs/decisions/0075).

A consumer that waits for the end of a transaction with acknowledgements pending is not quiet: the transaction is the
cause. Messages that are delayed, blocked or pending are in flight nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from storage.disk.environment import Environment
from storage.disk.view import ReadView
from storage.limits import KEY_ENTRIES_MAX, QUIET_CONSUMER_MS
from storage.process.identity import ProcessIdentity
from storage.reports import browse
from storage.subscription import (
    attached_consumers,
    catalogue as subscriptions,
    cursor as cursors,
    delivery as deliveries,
    message_set,
    pending_records,
)
from storage.subscription.attached_consumers import AttachedConsumer
from storage.subscription.dispatch.visible_set import VisibleSet
from storage.subscription.subscription import Subscription
from storage.topic import catalogue as topics, log, state as topic_states
from storage.topic.catalogue import Topic
from storage.txn import record as records
from storage.values.named_tuple import NamedTuple
from storage.values.position import MessageId


class QuietConsumer(NamedTuple):
    """A living consumer with messages in flight.

    Attributes:
        pid: of its process.
        messages: in flight there.
        quiet_ms: time for which it has held messages and acknowledged none.
        key: of the messages in flight there, where all are of one key on Key_Shared; None where keys are content that
            the report leaves out.
        key_messages: messages of that key which the subscription has not acknowledged, in flight or waiting; None
            where the messages are of several keys, or of none.
        first_message_id: the first of them.
        first_published_at_ms: when that one was published.
    """

    topic: str
    name: str
    subscription: str
    consumer_name: str
    owner: ProcessIdentity
    pid: int
    connected_since_at_ms: int
    messages: int
    quiet_ms: int
    key: bytes | None = None
    key_messages: int | None = None
    first_message_id: MessageId | None = None
    first_published_at_ms: int | None = None


def quiet_consumers(
    view: ReadView, environment: Environment, of: Iterable[Topic] | None = None, *, shows_keys: bool = False
) -> list[QuietConsumer]:
    """Living consumers that hold messages, with the time for which each has acknowledged none; the longest first.

    Args:
        of: the topics to look at; None: all.
        shows_keys: whether the rows have the key of messages, which is content of the store.
    """
    rows = [
        row
        for topic in (topics.every(view) if of is None else of)
        for subscription in subscriptions.every(view, topic.topic_id)
        for row in _quiet_of(view, environment, topic, subscription)
    ]
    ordered = sorted(rows, key=lambda row: -row.quiet_ms)
    return ordered if shows_keys else [row._replace(key=None) for row in ordered]


def _quiet_of(
    view: ReadView, environment: Environment, topic: Topic, subscription: Subscription
) -> Iterator[QuietConsumer]:
    """The consumers of one subscription."""
    waiting: set[int] | None = None
    held: Counter[int] = Counter()
    for consumer in attached_consumers.every(view, subscription.subscription_id):
        since_ns = _quiet_since_ns(view, environment, consumer)
        if since_ns is None:
            continue
        if waiting is None:
            waiting = _leases_that_wait(view, subscription)
            held = attached_consumers.messages_held(view, subscription.subscription_id)
        if consumer.lease in waiting or 0 in waiting:
            continue
        messages = held[consumer.consumer_id]
        if messages:
            quiet_ms = max(0, view.clock.boot_ns() - since_ns) // 1_000_000
            row = QuietConsumer(
                topic.full_name, topic.name, subscription.name, consumer.name, consumer.owner, consumer.owner.pid,
                consumer.connected_ms, messages, quiet_ms,
            )  # fmt: skip
            if subscription.keeps_keys and quiet_ms > QUIET_CONSUMER_MS:
                row = _with_one_key(view, row, subscription, consumer.consumer_id)
            yield row


def _with_one_key(
    view: ReadView, row: QuietConsumer, subscription: Subscription, consumer_id: int
) -> QuietConsumer:
    """The row with the key of the messages in flight there, if all are of one, as far as is looked."""
    cursor = cursors.load(view, subscription.subscription_id)
    visible_set = VisibleSet(view, topic_states.load(view, subscription.topic_id), subscription)
    counts: Counter[bytes] = Counter()
    firsts: dict[bytes | None, tuple[MessageId, int]] = {}
    entries = log.scan(view, subscription.topic_id, cursor.mark_delete, visible_set.through)
    for entry in islice(entries, KEY_ENTRIES_MAX):
        left = browse.unacknowledged(view, subscription, cursor, visible_set, entry)
        delivery = deliveries.find(view, subscription.subscription_id, entry.position) if left else None
        held = delivery.of(consumer_id) if delivery is not None else 0
        for index in message_set.indexes(left):
            key = entry.keys[index] if entry.keys else None
            if held >> index & 1:
                firsts.setdefault(key, (entry.message_id(index), entry.publish_time))
            if key is not None:
                counts[key] += 1
    if len(firsts) != 1 or None in firsts:
        return row
    ((key, (first, published_ms)),) = firsts.items()
    assert key is not None, "no message is without a key"
    return row._replace(
        key=key,
        key_messages=counts[key],
        first_message_id=first,
        first_published_at_ms=published_ms,
    )


def _quiet_since_ns(view: ReadView, environment: Environment, consumer: AttachedConsumer) -> int | None:
    """The mark of a consumer whose process lives and is not stopped; None otherwise, and without a mark."""
    leases, boot_id = environment.locks.leases, view.clock.boot_id()
    if leases.state_of(consumer.lease, consumer.owner, boot_id) != "alive":
        return None
    return environment.received_marks.quiet_since_ns(view.superblock, consumer.consumer_id)


def _leases_that_wait(view: ReadView, subscription: Subscription) -> set[int]:
    """The leases of open transactions with acknowledgements pending on the subscription; 0 for a detached one."""
    txns = {record.txn for record in pending_records.of_subscription(view, subscription.subscription_id)}
    pending = cursors.load(view, subscription.subscription_id).pending_cumulative
    if pending is not None:
        txns.add(pending[0])
    return {records.get(view, txn).lease for txn in txns}

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

from storage.disk.environment import Environment
from storage.disk.view import ReadView
from storage.process.identity import ProcessIdentity
from storage.subscription import (
    attached_consumers,
    catalogue as subscriptions,
    cursor as cursors,
    pending_records,
)
from storage.subscription.attached_consumers import AttachedConsumer
from storage.subscription.subscription import Subscription
from storage.topic import catalogue as topics
from storage.topic.catalogue import Topic
from storage.txn import record as records
from storage.values.named_tuple import NamedTuple


class QuietConsumer(NamedTuple):
    """A living consumer with messages in flight.

    Attributes:
        pid: of its process.
        messages: in flight there.
        quiet_ms: time for which it has held messages and acknowledged none.
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


def quiet_consumers(
    view: ReadView, environment: Environment, of: Iterable[Topic] | None = None
) -> list[QuietConsumer]:
    """Living consumers that hold messages, with the time for which each has acknowledged none; the longest first.

    Args:
        of: the topics to look at; None: all.
    """
    rows = [
        row
        for topic in (topics.every(view) if of is None else of)
        for subscription in subscriptions.every(view, topic.topic_id)
        for row in _quiet_of(view, environment, topic, subscription)
    ]
    return sorted(rows, key=lambda row: -row.quiet_ms)


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
            yield QuietConsumer(
                topic.full_name, topic.name, subscription.name, consumer.name, consumer.owner, consumer.owner.pid,
                consumer.connected_ms, messages, quiet_ms,
            )  # fmt: skip


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

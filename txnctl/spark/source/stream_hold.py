"""The hold of a stream on its subscription: one query reads a subscription, as one consumer does.

The process of a streaming source attaches as a consumer that receives nothing, and moves the cursor as that consumer. A
second query meets the attached one, and is refused. The hold ends with the process, however that ends, so a query that
is started again after a crash has only to wait until the processes of the former one are gone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from storage.actions import Action, Hint
from storage.errors import Busy, SubscriptionBusy, SubscriptionNotFound
from storage.values.names import short_topic_name
from storage.values.position import Position

if TYPE_CHECKING:
    from storage import Consumer, Store
    from storage.reports.stats import ConsumerRow
    from storage.subscription.isolation import IsolationLevel

PATIENCE_S: Final = 10.0
"""Seconds for the processes of a crashed query to end: its JVM sees the death of the driver, and its Python that of the
JVM.
"""

_LOOK_NS: Final = 100_000_000


class StreamHold:
    """The consumers of one query, one on each topic."""

    def __init__(
        self,
        store: Store,
        name: str,
        level: IsolationLevel,
        *,
        compacted: bool = False,
        consumer_name: str | None = None,
    ) -> None:
        """Args:
        store: open for writing as long as the hold lasts.
        name: of the subscription.
        consumer_name: None names the driver of Spark.
        """
        self._consumer_name = consumer_name
        self._store = store
        self._name = name
        self._level = level
        self._compacted = compacted
        self._consumers: dict[str, Consumer] = {}

    def take(self, topic: str, first: Position) -> None:
        """Attach to the subscription of a topic; a missing subscription is created at `first`, in the same commit.

        Raises:
            SubscriptionBusy: a consumer is attached, and does not go; it is named.
        """
        if topic in self._consumers:
            return
        wait_until_free(self._store, topic, self._name, ends_own=True)
        try:
            consumer = self._store.subscribe(
                short_topic_name(topic),
                self._name,
                subscription_isolation_level=self._level,
                initial_position=first,
                consumer_name=self._consumer_name or f"spark-driver-{os.getppid()}",
                read_compacted=self._compacted,
            )
        except SubscriptionBusy:
            # Another query was quicker.
            wait_until_free(self._store, topic, self._name)
            raise
        self._consumers[topic] = consumer
        rivals = _attached(self._store, topic, self._name)
        if rivals and rivals[0].consumer_name != consumer.consumer_name:
            # A Failover subscription takes many consumers; the first one reads.
            self.release()
            raise _busy(topic, self._name, rivals[0])

    def move_through(self, topic: str, position: Position) -> bool:
        """Move the cursor; False where the query has no hold on the topic.

        Raises:
            ConsumerEvicted: an operator ended the hold.
            SubscriptionNotFound, TransactionConflict, Busy
        """
        consumer = self._consumers.get(topic)
        if consumer is None:
            return False
        consumer.acknowledge_through(position)
        return True

    def release(self) -> None:
        """Detach from all topics."""
        for consumer in self._consumers.values():
            with suppress(Busy):
                consumer.close()
        self._consumers.clear()


def wait_until_free(store: Store, topic: str, name: str, *, ends_own: bool = False) -> None:
    """Wait until no consumer is attached to a subscription that takes one; return if there is no subscription.

    Args:
        ends_own: detach a consumer that an abandoned query of this very process has left.

    Raises:
        SubscriptionBusy: a consumer is still attached after PATIENCE_S seconds; it is named.
    """
    connection, clock = store.connection, store.connection.clock
    until_ns = clock.boot_ns() + int(PATIENCE_S * 1e9)
    while True:
        seen = connection.environment.visible_commit()
        attached = _attached(store, topic, name)
        if not attached:
            return
        holder = attached[0]
        if ends_own and (holder.pid, holder.owner.host) == (os.getpid(), os.uname().nodename):
            store.admin.subscriptions.evict_consumers(short_topic_name(topic), name, holder.consumer_name)
        elif clock.boot_ns() >= until_ns:
            raise _busy(topic, name, holder)
        else:
            # A process that dies commits nothing: hence the looks in between.
            connection.wait_for_commit(seen, min(until_ns, clock.boot_ns() + _LOOK_NS))


def _attached(store: Store, topic: str, name: str) -> list[ConsumerRow]:
    """The consumers of the subscription that are not dead, in the order of attachment."""
    with suppress(SubscriptionNotFound):
        stats = store.reports.subscription_stats(short_topic_name(topic), name).row.stats
        return [consumer for consumer in stats.consumers if consumer.state != "dead"]
    return []


def _busy(topic: str, name: str, holder: ConsumerRow) -> SubscriptionBusy:
    short = short_topic_name(topic)
    state = ", stopped" if holder.state == "stopped" else ""
    return SubscriptionBusy(
        f"subscription {name} of {short} is read already, by {holder.consumer_name} ({holder.owner}{state})",
        hint=Hint(
            "End that query first, or give this one a subscription of its own; `{}` ends it from outside.",
            Action("store.admin.subscriptions.evict_consumers", short, name),
        ),
        topic=topic,
        subscription=name,
        attached=[holder.consumer_name],
    )

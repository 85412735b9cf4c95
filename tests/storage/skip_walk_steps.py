"""Steps that the tests of skip walk share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storage import Consumer, Store, SubscriptionType
from tests.row_json import row_json

EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED = SubscriptionType


SKIPPING = pytest.mark.parametrize("type_", [SHARED, KEY_SHARED])


Attach = Callable[..., Consumer]


def send(store: Store, *texts: str, txn: Any = None) -> None:
    """One entry for each text, of one message for each word; `key=value` has a key."""
    producer = store.create_producer("t")
    for text in texts:
        words = [word.split("=") for word in text.split()]
        producer.send_batch(
            [word[-1].encode() for word in words],
            keys=[word[0] if len(word) > 1 else None for word in words],
            txn=txn,
        )


def receive(consumer: Consumer, count: int = 99, acknowledge: bool = True) -> str:
    """The values of the next messages, acknowledged."""
    batch = consumer.receive_batch(count, timeout=0)
    if batch and acknowledge:
        consumer.acknowledge(batch)
    return " ".join((value or b"").decode() for value in batch.values)


def classes(store: Store) -> dict[str, int]:
    """The backlog by class, where there is any."""
    stats = row_json(store.reports.subscription_stats("t", "a"))
    names = ("visible", "blocked", "uncommitted", "abortedAhead", "acknowledgedAhead", "pending")
    return {name: stats[name] for name in names if stats[name]}

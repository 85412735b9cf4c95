"""Steps that the tests of consume share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from storage import Store
from tests.row_json import row_json


def send(path: Path, *values: bytes | None, topic: str = "orders", **common: Any) -> None:
    """Each an entry of its own."""
    with Store.open(path) as store:
        producer = store.create_producer(topic)
        for value in values:
            producer.send(value, **common)


def send_batch(path: Path, count: int) -> None:
    """`count` messages, the numbers from 0 on, in one batch."""
    with Store.open(path) as store:
        store.create_producer("orders").send_batch([b"%d" % number for number in range(count)])


def backlog(path: Path, name: str = "s") -> int:
    """Messages of the subscription that are not acknowledged."""
    with Store.open(path, read_only=True) as store:
        return int(row_json(store.reports.subscription_stats("orders", name))["msgBacklog"])

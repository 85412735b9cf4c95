"""A store that fills every table: long names, long owners, big numbers, stopped and dead owners, conflicts, dead letters."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

from storage import EARLIEST, AccessMode, Store, SubscriptionType
from storage.errors import LostConflict
from tests.txnctl.stuck_store import StuckStore

LONG_TOPIC = "settlements-of-the-region-eu-central-1-second-attempt"
LONG_NAME = "archive-of-everything-in-the-region-eu-central-1"
TABLE = "accounts-of-the-region-eu-central-1"
KEY = "customer-000000000001-of-the-branch-in-the-main-street"
LONG_PROGRAM = (
    "python -m bank.nightly.settlement.loader --region eu-central-1 --input /var/lib/bank/2026-11-23.csv"
)
LABELS = {
    "job": "nightly-settlement",
    "file": "payments-2026-11-23.csv",
    "attempt": "2",
    "region": "eu-central-1",
}
MANY = 120_000


class Names(NamedTuple):
    """The names in a full store."""

    topic: str
    subscription: str
    table: str
    key: str


LONG = Names(LONG_TOPIC, LONG_NAME, TABLE, KEY)
LONGEST = Names(
    *[f"{name}-{name.upper()}-{'x' * 128}"[:124] + "-end" for name in (LONG_TOPIC, LONG_NAME, TABLE)],
    f"{KEY}-{'y' * 300}"[:296] + "-end",
)
"""Names as long as may be, and a key of 300 characters; begin and end tell them apart."""


class FullStore(StuckStore):
    """The stuck store, and beside it a topic and a table with everything that a column can show."""

    def __init__(self, path: Path, names: Names = LONG) -> None:
        super().__init__(path)
        self.names = names
        with Store.open(path, program=LONG_PROGRAM) as store:
            self._messages(store)
            self._rows(store)
            store.open_session(
                names.topic, access_mode=AccessMode.SHARED, producer_name="nightly-loader", lease=3600
            )
            store.open_session(
                "payments", access_mode=AccessMode.EXCLUSIVE, producer_name=names.subscription, lease=3600
            )

    def _messages(self, store: Store) -> None:
        topic, subscription, *_ = self.names
        store.create_topic(topic, ledger_entries_max=50)
        for name, type_ in (
            (subscription, SubscriptionType.SHARED),
            ("billing", SubscriptionType.KEY_SHARED),
        ):
            store.admin.subscriptions.create_subscription(
                topic, name, subscription_type=type_, initial_position=EARLIEST
            )
        with store.create_producer(
            topic, producer_name="nightly-settlement-loader-of-eu-central-1"
        ) as producer:
            for _ in range(MANY // 1000):
                producer.send_batch([b"value"] * 1000)
            producer.send(b"x" * 3_000, key=self.names.key.encode(), properties={"trace": "4711" * 10})
            held = store.begin_transaction(labels=LABELS, timeout=7200)
            producer.send_batch([b"half"] * 12_345, txn=held)
            producer.send_batch([b"whole"] * 23_456)
            dropped = store.begin_transaction(labels=LABELS)
            producer.send(b"dropped", txn=dropped)
            store.admin.transactions.abort_transaction(
                dropped, reason="the wrong file was given to the loader by hand"
            )
        consumer = store.subscribe(topic, subscription, subscription_type=SubscriptionType.SHARED)
        received = list(consumer.receive_batch(3, timeout=0))
        consumer.acknowledge(received[:1], txn=store.begin_transaction(labels=LABELS, timeout=7200))
        store.admin.topics.set_retention(topic, time_ms=86_400_000, reason="the auditors keep a copy")

    def _rows(self, store: Store) -> None:
        store.create_table(self.names.table)
        table = store.table(self.names.table)
        for number in range(20):
            table.put(self.names.key.replace("1", str(number), 1).encode(), b"1" * 200)
        first, second = store.begin_transaction(labels=LABELS), store.begin_transaction(labels=LABELS)
        key = self.names.key.encode()
        table.put(key, b"2", txn=first)
        with contextlib.suppress(LostConflict):
            table.put(key, b"3", txn=second)

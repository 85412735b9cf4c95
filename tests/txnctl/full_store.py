"""A store that fills every table: long names, long owners, big numbers, stopped and dead owners, conflicts, dead letters."""

from __future__ import annotations

import contextlib
from pathlib import Path

from storage import EARLIEST, AccessMode, Store, SubscriptionType
from storage.errors import LostConflict
from tests.txnctl.stuck_store import StuckStore

LONG_TOPIC = "settlements-of-the-region-eu-central-1-second-attempt"
LONG_NAME = "archive-of-everything-in-the-region-eu-central-1"
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


class FullStore(StuckStore):
    """The stuck store, and beside it a topic and a table with everything that a column can show."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with Store.open(path, program=LONG_PROGRAM) as store:
            self._messages(store)
            self._rows(store)
            store.open_session(
                LONG_TOPIC, access_mode=AccessMode.SHARED, producer_name="nightly-loader", lease=3600
            )
            store.open_session(
                "payments", access_mode=AccessMode.EXCLUSIVE, producer_name=LONG_NAME, lease=3600
            )

    def _messages(self, store: Store) -> None:
        store.create_topic(LONG_TOPIC, ledger_entries_max=50)
        for name, type_ in ((LONG_NAME, SubscriptionType.SHARED), ("billing", SubscriptionType.KEY_SHARED)):
            store.admin.subscriptions.create_subscription(
                LONG_TOPIC, name, subscription_type=type_, initial_position=EARLIEST
            )
        with store.create_producer(
            LONG_TOPIC, producer_name="nightly-settlement-loader-of-eu-central-1"
        ) as producer:
            for _ in range(MANY // 1000):
                producer.send_batch([b"value"] * 1000)
            producer.send(
                b"x" * 3_000, key=b"a key of a customer, rather long", properties={"trace": "4711" * 10}
            )
            held = store.begin_transaction(labels=LABELS, timeout=7200)
            producer.send_batch([b"half"] * 12_345, txn=held)
            producer.send_batch([b"whole"] * 23_456)
            dropped = store.begin_transaction(labels=LABELS)
            producer.send(b"dropped", txn=dropped)
            store.admin.transactions.abort_transaction(
                dropped, reason="the wrong file was given to the loader by hand"
            )
        consumer = store.subscribe(LONG_TOPIC, LONG_NAME, subscription_type=SubscriptionType.SHARED)
        received = list(consumer.receive_batch(3, timeout=0))
        consumer.acknowledge(received[:1], txn=store.begin_transaction(labels=LABELS, timeout=7200))
        store.admin.topics.set_retention(LONG_TOPIC, time_ms=86_400_000, reason="the auditors keep a copy")

    def _rows(self, store: Store) -> None:
        store.create_table("accounts-of-the-region-eu-central-1")
        table = store.table("accounts-of-the-region-eu-central-1")
        for number in range(20):
            table.put(f"customer-{number:012}-of-the-branch-in-the-main-street".encode(), b"1" * 200)
        first, second = store.begin_transaction(labels=LABELS), store.begin_transaction(labels=LABELS)
        key = b"customer-000000000001-of-the-branch-in-the-main-street"
        table.put(key, b"2", txn=first)
        with contextlib.suppress(LostConflict):
            table.put(key, b"3", txn=second)

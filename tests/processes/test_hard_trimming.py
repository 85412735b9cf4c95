"""Hard retention that is killed: every message that goes is counted once, and the store is sound at each moment."""

from __future__ import annotations

import signal
import subprocess
import sys
from random import Random

import pytest

from storage import EARLIEST, OnOpen, Store, SubscriptionType
from storage.reports.stats import SubscriptionStats
from tests.waiting import moment_of_chance

pytestmark = [pytest.mark.slow, pytest.mark.kills]

MESSAGES = 1200
MODES = {
    "exclusive": (SubscriptionType.EXCLUSIVE, OnOpen.BLOCK),
    "shared": (SubscriptionType.SHARED, OnOpen.SKIP),
    "key-shared": (SubscriptionType.KEY_SHARED, OnOpen.SKIP),
}

PROGRAM = """
import sys
from storage import Store
store = Store.open(sys.argv[1])
engine = store.admin.topics._engine
engine.force = engine.force._replace(entries_max=11)
print("begins", flush=True)
store.admin.topics.trim_topic("t")
"""


def stats(store: Store, name: str) -> SubscriptionStats:
    return store.reports.subscription_stats("t", name).row.stats


def test_a_hard_trimming_that_is_killed_goes_on_where_it_was(path: str) -> None:
    """Killed at any moment, again and again, with messages in flight and a transaction in the way."""
    random = Random(11)
    with Store.open(path) as store:
        store.admin.topics.delete_topic("t", force=True)
        store.create_topic("t", ledger_entries_max=40)
        for name, (type_, on_open) in MODES.items():
            store.admin.subscriptions.create_subscription(
                "t", name, subscription_type=type_, on_open=on_open, initial_position=EARLIEST
            )
        txn = store.begin_transaction(timeout=3600)
        with store.create_producer("t", connected=False) as producer:
            for number in range(MESSAGES):
                producer.send(b"%d" % number, key=b"%d" % (number % 5), txn=txn if number == 3 else None)
        acknowledged = {}
        for name in ("shared", "key-shared"):
            with store.subscribe("t", name, receiver_queue_size=100) as consumer:
                batch = list(consumer.receive_batch(100, timeout=0))
                consumer.acknowledge(batch[::2])
                acknowledged[name] = len(batch[::2])
        size = store.reports.topic_stats("t").counts.storage_size
        store.admin.topics.set_retention("t", size=size // 10, hard="trim")
    for _ in range(8):
        with subprocess.Popen([sys.executable, "-c", PROGRAM, path], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begins\n"
            moment_of_chance(random, 0, 0.08)
            process.send_signal(signal.SIGKILL)
        with Store.open(path) as store:
            assert store.maintenance.verify_store(full=True) == []
    with Store.open(path) as store:
        store.admin.topics.trim_topic("t")
        counts = store.reports.topic_stats("t").counts
        assert counts.msg_count < MESSAGES // 4
        gone = counts.msg_in_counter - counts.msg_count
        for name in MODES:
            # The message of the transaction was never committed, and so is lost to nobody.
            assert stats(store, name).msg_lost_counter == gone - 1 - acknowledged.get(name, 0), name
        noted = dict.fromkeys(MODES, 0)
        for record in store.reports.list_audit_records():
            if record.action == "messages lost":
                lost = record.effects["lost"]
                assert isinstance(lost, list)
                for row in lost:
                    noted[row["subscription"]] += row["messages"]
        assert noted == {name: stats(store, name).msg_lost_counter for name in MODES}
        assert store.maintenance.verify_store(full=True) == []

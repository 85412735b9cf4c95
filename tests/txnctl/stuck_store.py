"""A store that is stuck in several ways at once, under names that would break a careless page."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from storage import EARLIEST, AccessMode, IsolationLevel, Store, SubscriptionType, TxnID
from tests.txnctl.an_hour_ago import an_hour_ago

CHECKOUT = Path(__file__).parents[2]

EVIL = "<script>alert(1)</script>\"'&\x1b[2J\u202ekcab\u2066\n</style><!--"
"""Markup, quotes, a control sequence, letters that turn the direction, the end of a style."""
SECRET = b"SECRET"
"""In every value and key."""

_OWNER = (
    "import sys\n"
    "from storage import Store\n"
    "store = Store.open(sys.argv[1], program=sys.argv[2])\n"
    "txn = store.transaction(timeout=3600, labels={'name': sys.argv[2]})\n"
    "store.create_producer('orders').send(b'SECRET', txn=txn)\n"
    "txn.flush()\n"
    "print('ready', flush=True)\n"
    "sys.stdin.read()\n"
)


class StuckStore:
    """Four open transactions on `orders`, one elsewhere, all isolation levels, a dead owner and a stopped one.

    Attributes:
        path: the store.
        idle: the transaction that comes first, used by nobody for an hour.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._processes: list[subprocess.Popen[bytes]] = []
        Store.create(path, clock=an_hour_ago())
        with Store.open(path, clock=an_hour_ago(), program=EVIL) as store:
            self.idle = self._fill(store)
        stopped, killed = self._owner("stopped"), self._owner(EVIL)
        os.kill(stopped.pid, signal.SIGSTOP)
        os.waitpid(stopped.pid, os.WUNTRACED)
        killed.kill()
        killed.wait(timeout=30)

    def _fill(self, store: Store) -> TxnID:
        store.admin.settings.set_reap_policy("manual", reason=EVIL)
        store.create_table("balances")
        store.create_topic("orders", ledger_entries_max=200)
        for topic in ("payments", "quiet"):
            store.create_topic(topic)
        for name, level, kind in (
            ("billing", IsolationLevel.READ_COMMITTED, SubscriptionType.SHARED),
            ("monitor", IsolationLevel.READ_UNCOMMITTED, SubscriptionType.EXCLUSIVE),
            ("archive-of-everything-in-the-region-eu-central-1", IsolationLevel.READ_COMMITTED, SubscriptionType.KEY_SHARED),
        ):  # fmt: skip
            store.admin.subscriptions.create_subscription(
                "orders", name, subscription_isolation_level=level, subscription_type=kind, initial_position=EARLIEST
            )  # fmt: skip
        store.create_producer("payments", access_mode=AccessMode.EXCLUSIVE).send(SECRET)
        with store.create_producer("orders", producer_name="loader") as producer:
            for _ in range(400):
                producer.send(SECRET, key=SECRET)
            with store.subscribe("orders", "billing", subscription_type=SubscriptionType.SHARED) as consumer:
                consumer.acknowledge(list(consumer.receive_batch(150, timeout=0)))
            dropped = store.begin_transaction()
            producer.send_batch([SECRET] * 30, txn=dropped)
            store.admin.transactions.abort_transaction(dropped, reason=EVIL)
            idle = store.begin_transaction(labels={"job": "loader"}, timeout=7200)
            for _ in range(10):
                producer.send(SECRET, txn=idle)
                producer.send_batch([SECRET] * 5)
            store.table("balances").put(SECRET, SECRET, txn=idle)
            producer.send(SECRET, txn=store.begin_transaction(labels={"job": EVIL}, timeout=60))
            producer.send_batch([SECRET] * 20)
        store.begin_transaction(timeout=7200)
        return idle

    def _owner(self, program: str) -> subprocess.Popen[bytes]:
        """A process with an open transaction, and messages behind it."""
        process = subprocess.Popen(
            [sys.executable, "-c", _OWNER, str(self.path), program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )
        self._processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        with Store.open(self.path) as store, store.create_producer("orders") as producer:
            producer.send_batch([SECRET] * 7)
        return process

    def end(self) -> None:
        """End the processes; the store is sound."""
        for process in self._processes:
            process.kill()
            process.communicate(timeout=30)
        with Store.open(self.path) as store:
            assert store.maintenance.verify_store(full=True) == []

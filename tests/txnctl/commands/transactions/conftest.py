"""Fixtures of the tests in this folder."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, IsolationLevel, Store, SubscriptionType
from tests.txnctl.an_hour_ago import an_hour_ago
from tests.txnctl.commands.transactions.transactions_steps import started
from tests.waiting import wait_for


@pytest.fixture
def stuck(path: Path) -> str:
    """A transaction with messages and acknowledgements behind which others wait, and one that waits next; its id."""
    with Store.open(path) as store:
        store.create_topic("payments-in")
        orders = store.create_producer("orders")
        payments = store.create_producer("payments-in")
        for name, level in (("billing", None), ("monitor", IsolationLevel.READ_UNCOMMITTED)):
            store.admin.subscriptions.create_subscription(
                "orders", name, subscription_isolation_level=level or IsolationLevel.READ_COMMITTED,
                initial_position=EARLIEST,
            )  # fmt: skip
        loader = store.subscribe(
            "payments-in", "loader", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
        )
        payments.send_batch([b"in"] * 20)
        txn = store.begin_transaction(labels={"job": "loader"})
        loader.acknowledge(loader.receive_batch(15, timeout=0), txn=txn)
        for _ in range(5):
            orders.send_batch([b"held"] * 3, txn=txn)
            orders.send(b"plain")
        orders.send_batch([b"plain"] * 792)
        following = store.begin_transaction(labels={"job": "fulfil"})
        orders.send_batch([b"next"] * 4, txn=following)
        orders.send_batch([b"plain"] * 403)
        loader.close()
        return str(txn)


@pytest.fixture
def blocked_store(path: Path) -> None:
    """0:1 holds 15 messages and 797 behind them, 0:2 comes next and holds 403; nobody has used them for an hour."""
    with Store.open(path, clock=an_hour_ago()) as store:
        producer = store.create_producer("orders", producer_name="loader")
        first = store.begin_transaction(labels={"job": "loader"}, timeout=7200)
        producer.send_batch([b"held"] * 15, txn=first)
        producer.send_batch([b"plain"] * 797)
        second = store.begin_transaction(labels={"job": "fulfil"}, timeout=7200)
        producer.send_batch([b"next"] * 4, txn=second)
        producer.send_batch([b"plain"] * 403)
        producer.close()


@pytest.fixture
def owners(path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes that hold an attached transaction with a message, ready when they are returned."""
    processes = []

    def start(body: str = "") -> subprocess.Popen[bytes]:
        program = (
            "import os, sys\n"
            "from storage import Store\n"
            "store = Store.open(sys.argv[1], program='loader')\n"
            f"{body}\n"
            "txn = store.transaction(timeout=3600)\n"
            "store.create_producer('orders').send(b'half', txn=txn)\n"
            "txn.flush()\n"
            "print('ready', flush=True)\n"
            "sys.stdin.read()\n"
            "txn.commit()\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=30)


@pytest.fixture
def orphan(run: Any, path: Path, tmp_path: Path) -> Path:
    """Kill a `transactions run` with a message in its transaction; the file where its command notes a SIGTERM."""
    told = tmp_path / "told"
    program = (
        "import os, signal, sys; from storage import Store\n"
        "def tell(*_):\n"
        f"    open({str(told)!r}, 'w').write('SIGTERM')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, tell)\n"
        "with Store.open(os.environ['TXNCTL_STORE']) as store:\n"
        "    store.create_producer('orders').send(b'half', txn=os.environ['TXNCTL_TXN'])\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n"
    )
    words = ("--store", str(path), "--", sys.executable, "-c", program)
    with started("transactions", "run", *words, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert run("transactions", "list", "-o", "json").json[0]["ownerState"] == "alive"
        process.send_signal(signal.SIGSTOP)
        wait_for(
            lambda: bool(run("transactions", "list", "-o", "json").json[0]["ownerState"] == "stopped"),
            "a stopped process counts as alive, and is called stopped",
        )
        process.kill()
    return told

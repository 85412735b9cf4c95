"""Fixtures of the tests in this folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import EARLIEST, Store, SubscriptionType


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """The same, open."""
    with Store.open(path) as opened:
        yield opened


@pytest.fixture
def billing(store: Store) -> None:
    """`billing`, Shared, from the beginning of five messages 1:0 to 1:4."""
    store.admin.subscriptions.create_subscription(
        "orders", "billing", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
    )
    producer = store.create_producer("orders")
    for number in range(5):
        producer.send(b"%d" % number)


@pytest.fixture
def consuming(path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts processes that hold so many messages of billing in flight."""
    processes = []
    program = (
        "import sys\n"
        "from storage import Store\n"
        "store = Store.open(sys.argv[1])\n"
        "consumer = store.subscribe('orders', 'billing', consumer_name=sys.argv[2], receiver_queue_size=1)\n"
        "for _ in range(int(sys.argv[3])): consumer.receive(timeout=5)\n"
        "print('holds', flush=True)\n"
        "sys.stdin.read()\n"
    )

    def start(name: str, messages: int) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", program, str(path), name, str(messages)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()

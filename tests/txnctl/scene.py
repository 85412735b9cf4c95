"""The scene of three in the morning: a store with real processes that are stuck in four ways.

An open transaction of a dead process, of a stopped one, and of a living one that does nothing; and a living consumer
that holds messages and acknowledges none. Each way alone, all at once on one topic, or spread over topics and tables.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from storage import EARLIEST, Store, SubscriptionType
from tests.txnctl.an_hour_ago import ago

CHECKOUT = Path(__file__).parents[2]

KINDS = ("dead", "stopped", "idle", "quiet")
AGE_S = 180
"""Each process came to rest that long ago, by its own clock."""

_PROGRAM = f"""
import sys
from storage import Store
from tests.txnctl.an_hour_ago import ago

path, kind, topic, table = sys.argv[1:]
clock = ago({AGE_S})
store = Store.open(path, program=kind + "-job", clock=clock)
if kind == "quiet":
    consumer = store.subscribe(topic, "settle", consumer_name="worker")
    assert len(consumer.receive_batch(3, timeout=0)) == 3
else:
    txn = store.transaction(timeout=1200, labels={{"job": kind}})
    store.create_producer(topic).send(b"half", txn=txn)
    if table:
        store.table(table).put(kind.encode(), b"1", txn=txn)
    txn.flush()
print("ready", flush=True)
sys.stdin.readline()
clock.advance({AGE_S})
try:
    if kind == "quiet":
        consumer.receive_batch(3, timeout=0)
    else:
        txn.commit()
    print("done", flush=True)
except Exception as error:
    print(error.code, flush=True)
"""


class Scene:
    """A store that is stuck.

    Args:
        kinds: the ways, of `KINDS`.
        spread: each way has a topic of its own, and transactions write a table besides.
    """

    def __init__(self, path: Path, kinds: Sequence[str] = KINDS, *, spread: bool = False) -> None:
        self.path = path
        self.processes: dict[str, subprocess.Popen[str]] = {}
        Store.create(path, clock=ago(AGE_S + 60))
        topics = {kind: kind if spread else "payments" for kind in kinds}
        clock = ago(AGE_S + 60)
        with Store.open(path, clock=clock) as store:
            # With any other policy the next writer would mend one way on its own.
            store.admin.settings.set_reap_policy("manual")
            store.create_table("balances")
            for topic in set(topics.values()):
                store.create_topic(topic)
                store.admin.subscriptions.create_subscription(
                    topic, "settle", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
                )
                store.create_producer(topic).send_batch([b"before"] * 5)
        for kind in kinds:
            self._start(kind, topics[kind], "balances" if spread else "")
        clock.advance(90)
        with Store.open(path, clock=clock) as store:
            for topic in set(topics.values()):
                store.create_producer(topic).send_batch([b"behind"] * 4)
        # Last, as a producer that connects ends the transactions of a dead one on its topic.
        if "dead" in self.processes:
            self.processes["dead"].kill()
            self.processes["dead"].wait(timeout=30)
        if "stopped" in self.processes:
            os.kill(self.processes["stopped"].pid, signal.SIGSTOP)
            os.waitpid(self.processes["stopped"].pid, os.WUNTRACED)

    def _start(self, kind: str, topic: str, table: str) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(self.path), kind, topic, "" if kind == "quiet" else table],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )  # fmt: skip
        self.processes[kind] = process
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    def goes_on(self, kind: str) -> str:
        """Let a process go on with what it held: `done`, or the code of the error that it gets."""
        process = self.processes[kind]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    def end(self) -> None:
        """End the processes; the store is sound."""
        for process in self.processes.values():
            process.kill()
            process.communicate(timeout=30)
        with Store.open(self.path) as store:
            assert store.maintenance.verify_store(full=True) == []

"""Random transactions of several processes, which are killed, lose the file of reads, and reboot: always serializable.

The long form, with at least so many transactions, is `make serializability`, TRANSACTIONS=1000000 for more. What it
did is printed at its end; `TRANSACTIONS=… SEED=…` makes it take another course.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from storage import Store
from tests.processes.child import Child, Children
from tests.processes.memory import directory_in_memory
from tests.processes.table_judge import Judge, committed_versions
from tests.processes.table_log import finished
from tests.processes.table_workload import ALL_KEYS, TABLE, Life
from tests.row_json import row_json
from tests.waiting import let_pass

TRANSACTIONS = int(os.environ.get("TRANSACTIONS", "3000"))
SEED = int(os.environ.get("SEED", "1"))
WORKERS = 4
STUCK_S = 120.0


class Run:
    """The workers on one store, and what is done to them."""

    workers = WORKERS

    def __init__(self, directory: Path, children: Children, chance: random.Random) -> None:
        self.path, self.logs = str(directory / "store"), directory / "logs"
        (self.logs / "left").mkdir(parents=True)
        self._children = children
        self._chance = chance
        self._numbers = count(1)
        self._workers: list[Child] = []
        self.life = 1
        self.disturbed = {"kill": 0, "reboot": 0}

    def start(self) -> None:
        """Let there be all workers."""
        while len(self._workers) < self.workers:
            child = self._begin(next(self._numbers), self._chance.randrange(1 << 30))
            child.expect("started", STUCK_S)
            self._workers.append(child)

    def _begin(self, number: int, seed: int) -> Child:
        return self._children.module("table_workload", self.path, self.logs, f"w{number}", seed, self.life)

    def _reboot(self) -> None:
        self.life += 1

    def disturb(self) -> None:
        """Kill a worker, or kill all and reboot."""
        often = self._chance.choice(["kill", "kill", "kill", "reboot"])
        what = "reboot" if self.disturbed["kill"] and not self.disturbed["reboot"] else often
        self.disturbed[what] += 1
        for _ in range(len(self._workers) if what == "reboot" else 1):
            worker = self._workers.pop(self._chance.randrange(len(self._workers)))
            assert worker.is_running, worker.complaint()
            worker.kill()
        if what == "reboot":
            self._reboot()
        self.start()

    def go_on(self, until: int) -> None:
        """Wait until so many transactions are finished."""
        seen, moved = -1, time.monotonic()
        while (now := finished(self.logs)) < until:
            if now != seen:
                seen, moved = now, time.monotonic()
            for worker in self._workers:
                assert worker.is_running, worker.complaint()
            assert time.monotonic() - moved < STUCK_S, f"nothing has been finished for {STUCK_S} s"
            let_pass(0.02, "between two looks, whose deadline moves on with the transactions")

    def let_go(self) -> None:
        """Let all workers end by themselves."""
        for worker in self._workers:
            worker.say("enough")
        for worker in self._workers:
            worker.succeed(STUCK_S)


@pytest.fixture
def children() -> Iterator[Children]:
    """Starts workers; all of them are gone before their files are removed."""
    started = Children("")
    yield started
    started.close()


@pytest.fixture
def directory() -> Iterator[Path]:
    """Where the store and the logs lie: in memory, for many commits."""
    with directory_in_memory() as place:
        yield Path(place)


def judge(run: Run) -> Judge:
    """End what is open, finalise, and take in what is there."""
    with Store.open(run.path, clock=Life(run.life)) as store:
        for row in row_json(store.reports.list_transactions()):
            store.admin.transactions.abort_transaction(row["txnId"], force=True)
        store.maintenance.collect_garbage()
        assert store.maintenance.verify_store(full=True) == []
        versions = committed_versions(store, TABLE, ALL_KEYS)
        shown = {row.key.decode(): row.value.decode() for row in store.table(TABLE).scan()}
        newest = {key: of_key[max(of_key)] for key, of_key in versions.items() if of_key}
        assert shown == {key: value for key, value in newest.items() if value is not None}
    return Judge(run.logs, versions)


def test_what_several_processes_did_is_serializable(directory: Path, children: Children):
    """However they are killed: no cycle, no lost commit, no half of one, no stale or dirty read."""
    run = Run(directory, children, random.Random(SEED))
    Store.create(run.path)
    check(run, TRANSACTIONS)


def check(run: Run, transactions: int) -> None:
    """Let the workers finish so many transactions on an empty store, with disturbances, and judge what they did."""
    with Store.open(run.path, clock=Life(run.life)) as store:
        store.create_table(TABLE)
        store.admin.settings.set_table_retention(7 * 86_400_000)
    # From one disturbance to the next.
    between = max(150, min(1000, transactions // 20))
    began = time.monotonic()
    run.start()
    for until in range(between, transactions, between):
        run.go_on(until)
        run.disturb()
    run.go_on(transactions)
    run.let_go()
    worked = time.monotonic() - began
    judged = judge(run)
    found = judged.check()
    figures = judged.figures()
    report = [
        f"seed {SEED}, {run.workers} workers, {worked:.0f} s, judged in {time.monotonic() - began - worked:.0f} s"
    ]
    report += [f"{what}: {number}" for what, number in {**run.disturbed, **figures}.items()]
    print("\n".join(report), file=sys.stderr)
    assert found == [], found[:10]
    assert figures["transactions"] >= transactions
    assert figures["committed"] > transactions / 4, "there was something to judge"
    assert all(run.disturbed.values()), run.disturbed

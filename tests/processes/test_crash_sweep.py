"""A process is killed at every named fault point and at random moments; nothing acknowledged is lost, nothing is half.

CRASH_ROUNDS makes it long: so many random kills, and so many kills at a random reach over all fault points.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store, faults
from tests.processes import places
from tests.processes.child import Child, Children
from tests.processes.crash_model import Found, Model, check_others
from tests.processes.journal import Line, read
from tests.row_json import row_json
from tests.waiting import let_pass

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "0"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
KILLS_PER_STORE = 20
"""A fresh store from time to time keeps the checks, which read everything, from growing without end."""

LATEST_REACH = {
    "store": 8,
    # The workload copies a store once in many rounds, and takes a throne that a dead owner left as rarely.
    "store.copy.after_batch": 3,
    "store.copy.before_comparison": 3,
    "store.copy.before_install": 3,
    "store.create.before_format": 3,
    "producer.after_eviction": 4,
    "txn": 24,
    "topic": 10,
    "producer": 24,
    "table": 24,
    "read_cache": 24,
    "group": 24,
}
"""How often at least the whole workload reaches a point, or the points of a kind; 60 for the others."""

pytestmark = pytest.mark.crash_sweep


class Sweep:
    """One store that is worked on by one process after the other, each of them killed, and checked in between."""

    def __init__(self, directory: Path, children: Children) -> None:
        directory.mkdir()
        self.path, self._journal = str(directory / "store"), str(directory / "journal")
        self._children = children
        self._last: Found | None = None
        self._checks = 0

    def start(self, *arguments: object) -> Child:
        return self._children.module("crash_workload", self.path, self._journal, *arguments)

    def kill_at(self, point: str, nth: int) -> None:
        """Let a process work until it reaches `point` the n-th time, which kills it; check what it leaves."""
        child = self.start("rounds", point, nth)
        code = child.wait(120)
        assert code != 0, f"{point} is not reached {nth} times by the whole workload"
        assert code == -signal.SIGKILL, f"exit code {code} instead of death at {point}:\n{child.complaint()}"
        places.await_end(child.pid)
        self.check()

    def kill_after(self, seconds: float) -> None:
        """Let a process work for a while and kill it wherever it is; check what it leaves."""
        child = self.start("rounds")
        child.expect("started")
        # The moment is the point of this test: no handshake can choose it.
        let_pass(seconds, "the moment of a kill")
        assert child.is_running, child.complaint()
        child.kill()
        self.check()

    def check(self) -> list[Line]:
        """That the store is as the journal says."""
        lines = read(self._journal)
        if not places.is_there(places.name_of(self.path)):
            assert {line["kind"] for line in lines} <= {"started", "create"}
            assert not [line for line in lines if line["event"] == "did"], "an acknowledged creation is lost"
            return lines
        check_others(lines, self.path)
        self._checks += 1
        self._check_orphans()
        # Every second time the next process finds everything as the killed one left it.
        with Store.open(self.path, read_only=self._checks % 2 == 0) as store:
            if not store.connection.read_only:
                store.connection.write(lambda _: None)
                assert [
                    row for row in row_json(store.reports.list_transactions()) if row["attached"]
                ] == [], "orphans are reaped"
            assert store.maintenance.verify_store(full=True) == []
            found = Found(store)
        found.check_levels()
        if self._last is not None:
            found.check_extends(self._last)
        self._last = found
        Model(lines, found).check()
        return lines

    def _check_orphans(self) -> None:
        """Before anybody writes, what was attached to the dead process shows as orphaned, or dead."""
        with Store.open(self.path, read_only=True) as store:
            for row in row_json(store.reports.list_transactions()):
                assert row["orphaned"] is row["attached"], row
                assert row["ownerState"] == ("dead" if row["attached"] else "detached")
            for row in row_json(store.reports.list_producers()):
                assert (row["state"], row["isOwner"]) == (
                    ("leased", True) if row["leaseMs"] else ("dead", False)
                )

    def finish(self) -> None:
        """Let a process consume everything that is left; check the end."""
        self.start("drain").succeed(120)
        lines = self.check()
        with Store.open(self.path, read_only=True) as store:
            model = Model(lines, Found(store))
            model.check()
            model.check_drained(store)


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    """Starts children; all of them are gone at the end."""
    started = Children(str(tmp_path))
    yield started
    started.close()


def reaches(point: str) -> list[int]:
    """At which reaches of a point to kill: the first two, and later ones."""
    chance = random.Random(f"{SEED} {point}")
    last = LATEST_REACH.get(point) or LATEST_REACH.get(point.partition(".")[0], 60)
    return [1, 2] + [chance.randint(3, last) for _ in range(max(1, ROUNDS // len(faults.POINTS)))]


@pytest.mark.parametrize("point", faults.POINTS)
def test_a_process_killed_at_a_fault_point_loses_and_halves_nothing(
    point: str, tmp_path: Path, children: Children
):
    """Killed at the first, second and a later reach of a point, and resumed: all as acknowledged, and drained."""
    sweep = Sweep(tmp_path / "0", children)
    for number, nth in enumerate(reaches(point), 1):
        sweep.kill_at(point, nth)
        if number % KILLS_PER_STORE == 0:
            sweep.finish()
            sweep = Sweep(tmp_path / str(number), children)
    sweep.finish()


def test_a_process_killed_at_random_moments_loses_and_halves_nothing(tmp_path: Path, children: Children):
    """Killed wherever it is, again and again: all as acknowledged, and drained in the end."""
    chance = random.Random(SEED)
    sweep = Sweep(tmp_path / "0", children)
    for number in range(1, (ROUNDS or 8) + 1):
        sweep.kill_after(chance.uniform(0.0, 0.6))
        if number % KILLS_PER_STORE == 0:
            sweep.finish()
            sweep = Sweep(tmp_path / str(number), children)
    sweep.finish()

"""Eight processes fight for one topic, are killed and stopped at random: nothing of the fenced is ever seen.

TAKEOVERS makes it long: so many owners, one after the other (`make takeovers`).
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.processes.child import Child, Children
from tests.processes.contender import SIDE, TOPIC
from tests.processes.journal import Line, read
from tests.processes.takeover_log import Fight
from tests.row_json import row_json
from tests.waiting import moment_of_chance

TAKEOVERS = int(os.environ.get("TAKEOVERS", "0"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
SHORT = 60
CONTENDERS = 8
GRANT = ("sessionId", "accessMode", "owner", "waited", "grantedMs", "after", "transactionsAborted")
PATIENCE_S = 120
"""Without a new owner for so long, somebody waits for a topic that is free."""


class Arena:
    """The contenders, and what befalls them."""

    def __init__(self, path: str, directory: Path, children: Children, chance: random.Random) -> None:
        self._path = path
        self._directory = directory
        self._children = children
        self._chance = chance
        self._running: dict[str, Child] = {}
        self._stopped: set[str] = set()
        self.history: dict[int, dict[str, Any]] = {}
        self.kills = self.stops = self.fences = 0

    def start(self, name: str) -> None:
        self._running[name] = self._children.module(
            "contender", self._path, self._directory / name, self._chance.random()
        )

    def run(self, store: Store, takeovers: int) -> None:
        """Until there were so many owners."""
        for number in range(CONTENDERS):
            self.start(f"contender-{number}")
        last, since = -1, time.monotonic()
        while last + 1 < takeovers:
            moment_of_chance(self._chance, 0, 0.2)
            self.strike(store)
            self.keep_history(store)
            if max(self.history, default=-1) > last:
                last, since = max(self.history), time.monotonic()
            assert time.monotonic() - since < PATIENCE_S, row_json(store.reports.show_producers(TOPIC))

    def strike(self, store: Store) -> None:
        """Kill one, stop one, let those go on that are stopped, or be the operator who fences the topic."""
        name = self._chance.choice(sorted(self._running))
        child, fate = self._running[name], self._chance.random()
        assert child.is_running, f"{name} ended by itself:\n{child.complaint()}"
        if fate < 0.15:
            self._stopped.discard(name)
            child.kill()
            self.kills += 1
            self.start(name)
        elif self._stopped:
            # One of them may hold the writer gate: until it goes on, we must not write either.
            self.resume()
        elif fate < 0.5:
            child.stop()
            self._stopped.add(name)
            self.stops += 1
        elif fate < 0.54:
            store.admin.producers.fence_producers(TOPIC)
            self.fences += 1

    def resume(self) -> None:
        """Let those go on that are stopped."""
        for name in self._stopped:
            self._running[name].resume()
        self._stopped.clear()

    def keep_history(self, store: Store) -> None:
        """The store keeps the last thousand owners: we keep them all, and see that none changes."""
        for row in row_json(store.reports.ownership_history(TOPIC, limit=1000)):
            known = self.history.get(row["topicEpoch"], row)
            assert [known[field] for field in GRANT] == [row[field] for field in GRANT], (
                "a grant never changes"
            )
            self.history[row["topicEpoch"]] = row

    def let_go(self) -> None:
        """All end by themselves, whoever waits for whom."""
        self.resume()
        for child in self._running.values():
            child.say("enough")
        for child in self._running.values():
            child.succeed(120)

    def lines(self) -> list[Line]:
        return [line for name in self._running for line in read(str(self._directory / name))]


@pytest.fixture
def path(empty: str) -> str:
    """Where the store with the contended topic lies; it is verified at the end."""
    with Store.open(empty) as store:
        for topic in (TOPIC, SIDE):
            store.create_topic(topic, ledger_entries_max=200)
    return empty


@pytest.mark.crash_sweep
def test_no_message_of_a_fenced_producer_is_ever_seen(
    path: str, tmp_path: Path, children: Children, capsys: pytest.CaptureFixture[str]
):
    """All access modes race, owners die, stall, expire and come back: epochs grow, one owner at a time, in turn."""
    (tmp_path / "journals").mkdir()
    arena = Arena(path, tmp_path / "journals", children, random.Random(SEED))
    began = time.monotonic()
    with Store.open(path, lock_timeout=120) as store:
        arena.run(store, TAKEOVERS or SHORT)
        arena.let_go()
        store.admin.transactions.reap_transactions()
        arena.keep_history(store)
        fight = Fight(store, arena.lines(), arena.history)
        fight.check()
        with store.create_producer(TOPIC, access_mode="Exclusive") as last:
            assert last.topic_epoch == len(arena.history), "the topic is free, and nobody is forgotten"
        figures = fight.figures()
        assert not TAKEOVERS or all(figures.values()), f"something never happened: {figures}"
    if TAKEOVERS:
        with capsys.disabled():
            print(f"\n{len(arena.history)} owners in {time.monotonic() - began:.0f} s; {arena.kills} contenders killed, "
                  f"{arena.stops} stopped; {figures}")  # fmt: skip

"""T2: many processes that commit at the same time: total rate, fairness, and slowest process.

The slow end is judged beside as many commits in a row: in a fair queue a commit waits for one of each other process.
SQLite's is context: a writer that finds the lock taken sleeps, and the writers that it starves do not show in its p99.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks import crew
from benchmarks.bench import Bench
from benchmarks.contract import targets_of
from benchmarks.crew import Crew, Turn
from benchmarks.engine import TOPIC
from benchmarks.peers import sqlite_log
from benchmarks.report import Comparison
from storage import Store


class Sends:
    """`Work`: one message, one durable commit."""

    def __init__(self, directory: Path, number: int) -> None:
        self._store = Store.open(directory, lock_timeout=60)
        self._producer = self._store.create_producer(TOPIC)
        self._value = b"%0100d" % number

    def choose(self, load: None) -> None: ...

    def attempt(self) -> bool:
        self._producer.send(self._value)
        return True

    def close(self) -> None:
        self._producer.close()
        self._store.close()


def commits_of_eight(bench: Bench) -> Iterator[Comparison]:
    """T2. One message a commit, one row a commit. One process alone is the first of the same crew."""
    together, fairness, slow_end, slow_end_of_peer = targets_of("T2")
    size, seconds = bench.sizes.processes_max, bench.sizes.fairness_seconds
    alone: list[Turn] = []
    own_turns: list[Turn] = []
    peer_turns: list[Turn] = []
    with bench.scratch() as directory:
        directory_of_store, directory_of_peer = directory / "store", directory / "sqlite"
        Store.create(directory_of_store)
        with Store.open(directory_of_store) as store:
            store.create_topic(TOPIC)
        sqlite_log.create(directory_of_peer, bench.sizes.sqlite_warmup)
        with (
            Crew(partial(Sends, directory_of_store), size) as own_crew,
            Crew(partial(sqlite_log.Inserts, directory_of_peer), size) as peer_crew,
        ):
            for _ in range(bench.sizes.crew_rounds):
                alone.append(own_crew.burst(seconds, size=1))
                own_turns.append(own_crew.burst(seconds))
                peer_turns.append(peer_crew.burst(seconds))
    details = {
        "ours": crew.figures(own_turns),
        "alone": crew.figures(alone),
        "sqlite": crew.figures(peer_turns),
    }
    yield Comparison(together, crew.median_each(own_turns), crew.median_each(alone), details)
    counts = crew.figures(own_turns)["byProcess"]
    whole = seconds * len(own_turns)
    yield Comparison(
        fairness, crew.seconds_each(whole, min(counts)), crew.seconds_each(whole, max(counts)), details
    )
    slowest = _worst_p99(own_turns)
    yield Comparison(slow_end, slowest, size * crew.percentile(alone, 0, 50), details)
    yield Comparison(slow_end_of_peer, slowest, _worst_p99(peer_turns), details)


def _worst_p99(turns: list[Turn]) -> float:
    return max(crew.percentile(turns, number, 99) for number in range(len(turns[0].done)))

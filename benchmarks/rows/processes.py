"""T2: many processes that commit at the same time: total rate, fairness, and slowest process."""

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
    together, fairness, slow_end = targets_of("T2")
    size, seconds = bench.sizes.processes_max, bench.sizes.fairness_seconds
    alone: list[Turn] = []
    ours: list[Turn] = []
    theirs: list[Turn] = []
    with bench.scratch() as directory:
        place, other = directory / "store", directory / "sqlite"
        Store.create(place)
        with Store.open(place) as store:
            store.create_topic(TOPIC)
        sqlite_log.create(other, bench.sizes.sqlite_warmup)
        with (
            Crew(partial(Sends, place), size) as mine,
            Crew(partial(sqlite_log.Inserts, other), size) as peer,
        ):
            for _ in range(bench.sizes.crew_rounds):
                alone.append(mine.burst(seconds, size=1))
                ours.append(mine.burst(seconds))
                theirs.append(peer.burst(seconds))
    details = {"ours": crew.figures(ours), "alone": crew.figures(alone), "sqlite": crew.figures(theirs)}
    yield Comparison(together, crew.median_each(ours), crew.median_each(alone), details)
    counts = crew.figures(ours)["byProcess"]
    whole = seconds * len(ours)
    yield Comparison(
        fairness, crew.seconds_each(whole, min(counts)), crew.seconds_each(whole, max(counts)), details
    )
    yield Comparison(slow_end, _worst_p99(ours), _worst_p99(theirs), details)


def _worst_p99(turns: list[Turn]) -> float:
    return max(crew.percentile(turns, number, 99) for number in range(len(turns[0].done)))

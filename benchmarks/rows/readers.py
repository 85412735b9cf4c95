"""K3: a reader whose keys are written by several writers, at read-committed and serializable."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

from benchmarks import accounts, crew
from benchmarks.bench import Bench
from benchmarks.contract import targets_of
from benchmarks.crew import Crew, Turn
from benchmarks.report import Comparison
from storage import TransactionIsolation

_KEYS = 100
_WRITERS = 4
_COMMITTED = TransactionIsolation.READ_COMMITTED.value
_SERIALIZABLE = TransactionIsolation.SERIALIZABLE.value


class _Scene:
    """The bursts of readers and of writers in one situation."""

    def __init__(self) -> None:
        self.reads: list[Turn] = []
        self.writes: list[Turn] = []

    @property
    def aborts_each_second(self) -> float:
        """The median over bursts of attempts that were refused, readers' and writers'."""
        pairs = zip(self.reads, self.writes, strict=True)
        return statistics.median((sum(r.refused) + sum(w.refused)) / r.seconds for r, w in pairs)

    def details(self) -> dict[str, object]:
        return {
            name: crew.figures(turns)
            for name, turns in (("reads", self.reads), ("writes", self.writes))
            if turns
        }


def reads_beside_writers(bench: Bench) -> Iterator[Comparison]:
    """K3. Writers never conflict with each other, so that every abort is caused by the reader. A read is a transaction
    of ten gets.
    """
    size = min(_WRITERS, bench.sizes.processes_max)
    scenes = {name: _Scene() for name in ("alone", "alone, strict", "beside", "beside, strict", "writers")}
    with bench.scratch() as directory:
        store = directory / "store"
        accounts.create(store, _KEYS)
        with (
            Crew(partial(accounts.Reads, store, _KEYS), 1) as readers,
            Crew(partial(accounts.Writes, store, _KEYS, size), size) as writers,
        ):
            for _ in range(bench.sizes.crew_rounds):
                _play(bench, scenes, readers, writers)
    yield from _comparisons(scenes)


def _play(bench: Bench, scenes: dict[str, _Scene], readers: Crew, writers: Crew) -> None:
    seconds = 2 * bench.sizes.crew_seconds
    scenes["alone"].reads.append(readers.burst(seconds, _COMMITTED))
    scenes["alone, strict"].reads.append(readers.burst(seconds, _SERIALIZABLE))
    scenes["writers"].writes.append(writers.burst(seconds))
    for name, isolation in (("beside", _COMMITTED), ("beside, strict", _SERIALIZABLE)):
        writers.begin(seconds)
        scenes[name].reads.append(readers.burst(seconds, isolation))
        scenes[name].writes.append(writers.collect(seconds))


def _comparisons(scenes: dict[str, _Scene]) -> Iterator[Comparison]:
    reads = {name: crew.median_each(scene.reads) for name, scene in scenes.items() if scene.reads}
    writes = {name: crew.median_each(scene.writes) for name, scene in scenes.items() if scene.writes}
    details = {name: scene.details() for name, scene in scenes.items()}
    beside, strict, isolations, aborts, strict_aborts, writers, strict_writers = targets_of("K3")
    yield Comparison(beside, reads["beside"], reads["alone"], details)
    yield Comparison(strict, reads["beside, strict"], reads["alone, strict"], details)
    yield Comparison(isolations, reads["beside"], reads["beside, strict"], details)
    yield Comparison(aborts, scenes["beside"].aborts_each_second, None, details)
    yield Comparison(strict_aborts, scenes["beside, strict"].aborts_each_second, None, details)
    yield Comparison(writers, writes["beside"], writes["writers"], details)
    yield Comparison(strict_writers, writes["beside, strict"], writes["writers"], details)

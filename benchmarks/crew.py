"""Processes that do the same work at the same time, in bursts.

Each process opens its store or database once, and waits between bursts, so that crews of several contenders can take
turns. All processes of a burst begin and stop at the same time of the machine's common clock.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter, sleep
from typing import Any, Protocol, Self, TypedDict

_LEAD_S = 0.03
"""The delay from the command to the first operation, long enough to reach all processes."""


class Work(Protocol):
    """The work of one process; constructed in that process."""

    def choose(self, load: Any) -> None:
        """Prepare the next operation under a load, a value of the row. Not timed."""
        ...

    def attempt(self) -> bool:
        """Run the operation durably; return False if it was refused and must be retried."""
        ...

    def close(self) -> None: ...


class CrewFigures(TypedDict):
    """The saved figures of a crew's bursts; lists have an item for each burst or process."""

    bursts: int
    perSecond: list[float]
    byProcess: list[int]
    refused: int
    p50: list[float]
    p99: list[float]


@dataclass(slots=True)
class Turn:
    """One burst of one crew.

    Attributes:
        done: operations completed within the burst, by process.
        times: the seconds of each operation, retries included, by process.
        refused: failed attempts, by process.
    """

    seconds: float
    done: list[int]
    times: list[list[float]]
    refused: list[int]

    @property
    def seconds_each(self) -> float:
        """Seconds for each operation of the whole crew together."""
        return seconds_each(self.seconds, sum(self.done))


def seconds_each(seconds: float, count: int) -> float:
    """Seconds for each operation. No operation counts as half an operation, so that a ratio stays a number."""
    return seconds / max(count, 0.5)


class Crew:
    """Processes number 0, 1, ...; `make` must be picklable and is given the number."""

    def __init__(self, make: Callable[[int], Work], size: int) -> None:
        context = get_context("spawn")
        self._lines: list[Connection] = []
        self._processes = []
        for number in range(size):
            own_end, process_end = context.Pipe()
            process = context.Process(target=_serve, args=(make, number, process_end), daemon=True)
            process.start()
            process_end.close()
            self._lines.append(own_end)
            self._processes.append(process)
        for line in self._lines:
            assert line.recv() == "ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self._lines:
            with suppress(OSError):
                line.send(None)
        for process in self._processes:
            process.join()

    def begin(self, seconds: float, load: Any = None, size: int | None = None) -> None:
        """Let the first `size` processes work for so many seconds."""
        start = perf_counter() + _LEAD_S
        for line in self._lines[:size]:
            line.send((start, start + seconds, load))

    def collect(self, seconds: float, size: int | None = None) -> Turn:
        """Return the results of `begin` with the same arguments."""
        answers = [line.recv() for line in self._lines[:size]]
        done, times, refused = (list(column) for column in zip(*answers, strict=True))
        return Turn(seconds, done, times, refused)

    def burst(self, seconds: float, load: Any = None, size: int | None = None) -> Turn:
        """Begin and collect."""
        self.begin(seconds, load, size)
        return self.collect(seconds, size)


def _serve(make: Callable[[int], Work], number: int, line: Connection) -> None:
    work = make(number)
    try:
        line.send("ready")
        while (command := line.recv()) is not None:
            line.send(_burst(work, *command))
    finally:
        work.close()


def _burst(work: Work, start: float, until: float, load: Any) -> tuple[int, list[float], int]:
    done, times, refused = 0, [], 0
    sleep(max(0.0, start - perf_counter()))
    while perf_counter() < until:
        work.choose(load)
        began = perf_counter()
        while not (succeeded := work.attempt()):
            refused += 1
            if perf_counter() >= until:
                break
        ended = perf_counter()
        if succeeded:
            times.append(ended - began)
            done += ended <= until
    return done, times, refused


def median_each(turns: Sequence[Turn]) -> float:
    """The median over bursts of the seconds an operation of the crew."""
    return statistics.median(turn.seconds_each for turn in turns)


def percentile(turns: Sequence[Turn], number: int, percent: int) -> float:
    """A percentile of the times of one process over all bursts, in seconds; for an idle process the length of the
    bursts.
    """
    times = sorted(time for turn in turns for time in turn.times[number])
    if not times:
        return sum(turn.seconds for turn in turns)
    return times[min(len(times) - 1, len(times) * percent // 100)]


def figures(turns: Sequence[Turn]) -> CrewFigures:
    """Return the saved figures of a crew's bursts."""
    processes = range(len(turns[0].done))
    return {
        "bursts": len(turns),
        "perSecond": [sum(turn.done) / turn.seconds for turn in turns],
        "byProcess": [sum(turn.done[number] for turn in turns) for number in processes],
        "refused": sum(sum(turn.refused) for turn in turns),
        "p50": [percentile(turns, number, 50) for number in processes],
        "p99": [percentile(turns, number, 99) for number in processes],
    }

"""Measurement of time: contenders take turns in short bursts, and the median over all operations is reported.

Whole runs one after the other do not repeat (one disk varied by a factor of twenty between two minutes); turns of a few
operations do, because a slow phase of the machine slows every contender.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter

Operation = Callable[[], object]


@dataclass(slots=True)
class Sample:
    """The durations of one contender's operations, in seconds."""

    times: list[float] = field(default_factory=list)

    @property
    def p50(self) -> float:
        return statistics.median(self.times)

    @property
    def p99(self) -> float:
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, (len(ordered) * 99) // 100)]

    def divided(self, parts: int) -> Sample:
        """The same, where each operation was so many of the operations to be reported."""
        return Sample([time / parts for time in self.times])

    def figures(self) -> dict[str, float | int]:
        """Return the saved figures: p10, p50, p90, p99 and the number of operations."""
        ordered = sorted(self.times)
        last = len(ordered) - 1
        return {
            "count": len(ordered),
            "p10": ordered[last * 10 // 100],
            "p50": self.p50,
            "p90": ordered[last * 90 // 100],
            "p99": self.p99,
        }


def interleave(
    contenders: Mapping[str, Operation], *, rounds: int, burst: int = 1, warmup: int = 1
) -> dict[str, Sample]:
    """Run `rounds` turns of `burst` operations for each contender; the first `warmup` turns are not counted.

    The order rotates, so that no contender always follows the same neighbour.
    """
    samples = {name: Sample() for name in contenders}
    for turn, order in enumerate(_orders(list(contenders), rounds + warmup)):
        for name in order:
            times = _burst(contenders[name], burst)
            if turn >= warmup:
                samples[name].times += times
    return samples


def _orders(names: list[str], turns: int) -> Iterator[list[str]]:
    for turn in range(turns):
        first = turn % len(names)
        yield names[first:] + names[:first]


def _burst(operation: Operation, count: int) -> list[float]:
    """Run one turn. Garbage of the previous contender is collected first, outside the measured time."""
    gc.collect()
    times = []
    for _ in range(count):
        started = perf_counter()
        operation()
        times.append(perf_counter() - started)
    return times

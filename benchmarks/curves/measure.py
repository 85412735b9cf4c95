"""Measuring an axis: stores of all sizes are built, opened together, and operated on in turns."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from benchmarks.bench import Bench
from benchmarks.bursts import Sample, interleave
from benchmarks.curves.axes import AXES, FEW_MESSAGES, Axis, send_messages
from benchmarks.curves.subject import Subject, create
from storage import Position, Store

BOUND = 1.5
"""The most that an operation may cost beside the smallest store."""

BURST = 5
"""Operations of a turn."""

_MEMORY = Path("/dev/shm")
_REPORT_S = 5.0


@dataclass(frozen=True, slots=True)
class Curve:
    """The times of one operation by the size of the store."""

    axis: str
    operation: str
    samples: dict[int, Sample]

    @property
    def smallest_s(self) -> float:
        """The median on the smallest store, in seconds."""
        return self.samples[min(self.samples)].p50

    def ratios(self) -> dict[int, float]:
        """The medians beside that of the smallest store, by size."""
        return {size: sample.p50 / self.smallest_s for size, sample in sorted(self.samples.items())}


@dataclass(frozen=True, slots=True)
class Built:
    """A store that was built: its directory, the position before its last thousand messages, seconds and bytes."""

    path: Path
    last_thousand: Position
    seconds: float
    bytes: int


def measure_axis(bench: Bench, name: str, sizes: Sequence[int], rounds: int) -> list[Curve]:
    """Build a store of each size, and measure all operations of an axis, the stores in turns."""
    axis, curves = AXES[name], []
    with ExitStack() as opened:
        directory = opened.enter_context(bench.scratch())
        subjects = {}
        for size in sizes:
            built = _build(directory / f"{name}-{size}", axis, size)
            _say(f"{name} {size:,}: built in {built.seconds:.0f} s, {built.bytes >> 20:,} MiB")
            store = opened.enter_context(Store.open(built.path))
            subjects[size] = Subject(store, built.last_thousand)
            if axis.join is not None:
                axis.join(store, size)
        for operation in subjects[sizes[0]].operations():
            if operation in axis.leaves_out:
                continue
            contenders = {str(size): subject.operations()[operation] for size, subject in subjects.items()}
            samples = interleave(contenders, rounds=rounds, burst=BURST, warmup=1)
            curves.append(Curve(name, operation, {int(size): sample for size, sample in samples.items()}))
    return curves


def _build(path: Path, axis: Axis, size: int) -> Built:
    """Build a store, in memory first where its commits are many and small."""
    started = perf_counter()
    is_small = axis.fill is not None and os.access(_MEMORY, os.W_OK)
    place = _MEMORY / f"txnctl-curves-{os.getpid()}" if is_small else path
    messages = size if axis is AXES["messages"] else FEW_MESSAGES
    try:
        create(place)
        with Store.open(place) as store:
            if axis.fill is not None:
                axis.fill(store, size, _Progress(f"{axis.what}", size))
            last_thousand = send_messages(store, messages, _Progress("messages", messages))
        if place != path:
            shutil.copytree(place, path)
    finally:
        if place != path:
            shutil.rmtree(place, ignore_errors=True)
    allocated = sum(file.stat().st_blocks * 512 for file in path.iterdir())
    return Built(path, last_thousand, perf_counter() - started, allocated)


class _Progress:
    """Says on standard error, every few seconds, how much of a store is built."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._next = perf_counter() + _REPORT_S

    def __call__(self, done: int) -> None:
        if perf_counter() >= self._next:
            self._next = perf_counter() + _REPORT_S
            _say(f"  {done:,} of {self._total:,} {self._what}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

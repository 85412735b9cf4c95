"""The soak in its short form: two days of a busy store in a quarter of a minute, and neither files nor memory grow."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import chart
from benchmarks.soak.fast_clock import FastClock
from benchmarks.soak.jobs import JOBS
from benchmarks.soak.run import Soak
from benchmarks.soak.samples import Rule, Series, panels, table_lines
from storage.process.clock import SYSTEM_CLOCK

FILES_MIB = 64.0
MEMORY_MIB = 40.0
GROWTH_MIB = 20.0
"""Of this process, which runs further tests and begins with the memory of those before."""


def test_neither_files_nor_memory_grow(tmp_path: Path) -> None:
    """With retention on, with readers killed and stopped inside their views: bounds that a leak of days passes."""
    said: list[str] = []
    series = Soak(tmp_path, 0.25, said.append, hours=48, samples=30).run()
    by_group = {
        group: [one for one in series if one.group == group] for group in ("files", "memory", "latency")
    }
    assert {one.name for one in by_group["memory"]} == {*JOBS, "this process"}
    for group, bound in (("files", FILES_MIB), ("memory", MEMORY_MIB)):
        for one in by_group[group]:
            values = [value for _, value in one.points]
            most = values[0] + GROWTH_MIB if one.name == "this process" else bound
            assert max(values) <= most, one
    assert len(by_group["latency"]) == 4
    assert "verify: 0 problems" in said[-1]


@pytest.mark.parametrize(
    ("values", "is_flat"),
    [
        ([5, 5, 5, 5, 5, 5], True),
        ([1, 9, 9, 9, 9, 9], True),
        ([5, 6, 7, 8, 9, 10], False),
        ([9, 1, 9, 1, 9, 1], True),
    ],
)
def test_flat_is_told_by_the_medians_of_both_halves(values: list[float], is_flat: bool) -> None:
    """The warm-up does not count, and single outliers do not."""
    series = Series("x", "files", "MiB", Rule(1.1, 0.0), list(enumerate(map(float, values))))  # type: ignore[arg-type]
    assert series.is_flat == is_flat
    assert table_lines([series])[-1].endswith(f"| {'yes' if is_flat else 'NO'} |")
    assert ElementTree.fromstring(chart.svg(panels([series]), "samples")).findall(".//{*}polyline")


def test_all_processes_of_a_soak_have_one_clock() -> None:
    """The clock that another process makes of the arguments shows the same time, which passes faster."""
    clock = FastClock(1000)
    before, machine = clock.boot_ns(), SYSTEM_CLOCK.boot_ns()
    other = FastClock.of(clock.arguments())
    assert before <= other.boot_ns() <= clock.boot_ns()
    assert clock.boot_ns() - before >= (SYSTEM_CLOCK.boot_ns() - machine) * 900
    assert other.wall_ns() - clock.origin_wall_ns <= clock.boot_ns() - clock.origin_ns

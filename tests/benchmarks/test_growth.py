"""Rows of the benchmarks do work in proportion to their sizes: calls of Python are counted, and no time is taken.

The quick form of all rows is in `test_bench_smoke.py`, at sizes where even work that grows with the square of a size ends.
"""

from __future__ import annotations

import cProfile
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.bench import Bench
from benchmarks.rows import ROWS
from benchmarks.sizes import QUICK, Sizes

SMALL = replace(QUICK, aborted_transactions=200, open_transactions=200)
LARGE = replace(SMALL, aborted_transactions=800, open_transactions=800, commit_keys=800)
TIMES = 4
SHARE = 1.3
"""Calls at most, over the growth of the sizes; work that grows with the square of a size comes to a share of `TIMES`."""
GROWING = ("I1", "I2", "T3")
"""Rows whose transactions or keys of a commit grow with the sizes, in this process."""


def calls(row: str, directory: Path, sizes: Sizes) -> int:
    """The calls of Python in one run of a row."""
    directory.mkdir()
    bench, profile = Bench(directory, sizes), cProfile.Profile()
    profile.enable()
    try:
        list(ROWS[row](bench))
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("row", GROWING)
def test_a_row_of_larger_sizes_takes_calls_in_proportion(row: str, tmp_path: Path) -> None:
    """Four times the transactions and keys take at most 5.2 times the calls."""
    small, large = calls(row, tmp_path / "small", SMALL), calls(row, tmp_path / "large", LARGE)
    assert large <= small * TIMES * SHARE


def test_a_part_of_the_sizes_has_all_rows_and_no_empty_one() -> None:
    """A thousandth has the quick sizes where these are larger; processes and partitions stay."""
    assert replace(QUICK.times(0.001), name=QUICK.name) == QUICK
    assert SMALL.times(TIMES).open_transactions == LARGE.open_transactions
    assert SMALL.times(TIMES).processes_max == SMALL.processes_max

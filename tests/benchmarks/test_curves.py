"""The cost curves run at a tiny size, print a table for every axis, and draw the figure. No time is asserted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.bursts import Sample
from benchmarks.curves.__main__ import _parser, figure, largest_size, sizes_up_to, table_lines
from benchmarks.curves.axes import AXES
from benchmarks.curves.measure import Curve

PROJECT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
OPERATIONS = 11


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.curves", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False)


def test_every_axis_has_a_table_and_a_panel(tmp_path: Path) -> None:
    """Each operation is measured on stores of all sizes, but for those that list the counted things."""
    picture, disk = tmp_path / "curves.svg", tmp_path / "disk"
    disk.mkdir()
    sizes = ["--messages", "20000", "--count", "3", "--aborted", "1100", "--rounds", "1"]
    done = run(*sizes, "--svg", str(picture), "--dir", str(disk))
    assert done.returncode == 0, done.stderr
    tables = done.stdout.strip().split("\n\n")[1:]
    assert [table.split("|")[1].strip() for table in tables] == [axis.what for axis in AXES.values()]
    for table, axis in zip(tables, AXES.values(), strict=True):
        rows = table.splitlines()[2:]
        assert len(rows) == OPERATIONS - len(axis.leaves_out)
        assert all(re.search(r" ms \| \d+\.\d\d", row) for row in rows)
    drawn = ElementTree.parse(picture).getroot()
    assert len(drawn.findall(f"{SVG}g")) == len(AXES)
    assert list(disk.iterdir()) == []


def test_an_axis_that_is_not_there_is_refused() -> None:
    """The error names the axes that there are."""
    done = run("volume")
    assert done.returncode == 2
    assert "messages" in done.stderr


@pytest.mark.parametrize(
    ("largest", "first", "step", "expected"),
    [
        (1_000_000, 10_000, 10, [10_000, 100_000, 1_000_000]),
        (10_000, 1, 100, [1, 100, 10_000]),
        (25_000, 10_000, 10, [10_000, 25_000]),
        (500, 10_000, 10, [500]),
    ],
)
def test_sizes_go_up_to_the_largest(largest: int, first: int, step: int, expected: list[int]) -> None:
    """From the first size on by a factor, the largest one included."""
    assert sizes_up_to(largest, first, step) == expected


def test_one_factor_reaches_every_axis() -> None:
    """A fiftieth of the curves has a fiftieth of the largest store of each axis."""
    whole, part = _parser().parse_args([]), _parser().parse_args(["--size", "0.02"])
    assert [largest_size(axis, part) * 50 for axis in AXES] == [largest_size(axis, whole) for axis in AXES]


def test_what_grows_is_marked() -> None:
    """The ratio is that to the smallest store; one beyond the bound is marked."""
    curve = Curve("topics", "get", {1: Sample([0.002]), 100: Sample([0.002]), 10_000: Sample([0.004])})
    assert curve.ratios() == {1: 1.0, 100: 1.0, 10_000: 2.0}
    assert list(table_lines("topics", [curve]))[-1] == "| get | 2.000 ms | 1.00 | 2.00 **>** |"
    line = ElementTree.fromstring(figure([curve])).find(f".//{SVG}polyline")
    assert line is not None
    assert len(line.attrib["points"].split()) == 3

"""The benchmarks run, judge in the right direction, and print and save what they should. No time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import machine
from benchmarks.bursts import Sample, interleave
from benchmarks.contract import TARGETS, Sense, Target
from benchmarks.report import HEADINGS, Comparison, table_lines
from benchmarks.rows import ROWS

PROJECT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], Path]:
    """One quick run of every row: its table, its JSON, and the directory it measured in."""
    place = tmp_path_factory.mktemp("benchmarks")
    saved = place / "figures.json"
    disk = place / "disk"
    disk.mkdir()
    done = run("--quick", "--json", str(saved), "--dir", str(disk))
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(saved.read_text()), disk


@pytest.mark.needs_program("java")
def test_spark_is_measured_in_two_sessions_of_one_process(
    quick: tuple[str, dict[str, Any], Path],
) -> None:
    """Ensure that a session of ours leaves nothing behind that the next one would trip over."""
    _table, document, _disk = quick
    assert {row["row"] for row in document["rows"]} >= {"X1", "X2"}
    assert "spark" in document["versions"]


def test_every_comparison_is_measured_or_the_missing_peer_is_named(
    quick: tuple[str, dict[str, Any], Path],
) -> None:
    """Ensure that no target is left out in silence."""
    _table, document, _disk = quick
    measured = {(row["row"], row["what"], row["beside"]) for row in document["rows"]}
    notes = " ".join(document["notes"])
    for target in TARGETS:
        peer_is_missing = f"{target.beside.partition(',')[0]} is left out" in notes
        row_is_missing = f"{target.row} is left out" in notes
        if not (peer_is_missing or row_is_missing):
            assert (target.row, target.what, target.beside) in measured


def test_saved_ratios_follow_from_the_saved_figures(quick: tuple[str, dict[str, Any], Path]) -> None:
    """Ensure that JSON has both sides' raw figures, and that they give the ratio that is judged."""
    _table, document, _disk = quick
    for row in document["rows"]:
        ours, peer = row["ours"], row["peer"]
        if row["sense"] == "speed":
            assert row["measured"] == pytest.approx(peer / ours)
        else:
            assert row["measured"] == pytest.approx(ours if peer is None else ours / peer)
    assert document["machine"]["cores"] >= 1
    assert document["machine"]["fsyncSeconds"] > 0
    assert {"python", "sqlite", "lmdb"} <= document["versions"].keys()
    assert document["sizes"] == "quick"


def test_table_has_a_line_for_each_comparison(quick: tuple[str, dict[str, Any], Path]) -> None:
    """Ensure that table and JSON hold the same comparisons in the same order."""
    table, document, _disk = quick
    heading, _rule, *lines = table.splitlines()
    assert [cell.strip() for cell in heading.split("|")] == list(HEADINGS)
    printed = [tuple(cell.strip() for cell in line.split("|"))[:3] for line in lines]
    assert printed == [(row["row"], row["what"], row["beside"]) for row in document["rows"]]


def test_nothing_is_left_on_the_measured_disk(quick: tuple[str, dict[str, Any], Path]) -> None:
    """Ensure that stores, databases and servers' files are gone afterwards."""
    _table, _document, disk = quick
    assert list(disk.iterdir()) == []


def test_rows_can_be_chosen(tmp_path: Path) -> None:
    """Ensure that only the rows asked for are measured."""
    done = run("D1", "--quick", "--dir", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == ["D1", "D1"]


def test_unknown_row_is_refused() -> None:
    """Ensure that a mistyped row is named beside those that exist."""
    done = run("P9")
    assert done.returncode == 2
    assert "no row P9" in done.stderr
    assert "P1, P2" in done.stderr


def test_memory_file_system_is_refused(tmp_path: Path) -> None:
    """Ensure that nobody measures flushes where a flush costs nothing."""
    memory = Path("/dev/shm")
    assert machine.file_system(memory) in machine.MEMORY_FILE_SYSTEMS
    assert machine.file_system(Path("/proc")) == "proc"
    done = run("P1", "--dir", str(memory), "--json", str(tmp_path / "figures.json"))
    assert done.returncode == 2
    assert "--dir" in done.stderr
    assert not (tmp_path / "figures.json").exists()


def test_every_target_has_a_row_and_every_row_a_target() -> None:
    """Ensure that the contract and the code that measures it name the same rows."""
    assert {target.row for target in TARGETS} == set(ROWS)


@pytest.mark.parametrize(
    ("sense", "ours", "peer", "ratio"),
    [(Sense.SPEED, 2.0, 1.0, 0.5), (Sense.TIME, 2.0, 1.0, 2.0), (Sense.AMOUNT, 1.5, None, 1.5)],
)
def test_ratio_points_the_way_the_target_says(
    sense: Sense, ours: float, peer: float | None, ratio: float
) -> None:
    """Ensure that taking twice the peer's time is half its speed."""
    assert Target("X", "what", "beside", sense, 1.0, None).ratio(ours, peer) == ratio


def test_verdict_names_what_is_reached() -> None:
    """Ensure that more is better for speeds and less for times, and that context is not judged."""
    speed = Target("X", "what", "beside", Sense.SPEED, goal=0.5, aim=0.8)
    assert [speed.verdict(ratio) for ratio in (0.4, 0.5, 0.8)] == ["NO", "goal", "aim"]
    time = Target("X", "what", "beside", Sense.TIME, goal=5.0, aim=4.0)
    assert [time.verdict(ratio) for ratio in (5.1, 5.0, 4.0)] == ["NO", "goal", "aim"]
    assert Target("X", "what", "beside", Sense.TIME, goal=None, aim=None).verdict(99.0) == ""


def test_contenders_take_turns() -> None:
    """Ensure that bursts alternate, that the first place rotates, and that warm-up turns are not counted."""
    seen: list[str] = []
    samples = interleave(
        {"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, rounds=2, burst=2, warmup=1
    )
    assert "".join(seen) == "aabb" + "bbaa" + "aabb"
    assert [len(sample.times) for sample in samples.values()] == [4, 4]


def test_figures_are_the_samples_percentiles() -> None:
    """Ensure that what is quoted is the median, and that the 99th percentile is of the slow end."""
    sample = Sample([float(number) for number in range(1, 101)])
    figures = sample.figures()
    assert (figures["count"], figures["p50"], figures["p99"]) == (100, 50.5, 100.0)
    assert figures["p10"] < figures["p50"] < figures["p90"]


def test_table_shows_goal_and_verdict() -> None:
    """Ensure that a missed goal stands out."""
    slow = Comparison(Target("X1", "what", "beside", Sense.SPEED, goal=0.5, aim=0.8), ours=4.0, peer=1.0)
    assert list(table_lines([slow]))[-1].split(" | ") == [
        "X1 ", "what", "beside", "0.25    ", ">= 0.50", "0.80", "     ", "NO",
    ]  # fmt: skip

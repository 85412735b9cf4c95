"""The samples of a soak, and the rule that says whether a figure stays flat."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.chart import Line, Panel

WARM_UP = 3
"""The first of so many parts of a run is left out: files, buffers and caches find their size then."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The growth that counts as none: from the first half of a run to the second, by a factor or by an amount."""

    factor: float
    amount: float


@dataclass(slots=True)
class Series:
    """A figure over the run: minutes since the start, and values."""

    name: str
    group: str
    unit: str
    rule: Rule
    points: list[tuple[float, float]] = field(default_factory=list)

    def halves(self) -> tuple[float, float]:
        """The medians of the first and the second half of the run, without the warm-up."""
        steady = self.points[len(self.points) // WARM_UP :]
        middle = len(steady) // 2
        first, second = [y for _, y in steady[:middle]], [y for _, y in steady[middle:]]
        return statistics.median(first or second), statistics.median(second)

    @property
    def is_flat(self) -> bool:
        """Whether the second half is no larger than the first, within the rule."""
        first, second = self.halves()
        return second <= max(first * self.rule.factor, first + self.rule.amount)


def panels(series: Sequence[Series]) -> list[Panel]:
    """A panel for each group of series."""
    groups = dict.fromkeys(one.group for one in series)
    return [
        Panel(
            f"{group}, {next(one.unit for one in series if one.group == group)}", "minutes",
            [Line(one.name, one.points) for one in series if one.group == group],
        )
        for group in groups
    ]  # fmt: skip


def table_lines(series: Sequence[Series]) -> list[str]:
    """The medians of both halves of every series, in Markdown."""
    lines = ["| figure | unit | first half | second half | flat |", "|---|---|---|---|---|"]
    for one in series:
        first, second = map(_rounded, one.halves())
        flat = "yes" if one.is_flat else "NO"
        lines.append(f"| {one.group}: {one.name} | {one.unit} | {first} | {second} | {flat} |")
    return lines


def _rounded(value: float) -> str:
    """A figure with two decimals, or with more where these would be zero."""
    return f"{value:.2f}" if value >= 0.01 else f"{value:.2g}"


def anonymous_bytes(pid: int) -> int:
    """The memory of a process that is no file's, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0

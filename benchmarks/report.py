"""The two renderings of a run: the table for people, and JSON with every raw figure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bursts import Sample
from benchmarks.contract import Sense, Target

HEADINGS = ("row", "what", "beside", "measured", "goal", "aim", "calls", "reached?")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A target with its two measured figures, in the target's unit, and the calls of our operation, if counted."""

    target: Target
    ours: float
    peer: float | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    calls: float | None = None

    @property
    def measured(self) -> float:
        return self.target.ratio(self.ours, self.peer)

    @property
    def reached(self) -> str:
        return self.target.verdict(self.measured)

    def document(self) -> Mapping[str, object]:
        target = self.target
        return {
            "row": target.row,
            "what": target.what,
            "beside": target.beside,
            "sense": target.sense.value,
            "unit": target.unit,
            "ours": self.ours,
            "peer": self.peer,
            "measured": self.measured,
            "goal": target.goal,
            "aim": target.aim,
            "reached": self.reached or None,
            "calls": self.calls,
            "details": self.details,
        }


def compare(target: Target, ours: Sample, peer: Sample) -> Comparison:
    """The usual comparison: medians of two interleaved samples."""
    return Comparison(target, ours.p50, peer.p50, {"ours": ours.figures(), "peer": peer.figures()})


def table_lines(comparisons: Iterable[Comparison], *, judge: bool = True) -> Iterator[str]:
    """The table, as lines, all columns as wide as their widest cell; without `judge` the last column is empty."""
    rows = [HEADINGS, *(_cells(comparison, judge) for comparison in comparisons)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for number, row in enumerate(rows):
        yield " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if number == 0:
            yield "-|-".join("-" * width for width in widths)


def _cells(comparison: Comparison, judge: bool) -> tuple[str, ...]:
    target = comparison.target
    sign = ">= " if target.sense is Sense.SPEED else "<= "
    return (
        target.row,
        target.what,
        target.beside,
        _figure(comparison.measured),
        "" if target.goal is None else sign + _figure(target.goal),
        "" if target.aim is None else _figure(target.aim),
        "" if comparison.calls is None else _figure(comparison.calls),
        comparison.reached if judge else "",
    )


def _figure(number: float) -> str:
    """Two digits after the point below 10, one below 100, then none: `0.95`, `12.4`, `150`."""
    if number >= 100:
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def save(path: Path, document: Mapping[str, object]) -> None:
    """Write the JSON of a run."""
    path.write_text(json.dumps(document, indent=2) + "\n")

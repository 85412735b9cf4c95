"""`python -m benchmarks.curves [AXIS ...] [--size F] [--messages N] [--count N] [--aborted N] [--svg FILE]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import chart, machine
from benchmarks.bench import Bench
from benchmarks.chart import Line, Panel
from benchmarks.curves.axes import AXES
from benchmarks.curves.measure import BOUND, Curve, measure_axis
from benchmarks.options import add_directory, add_figure, add_names, all_known
from benchmarks.sizes import QUICK


def main(arguments: list[str] | None = None) -> int:
    """Measure the requested axes, print their tables, and draw the figure; return the exit code (2: no such axis)."""
    options = _parser().parse_args(arguments)
    if not all_known("axis", options.names, AXES):
        return 2
    curves: list[Curve] = []
    with tempfile.TemporaryDirectory(prefix="txnctl-curves-", dir=options.dir) as directory:
        bench = Bench(Path(directory), QUICK)
        for line in _facts(bench):
            print(line)
        for axis in options.names or list(AXES):
            sizes = sizes_up_to(largest_size(axis, options), _FIRST.get(axis, 1), _STEP.get(axis, 100))
            measured = measure_axis(bench, axis, sizes, options.rounds)
            print("\n".join(table_lines(axis, measured)), flush=True)
            curves += measured
    if options.svg is not None:
        options.svg.write_text(figure(curves))
    return 0


_FIRST = {"messages": 10_000, "aborted": 1_000}
_STEP = {"messages": 10, "aborted": 10}


def largest_size(axis: str, options: argparse.Namespace) -> int:
    """The largest size of an axis: the option's, times the one factor of all axes."""
    sizes, factor = {"messages": options.messages, "aborted": options.aborted}, float(options.size)
    return max(1, round(int(sizes.get(axis, options.count)) * factor))


def sizes_up_to(largest: int, first: int, step: int) -> list[int]:
    """The sizes of an axis: from the first one on, each `step` times the one before, and the largest."""
    sizes = [min(first, largest)]
    while sizes[-1] * step < largest:
        sizes.append(sizes[-1] * step)
    return [*sizes, largest] if largest > sizes[-1] else sizes


def _facts(bench: Bench) -> Iterator[str]:
    """The lines that say where and when the figures were taken."""
    facts, versions = machine.describe(bench.directory), machine.versions()
    yield f"{time.strftime('%Y-%m-%d', time.gmtime())}, {facts['processor']}, {facts['cores']} cores"
    yield (
        f"{facts['fileSystem']}, an fsync of {float(str(facts['fsyncSeconds'])) * 1000:.2f} ms, "
        f"Python {versions['python']}, load {float(str(facts['loadAverage'])):.1f}"
    )


def table_lines(axis: str, curves: Sequence[Curve]) -> Iterator[str]:
    """The table of an axis in Markdown: the time beside the smallest store, and how often that on each larger one."""
    sizes = sorted(curves[0].samples)
    yield ""
    yield f"| {AXES[axis].what} | {sizes[0]:,} | " + " | ".join(f"{size:,}" for size in sizes[1:]) + " |"
    yield "|---" * (len(sizes) + 1) + "|"
    for curve in curves:
        ratios = list(curve.ratios().values())[1:]
        cells = [f"{ratio:.2f}{' **>**' if ratio > BOUND else ''}" for ratio in ratios]
        yield f"| {curve.operation} | {curve.smallest_s * 1000:.3f} ms | " + " | ".join(cells) + " |"


def figure(curves: Sequence[Curve]) -> str:
    """The figure of all axes: the ratios, with the bound."""
    panels = []
    for axis in dict.fromkeys(curve.axis for curve in curves):
        lines = [
            Line(curve.operation, list(curve.ratios().items())) for curve in curves if curve.axis == axis
        ]
        panels.append(Panel(AXES[axis].what, "", lines, y_unit="x", bound=BOUND, y_max=2.0, x_is_log=True))
    return chart.svg(panels, "Time of each operation, beside that on the smallest store")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.curves",
        description="Measure each operation beside the size of the store, and print the ratios to the smallest.",
        epilog=f"Axes: {', '.join(AXES)}.",
    )
    add_names(parser, "axis")
    for option, default, what in (
        ("messages", 1_000_000, "messages of the largest store"),
        ("count", 10_000, "topics, subscriptions, producers, open transactions of the largest store"),
        ("aborted", 1_000_000, "aborted transactions of the largest store"),
        ("rounds", 20, "turns of each store for each operation, five operations each"),
    ):
        text = f"{what} (default: {default:,})"
        parser.add_argument(f"--{option}", type=int, metavar="N", default=default, help=text)
    parser.add_argument(
        "--size", type=float, metavar="F", default=1.0, help="a part of all of these stores, 0.1 for a tenth"
    )
    add_figure(parser)
    add_directory(parser, "the stores go")
    return parser


if __name__ == "__main__":
    sys.exit(main())

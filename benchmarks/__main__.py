"""`python -m benchmarks [ROW ...] [--quick] [--size F] [--json FILE] [--dir DIR]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks import machine, report
from benchmarks.bench import Bench
from benchmarks.calls import with_calls
from benchmarks.options import add_directory, add_names, all_known
from benchmarks.report import Comparison
from benchmarks.rows import ROWS
from benchmarks.sizes import FULL, QUICK
from tests.row_json import row_json


def main(arguments: list[str] | None = None) -> int:
    """Run the requested rows; return the exit code (2: no such row, or no disk under the directory)."""
    options = _parser().parse_args(arguments)
    if not all_known("row", options.names, ROWS):
        return 2
    kind = machine.file_system(options.dir)
    if kind in machine.MEMORY_FILE_SYSTEMS and not options.quick:
        print(
            f"error: {options.dir} is {kind}, where a flush costs nothing; name a directory on a disk with --dir",
            file=sys.stderr,
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="txnctl-benchmarks-", dir=options.dir) as directory:
        sizes = QUICK if options.quick else FULL if options.size == 1 else FULL.times(options.size)
        if options.spark_messages is not None:
            sizes = replace(sizes, spark_messages=options.spark_messages)
        bench = Bench(Path(directory), sizes)
        if options.quick:
            bench.note("--quick: the sizes are tiny, the figures mean nothing")
        return _run(bench, options.names or list(ROWS), options.json)


def _run(bench: Bench, rows: list[str], json_file: Path | None) -> int:
    machine_facts = machine.describe(bench.directory)
    started = time.time()
    comparisons: list[Comparison] = []
    for row in rows:
        print(f"{row} ...", file=sys.stderr, flush=True)
        comparisons += ROWS[row](bench)
    comparisons = with_calls(comparisons)
    for line in report.table_lines(comparisons, judge=bench.sizes.name == FULL.name):
        print(line)
    if json_file is not None:
        document = {
            "sizes": bench.sizes.name,
            "startedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "seconds": time.time() - started,
            "machine": machine_facts,
            "versions": {**row_json(machine.versions()), **bench.versions},
            "notes": bench.notes,
            "rows": [comparison.document() for comparison in comparisons],
        }
        report.save(json_file, document)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure this store beside its peers and print the ratios beside goal and aim.",
        epilog=f"Rows: {', '.join(ROWS)}. What each means is in docs/BENCHMARKS.md.",
    )
    add_names(parser, "row")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: shows that the harness runs, no figures"
    )
    parser.add_argument(
        "--size",
        type=float,
        metavar="F",
        default=1.0,
        help="a part of the full sizes, 0.1 for a tenth; not judged",
    )
    parser.add_argument(
        "--spark-messages", type=int, metavar="N", help="messages of X1 and X2 (default: 10,000,000)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="save every raw figure")
    add_directory(parser, "the measured files go; must be on a real disk")
    return parser


if __name__ == "__main__":
    sys.exit(main())

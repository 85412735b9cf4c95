"""`python -m benchmarks.soak [--minutes N] [--svg FILE] [--dir DIR]`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks import chart
from benchmarks.options import add_directory, add_figure
from benchmarks.soak.run import RUN_HOURS, Soak
from benchmarks.soak.samples import panels, table_lines


def main(arguments: list[str] | None = None) -> int:
    """Run the soak and print the medians; return 1 if a figure is not flat."""
    options = _parser().parse_args(arguments)
    # SIGTERM is handled like Ctrl-C: all child processes are killed, and all files removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="txnctl-soak-", dir=options.dir) as directory:
        series = Soak(Path(directory), options.minutes, _say).run()
    print("\n".join(table_lines(series)))
    if options.svg is not None:
        title = f"{RUN_HOURS} hours of a busy store, in {options.minutes:g} minutes"
        options.svg.write_text(chart.svg(panels(series), title))
    return 0 if all(one.is_flat for one in series) else 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak",
        description="Run a busy store for days by a fast clock, and print whether files, memory and latency stay flat.",
    )
    parser.add_argument("--minutes", type=float, default=10.0, metavar="N", help="real minutes (default: 10)")
    add_figure(parser)
    add_directory(parser, "the store goes")
    return parser


if __name__ == "__main__":
    sys.exit(main())

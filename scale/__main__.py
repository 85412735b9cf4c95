"""`python -m scale [--messages N] [--dir DIR] [--url URL] [--spare-executors]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scale.command import run_in_directory
from scale.proof import Proof


def main(arguments: list[str] | None = None) -> int:
    """Run the proof; return 1 if a check failed."""
    parser = argparse.ArgumentParser(prog="python -m scale", description="Prove Spark beyond one machine.")
    parser.add_argument("--messages", type=int, default=10_000_000, help="how many [default: 10,000,000]")
    parser.add_argument(
        "--dir", type=Path, help="where; needs about 600 bytes a message on a disk [default: TMPDIR]"
    )
    parser.add_argument(
        "--url",
        help="a new store on a server, which the cluster reads itself; it stays [default: a directory]",
    )
    parser.add_argument(
        "--spare-executors", action="store_true", help="leave out the copy whose executor is killed"
    )
    options = parser.parse_args(arguments)
    batch = max(100, min(10_000, options.messages // 200))
    return run_in_directory(
        lambda directory: Proof(
            directory,
            options.messages,
            batch,
            sys.stdout,
            options.url,
            spares_executors=options.spare_executors,
        ).run(),
        "scale",
        options.dir,
    )


if __name__ == "__main__":
    sys.exit(main())

"""The options that the commands of this package share: names of what to measure, the directory, the figure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from pathlib import Path


def add_names(parser: argparse.ArgumentParser, kind: str) -> None:
    """Add `names`, the things to measure by name; `kind` is the noun of one of them."""
    parser.add_argument(
        "names", nargs="*", metavar=kind.upper(), help=f"each {kind} to measure (default: all)"
    )


def all_known(kind: str, names: Sequence[str], known: Collection[str]) -> bool:
    """Whether every name is known; else say on standard error which is not, and which there are."""
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"error: no {kind} {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
    return not unknown


def add_directory(parser: argparse.ArgumentParser, contents: str) -> None:
    """Add `--dir`, where temporary stores and files go."""
    parser.add_argument(
        "--dir",
        type=Path,
        metavar="DIR",
        default=Path("/var/tmp"),
        help=f"where {contents} (default: /var/tmp)",
    )


def add_figure(parser: argparse.ArgumentParser) -> None:
    """Add `--svg`, the file of the figure."""
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the figure")

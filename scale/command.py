"""The end of the commands `python -m scale` and `python -m scale.transfers`: a directory, a run, an exit code."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path


class Disagreement(Exception):
    """The actual result differs from the expected one."""


def run_in_directory(run: Callable[[Path], object], purpose: str, parent: Path | None) -> int:
    """Run in a new directory, which is removed at the end; return 1 if a check failed, 2 if there is no parent, 130
    after an interrupt.

    Args:
        purpose: names the directory.
        parent: of the directory; None for TMPDIR.
    """
    if parent is not None and not parent.is_dir():
        print(f"error: {parent} is no directory; make it first, or leave --dir out", file=sys.stderr)
        return 2
    # SIGTERM is handled like Ctrl-C: all child processes are killed, and all files removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix=f"txnctl-{purpose}-", dir=parent) as directory:
        try:
            run(Path(directory))
        except (Disagreement, TimeoutError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
    return 0

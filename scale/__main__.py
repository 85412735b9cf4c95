"""`python -m scale [--messages N] [--dir DIR]`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from scale.proof import Disagreement, Proof


def main(arguments: list[str] | None = None) -> int:
    """Run the proof; return 1 if a check failed."""
    parser = argparse.ArgumentParser(prog="python -m scale", description="Prove Spark beyond one machine.")
    parser.add_argument("--messages", type=int, default=10_000_000, help="how many [default: 10,000,000]")
    parser.add_argument(
        "--dir", type=Path, help="where; needs about 600 bytes a message on a disk [default: TMPDIR]"
    )
    options = parser.parse_args(arguments)
    # SIGTERM is handled like Ctrl-C: all child processes are killed, and all files removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="txnctl-scale-", dir=options.dir) as directory:
        batch = max(100, min(10_000, options.messages // 200))
        try:
            Proof(Path(directory), options.messages, batch, sys.stdout).run()
        except (Disagreement, TimeoutError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

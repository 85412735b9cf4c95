"""A settlement without Spark that kills itself: `python -m tests.txnctl.pipelines.killed_settlement STORE POINT COUNT`.

At the COUNT-th time that the fault point is reached the process gets SIGKILL; if that never comes, it exits with 0.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count

from storage import faults
from tests.txnctl.pipelines.engine_steps import settle_locally
from txnctl.pipelines.settler import SettleOptions

MESSAGES = 5
POINTS = ("environment.before_commit", "environment.after_commit", "txn.before_record", "table.before_write")


def main() -> None:
    """Settle, and die on the way."""
    path, point, wanted = sys.argv[1:]
    reached = count(1)

    def kill() -> None:
        if next(reached) == int(wanted):
            os.kill(os.getpid(), signal.SIGKILL)

    faults.arm(point, kill)
    settle_locally(path, SettleOptions(skip=True), MESSAGES)


if __name__ == "__main__":
    main()

"""A txnctl of its own process on the machine that its parent describes: `python -m tests.golden.child WORDS`."""

from __future__ import annotations

import signal
import sys

from tests.golden.machine import Machine, entry

if __name__ == "__main__":
    # Started in the background, it would ignore what the scenario sends.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    Machine.of_child().install()
    sys.exit(entry()(sys.argv[1:]))

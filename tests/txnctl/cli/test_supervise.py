"""Commands of the user's as our children. What is passed on to them: see test_transactions.py, test_producers_lead.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]

_BESIDE_A_THREAD = """
import os, threading
from txnctl.cli import supervise

threading.Thread(target=threading.Event().wait, daemon=True).start()
for _ in range(10):
    assert supervise.run(["true"], dict(os.environ)).status == 0
"""


def test_the_end_of_a_short_command_is_seen_beside_another_thread() -> None:
    """Where SIGCHLD ends up on a thread that does not block it, nobody is told; the command has ended all the same."""
    done = subprocess.run([sys.executable, "-c", _BESIDE_A_THREAD], cwd=CHECKOUT, timeout=60, check=False)
    assert done.returncode == 0

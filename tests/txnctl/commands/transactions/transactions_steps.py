"""Steps that the tests of transactions share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

PYTHON = [sys.executable, "-m", "txnctl"]


def started(*words: str, program: Sequence[str] = PYTHON, **options: Any) -> subprocess.Popen[bytes]:
    """`txnctl` with these words, its streams pipes."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
    return subprocess.Popen([*program, *words], **streams)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Its exit code, what it printed, and what it said."""
    out, err = process.communicate(timeout=30)
    return process.returncode, out.decode(), err.decode()

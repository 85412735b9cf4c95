"""Commands in processes of their own: started, and waited for."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def started(*words: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """`txnctl` with these words, its streams pipes unless said otherwise; gone at the end."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
    with subprocess.Popen([sys.executable, "-m", "txnctl", *words], **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(true: Callable[[], bool], what: str) -> None:
    """Until it is so; not for long."""
    until = time.monotonic() + 20
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.01)

"""Commands in processes of their own: started, and waited for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

PATIENT: Final = (sys.executable, "-m", "txnctl")
"""The command as users start it."""

IMPATIENT_GRACE_S: Final = 2.0
_PROGRAM = f"""
import sys
from txnctl.cli import farewell
from txnctl.cli.main import main
farewell.GRACE_S = {IMPATIENT_GRACE_S}
sys.exit(main(sys.argv[1:]))
"""
IMPATIENT: Final = (sys.executable, "-c", _PROGRAM)
"""The same, but for the seconds between SIGTERM and SIGKILL."""


@contextmanager
def started(
    *words: str, program: tuple[str, ...] = PATIENT, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """`txnctl` with these words, its streams pipes unless said otherwise; gone at the end."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
    with subprocess.Popen([*program, *words], **streams) as process:
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


def shown(terminal: int, words: bytes) -> bytes:
    """What a terminal shows until these words are there."""
    seen = b""
    while words not in seen:
        seen += os.read(terminal, 1000)
    return seen


def drained(terminal: int) -> bytes:
    """What a terminal shows until the last that has it open is gone."""
    seen = b""
    while True:
        try:
            got = os.read(terminal, 1000)
        except OSError:
            break
        if not got:
            break
        seen += got
    os.close(terminal)
    return seen

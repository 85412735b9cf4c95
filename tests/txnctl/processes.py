"""Commands in processes of their own: started, and waited for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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


def sleeps_with_store(pid: int, store: Path) -> bool:
    """Whether a process has a store directory mapped and sleeps, as one that waits for a commit does."""
    is_open = str(store / "data.mdb") in Path(f"/proc/{pid}/maps").read_text()
    return is_open and Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("S")


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

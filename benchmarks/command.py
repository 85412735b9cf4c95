"""Ours, through the `txnctl` command: how to start it, and what beside a bare Python is compared."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

_PROJECT = Path(__file__).resolve().parent.parent

BARE_PYTHON = (sys.executable, "-c", "pass")


def txnctl() -> tuple[str, ...]:
    """The console script of this interpreter; where the project is not installed, the module."""
    script = Path(sysconfig.get_path("scripts")) / "txnctl"
    return (str(script),) if script.exists() else (sys.executable, "-m", "txnctl")


def environment(store: Path) -> dict[str, str]:
    """That of this process, but the store to use and no setting of txnctl or Python's own: one of those would have
    Python compile every module at every start.

    Both sides of a comparison are started with it. The project's directory is on the import path because it need not
    be installed.
    """
    inherited = {
        name: text for name, text in os.environ.items() if not name.startswith(("TXNCTL_", "PYTHON"))
    }
    return {**inherited, "TXNCTL_STORE": str(store), "PYTHONPATH": str(_PROJECT)}


def run(command: Sequence[str], variables: dict[str, str]) -> None:
    """Run to the end, output thrown away. A failure stops the benchmark and shows what the command said."""
    done = subprocess.run(
        command,
        check=False,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, list(command), stderr=done.stderr.decode())

"""This store through the `txnctl` command: the start of the command, and the bare Python as its peer."""

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
    """Return the console script of this interpreter; the module where the project is not installed."""
    script = Path(sysconfig.get_path("scripts")) / "txnctl"
    return (str(script),) if script.exists() else (sys.executable, "-m", "txnctl")


def environment(store: Path) -> dict[str, str]:
    """Return this process's environment with the store to use, without settings of txnctl or Python: such a setting can
    make Python compile every module at every start.

    Both sides of a comparison use this environment. The project's directory is on the import path because an
    installation is not required.
    """
    inherited = {
        name: text for name, text in os.environ.items() if not name.startswith(("TXNCTL_", "PYTHON"))
    }
    return {**inherited, "TXNCTL_STORE": str(store), "PYTHONPATH": str(_PROJECT)}


def run(command: Sequence[str], variables: dict[str, str]) -> None:
    """Run a command to its end, output discarded. A failure stops the benchmark and shows the command's errors."""
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

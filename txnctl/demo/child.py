"""Processes that run this very installation of txnctl, beside the one that tells the story."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO

import txnctl
from storage.errors import TxnctlError

_ERROR = "txnctl: error: "


def start(module: str, *words: str, stdin: IO[bytes] | int) -> subprocess.Popen[bytes]:
    """Start a module as a process of its own; its output and its errors are pipes.

    No TXNCTL_ variable of the caller reaches it: what it works on is said in its words alone.
    """
    root = os.path.dirname(os.path.dirname(os.path.abspath(txnctl.__file__)))
    variables = {name: value for name, value in os.environ.items() if not name.startswith("TXNCTL_")}
    variables["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [variables.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables,
    )


def failure(who: str, process: subprocess.Popen[bytes]) -> TxnctlError:
    """Give the error of a process that did not do what it was started for."""
    assert process.stderr is not None
    said = process.stderr.read().decode(errors="replace").strip()
    # A command's error has a line of its own, before its hint; of a traceback it is the last.
    errors = [line for line in said.splitlines() if line.startswith(_ERROR)]
    complaint = (errors or said.splitlines() or ["it said nothing"])[-1].removeprefix(_ERROR)
    return TxnctlError(f"{who}, a process of its own, failed: {complaint}", status=process.wait(), said=said)

"""Child processes of the story, run from this installation of txnctl."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO

import txnctl
from storage.errors import TxnctlError

_ERROR = "txnctl: error: "


def start(module: str, *words: str, stdin: IO[bytes] | int) -> subprocess.Popen[bytes]:
    """Start a module in a separate process, with pipes for output and errors.

    TXNCTL_ variables of the caller are not inherited: the arguments alone select store and settings.
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


def failure(actor: str, process: subprocess.Popen[bytes]) -> TxnctlError:
    """Return the error of a process that failed."""
    assert process.stderr is not None
    output = process.stderr.read().decode(errors="replace").strip()
    # A command prints the error on a separate line, before the hint; a traceback has the error on the last line.
    errors = [line for line in output.splitlines() if line.startswith(_ERROR)]
    complaint = (errors or output.splitlines() or ["no output"])[-1].removeprefix(_ERROR)
    return TxnctlError(
        f"{actor}, a process of its own, failed: {complaint}", status=process.wait(), output=output
    )

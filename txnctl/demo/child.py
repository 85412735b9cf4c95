"""Child processes of the story, run from this installation of txnctl."""

from __future__ import annotations

import subprocess
from typing import IO

from storage.errors import TxnctlError
from txnctl.cli.python_child import child_environment, module_command

_ERROR = "txnctl: error: "


def start(module: str, *words: str, stdin: IO[bytes] | int) -> subprocess.Popen[bytes]:
    """Start a module in a separate process, with pipes for output and errors.

    TXNCTL_ variables of the caller are not inherited: the arguments alone select store and settings.
    """
    variables = {name: value for name, value in child_environment().items() if not name.startswith("TXNCTL_")}
    return subprocess.Popen(
        module_command(module, *words),
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

"""Child processes of Python: the packages of this installation, and no module of the current directory.

With `-m` Python looks for modules in the current directory first: a `storage/` there would run in place of the engine.
"""

from __future__ import annotations

import os
import sys


def module_command(module: str, *words: str) -> list[str]:
    """The command line that runs a module in a process of its own, with the environment of `child_environment`."""
    return [sys.executable, "-P", "-m", module, *words]


def is_fault(status: int) -> bool:
    """Whether an exit status, negative for a signal, tells of a fault that a damaged page of LMDB causes.

    Any other end, as SIGKILL for want of memory, says nothing of a store.
    """
    import signal

    return -status in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)


def child_environment() -> dict[str, str]:
    """The variables of this process, with PYTHONPATH and PYTHONSAFEPATH for Python processes below.

    The children find the packages of this process, also where a PYTHONPATH or an editable installation has them. The
    children and all their descendants leave out the current directory.
    """
    import txnctl

    root = os.path.dirname(os.path.dirname(os.path.abspath(txnctl.__file__)))
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}

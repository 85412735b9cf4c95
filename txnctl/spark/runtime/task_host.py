"""The host of a task: errors about a missing package or store, with host, path and the options that help.

A task runs in a Python process of an executor, maybe on a different machine, with an installation of its own.
"""

from __future__ import annotations

import sys
from socket import gethostname
from typing import Final

from storage.errors import ProgramMissing, StoreInvalid, StoreNotFound

ON_OTHER_HOSTS: Final = (
    "Hosts without the store need --offload-path to read and --staging-path to write (offloadPath, stagingPath), on "
    "storage that all reach, and txnctl with msgpack and PyArrow: installed, or --conf spark.submit.pyFiles=..."
)
"""The hint about a task that lacks a package or the store."""


def lacks_package(error: ImportError, store: str) -> ProgramMissing:
    """The error of a process that cannot import a package.

    Args:
        store: path of the store of the job, or of its files.
    """
    module = error.name.split(".")[0] if error.name else str(error)
    missing = ProgramMissing(
        f"on host {gethostname()} the Python of Spark ({sys.executable}) has no {module}: it cannot work on {store}",
        hint=ON_OTHER_HOSTS,
        program=module,
        host=gethostname(),
        path=store,
    )
    missing.add_note(ON_OTHER_HOSTS)
    return missing


def lacks_store(error: StoreInvalid, store: str) -> StoreInvalid:
    """The error of a task that cannot open the store: the reason, with the host."""
    host = gethostname()
    message = (
        f"there is no store at {store} on host {host}"
        if isinstance(error, StoreNotFound)
        else f"{error.message} (in a task on host {host})"
    )
    return type(error)(message, hint=ON_OTHER_HOSTS, path=store, host=host)

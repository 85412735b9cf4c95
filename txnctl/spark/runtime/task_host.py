"""The host of a task: errors about a missing package or store, with host, path and the options that help.

A task runs in a Python process of an executor, maybe on a different machine, with an installation of its own.
"""

from __future__ import annotations

import sys
from socket import gethostname
from typing import Final

from storage.errors import ProgramMissing, StoreInvalid, StoreNotFound
from storage.values.store_name import has_scheme

ON_OTHER_HOSTS: Final = (
    "Hosts without the store need --offload-path to read and --staging-path to write (offloadPath, stagingPath), on "
    "storage that all reach, and txnctl with msgpack and PyArrow: installed, or --conf spark.submit.pyFiles=..."
)
"""The hint about a task that lacks a package or the store."""

ON_SERVERS: Final = (
    "Each task connects to the server by itself: its host needs a route to the server, a role by its own PGPASSFILE, "
    "pg_service.conf or PGPASSWORD (spark.executorEnv.PGPASSFILE), and two connections of max_connections a task."
)
"""The hint about a task that cannot reach a store on a server."""

PACKAGES_ON_SERVERS: Final = (
    "Every host that runs tasks on a store on a server needs txnctl with psycopg and PyArrow: "
    "pip install 'txnctl[spark,postgres]'."
)
"""The hint about a task that lacks a package for a store on a server."""


def lacks_package(error: ImportError, store: str) -> ProgramMissing:
    """The error of a process that cannot import a package.

    Args:
        store: path of the store of the job, or of its files.
    """
    module = error.name.split(".")[0] if error.name else str(error)
    hint = PACKAGES_ON_SERVERS if has_scheme(store) else ON_OTHER_HOSTS
    missing = ProgramMissing(
        f"on host {gethostname()} the Python of Spark ({sys.executable}) has no {module}: it cannot work on {store}",
        hint=hint,
        program=module,
        host=gethostname(),
        path=store,
    )
    missing.add_note(hint)
    return missing


def lacks_store(error: StoreInvalid, store: str) -> StoreInvalid:
    """The error of a task that cannot open the store: the reason, with the host."""
    host = gethostname()
    if has_scheme(store):
        error.hint = ON_SERVERS
        error.message = f"{error.message} (in a task on host {host})"
        error.args = (error.message,)
        return error
    message = (
        f"there is no store at {store} on host {host}"
        if isinstance(error, StoreNotFound)
        else f"{error.message} (in a task on host {host})"
    )
    return type(error)(message, hint=ON_OTHER_HOSTS, path=store, host=host)

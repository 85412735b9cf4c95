"""Run tests on a throw-away server: `python -m tests.server_run [--part] [ARGUMENTS OF PYTEST]`.

Without names of tests all of `tests/storage` and `tests/processes` run; with --part a choice of two to three minutes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests import hostile_role, server_stores
from tests.not_run import STRICT, find_program
from tests.postgres_cluster import Cluster, new_directory
from tests.processes.memory import memory

ROOT = Path(__file__).parents[1]
WHOLE = ("tests/storage", "tests/processes")
PART = (
    "tests/storage/disk",
    "tests/storage/client/test_group.py",
    "tests/storage/client/test_producer.py",
    "tests/storage/client/test_transaction.py",
    "tests/storage/client/work/test_serializable.py",
    "tests/storage/subscription/test_acknowledge.py",
    "tests/storage/table/test_history.py",
    "tests/storage/table/test_write.py",
    "tests/storage/topic/producers/test_session_resume.py",
    "tests/storage/txn/test_coordinator.py",
    "tests/storage/verify",
    "tests/processes/test_consumers.py",
    "tests/processes/test_table_anomalies.py",
)

_MODEL_DIVISOR = "8"
"""Of the usual number of examples, unless the environment says otherwise: an example of a model is two seconds of views."""


def run(arguments: Sequence[str]) -> int:
    """Start a server, run pytest with its stores there, and remove the server; return pytest's exit code.

    The server's files are in memory if there is room: no test of this run cuts the power.
    """
    # As after Ctrl-C, SIGTERM (of `timeout`) leaves neither the server nor pytest.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cluster = Cluster(new_directory(memory()))
    try:
        cluster.initdb().start()
        # Every test of this run shows as well that a session depends on no default of its role.
        for name, value in hostile_role.SETTINGS.items():
            cluster.psql(f"ALTER ROLE postgres SET {name} = {value}")
        server = f"postgresql://postgres@/postgres?host={cluster.directory}"
        return subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=ROOT, env={"MODEL_DIVISOR": _MODEL_DIVISOR, **os.environ, server_stores.SERVER: server}, check=False,
        ).returncode  # fmt: skip
    finally:
        cluster.remove()


def main(arguments: Sequence[str]) -> int:
    """The exit code of the command."""
    if find_program("initdb") is None:
        print(
            "Tests on a server did not run: initdb is missing (apt-get install postgresql)", file=sys.stderr
        )
        return int(STRICT)
    rest = [argument for argument in arguments if argument != "--part"]
    names = PART if "--part" in arguments else WHOLE
    has_names = any(argument.partition("::")[0].startswith("tests") for argument in rest)
    return run([*rest, *(() if has_names else names)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

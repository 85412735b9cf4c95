"""A PostgreSQL server of the tests' own, on a UNIX socket in a directory that is removed at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

_SETTINGS = "listen_addresses = ''\nunix_socket_directories = '{}'\nautovacuum = off\nmax_connections = 40\n"
_ROLE = "postgres"


class Server:
    """A running server. Each store on it has a name of its own."""

    def __init__(self, directory: Path, programs: Path) -> None:
        self._directory = directory
        self._programs = programs
        self._stores = 0

    def url(self, name: str | None = None) -> str:
        """The URL of a store; of a new name if none is given."""
        self._stores += 1
        store = name or f"s{self._stores}"
        return f"postgresql://{_ROLE}@/postgres?host={self._directory}&store={store}"

    def run(self, text: LiteralString) -> None:
        """Run SQL as the owner of all stores."""
        self.sql(text)

    def sql(self, text: LiteralString) -> list[tuple[Any, ...]]:
        """Run SQL as the owner of all stores, and return the rows."""
        with psycopg.connect(
            f"host={self._directory} user={_ROLE} dbname=postgres", autocommit=True
        ) as connection:
            cursor = connection.execute(text)
            return [] if cursor.description is None else cursor.fetchall()


@contextmanager
def running() -> Iterator[Server]:
    """Start a server, which ends with the block."""
    found = sorted(glob("/usr/lib/postgresql/*/bin/initdb"))
    program = shutil.which("initdb") or (found[-1] if found else None)
    if program is None:
        pytest.skip("initdb is missing (apt-get install postgresql)")
    programs = Path(program).parent
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        directory = Path(name)
        is_root = os.geteuid() == 0
        if is_root:
            shutil.chown(directory, _ROLE, _ROLE)
        # The server refuses to run as root.
        drop = ["setpriv", f"--reuid={_ROLE}", f"--regid={_ROLE}", "--init-groups"] if is_root else []
        data = directory / "data"
        _run([*drop, program, "-D", data, "-U", _ROLE, "-A", "trust", "-N", "-E", "UTF8", "--locale=C"])
        with open(data / "postgresql.conf", "a") as settings:
            settings.write(_SETTINGS.format(directory))
        control = [*drop, programs / "pg_ctl", "-D", data, "-w"]
        _run([*control, "-l", directory / "log", "start"])
        try:
            yield Server(directory, programs)
        finally:
            _run([*control, "-m", "immediate", "stop"])


def _run(words: list[object]) -> None:
    subprocess.run(
        [str(word) for word in words],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=120,
    )


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server for all tests of a worker."""
    with running() as started:
        yield started

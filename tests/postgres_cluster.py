"""PostgreSQL servers of tests: each in a short directory of its own, on a UNIX socket, with fsync and autovacuum on.

A server refuses to run as root; then the user `postgres` of the system runs the programs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest

from tests.not_run import program
from tests.waiting import let_pass

PATIENCE_S = 30.0
"""How long a server may take to start, to stop or to follow, on a busy machine."""
_SOCKET_BYTES = 107
_SOCKET_NAME = "/.s.PGSQL.5432.lock"
_LOG_CHARACTERS = 3000
_SETTINGS = {
    "listen_addresses": "''",
    "unix_socket_permissions": "0777",
    "shared_buffers": "'32MB'",
    "max_connections": "100",
    "max_locks_per_transaction": "256",
    "dynamic_shared_memory_type": "mmap",
    "wal_level": "replica",
    "max_wal_senders": "8",
    "wal_keep_size": "'256MB'",
    "fsync": "on",
    "autovacuum": "on",
    "logging_collector": "off",
    "log_checkpoints": "off",
}


def new_directory(parent: str | None = None) -> str:
    """A short directory, owned by the user that runs servers: the path of a socket has at most 107 bytes.

    Args:
        parent: where to make it; None for the usual place of temporary files.
    """
    directory = tempfile.mkdtemp(prefix="pg", dir=parent)
    if len(os.fsencode(directory + _SOCKET_NAME)) > _SOCKET_BYTES:
        os.rmdir(directory)
        directory = tempfile.mkdtemp(prefix="pg", dir="/tmp")
    if os.geteuid() == 0:
        shutil.chown(directory, "postgres", "postgres")
    return directory


def _as_user(command: Sequence[str]) -> list[str]:
    """The command, as user `postgres` where this process is root."""
    if os.geteuid() != 0:
        return list(command)
    if shutil.which("setpriv") is not None:
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command]
    return ["runuser", "-u", "postgres", "--", *command]


def _run(name: str, *arguments: str) -> str:
    """Run a program of PostgreSQL to its end; return its output."""
    done = subprocess.run(
        _as_user([program(name), *arguments]),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


class Cluster:
    """One server: a primary, or a standby of one.

    Attributes:
        directory: of the socket, the log and, below, the data.
        name: the server's name as a standby, for `synchronous_standby_names`.
    """

    def __init__(
        self,
        directory: str | None = None,
        name: str = "primary",
        variables: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        """Args:
        variables: further variables in the environment of the server's processes.
        prefix: a command that runs another one, which runs the server.
        """
        self._prefix = prefix
        self._variables = [f"{variable}={value}" for variable, value in (variables or {}).items()]
        self.directory = directory or new_directory()
        self.name = name
        self.data = os.path.join(self.directory, "data")
        self._process: subprocess.Popen[bytes] | None = None

    def initdb(self, **settings: str) -> Cluster:
        """Make the files of an empty server; return the server."""
        _run(
            "initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "--no-locale", "-E", "UTF8", "--no-sync",
            "--data-checksums", "--wal-segsize=4",
        )  # fmt: skip
        self.configure({**_SETTINGS, **settings})
        return self

    def configure(self, settings: dict[str, str]) -> None:
        """Append settings, for the next start or reload; the last one of a name counts."""
        with open(os.path.join(self.data, "postgresql.conf"), "a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def reload(self, settings: dict[str, str]) -> None:
        """Change settings of the running server, and wait until its new sessions have them."""
        self.configure(settings)
        self.psql("SELECT pg_reload_conf()")
        for name, value in settings.items():
            self.wait_until(f"SHOW {name}", value.strip("'"))

    # Running

    @property
    def pid(self) -> int:
        """The main process."""
        assert self._process is not None, "the server does not run"
        return self._process.pid

    @property
    def log(self) -> str:
        """The end of the server's log."""
        return Path(self.directory, "log").read_text(errors="replace")[-_LOG_CHARACTERS:]

    def start(self, *, until_ready: bool = True) -> Self:
        """Start the server, and wait until queries are answered; return the server."""
        command = ["env", *self._variables, program("postgres"), "-D", self.data, "-k", self.directory]
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self._process = subprocess.Popen(
                [*self._prefix, *_as_user(command)],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if until_ready:
            self.wait_until("SELECT true", "t")
        return self

    def stop(self) -> None:
        """Shut down in order, ending the sessions of clients; nothing if the server does not run."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(PATIENCE_S)
            self._process = None

    def kill(self) -> None:
        """End every process by -9, as the end of the machine would; nothing if the server does not run."""
        if self._process is None:
            return
        # A stopped main process starts no more children, and says no farewell to clients; one that has ended has none.
        with suppress(ChildProcessError, FileNotFoundError):
            self._process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            for pid in reversed(self.processes()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait(PATIENCE_S)
        self._process = None

    def restart(self) -> None:
        """Shut down in order, and start."""
        self.stop()
        self.start()

    def processes(self) -> list[int]:
        """The main process and its children."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [self.pid, *map(int, children.read_text().split())]

    def remove(self) -> None:
        """Kill the server and remove its files."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    # Standbys

    def standby(self, name: str) -> Cluster:
        """A running standby, under a name for `synchronous_standby_names`, which stays as it is."""
        standby = Cluster(name=name)
        _run(
            "pg_basebackup", "-D", standby.data, "-R", "-X", "stream", "-c", "fast", "--no-sync",
            "-d", f"host={self.directory} user=postgres application_name={name}",
        )  # fmt: skip
        standby.start()
        self.wait_until(
            f"SELECT count(*) FROM pg_stat_replication WHERE application_name = '{name}' AND state = 'streaming'",
            "1",
        )
        return standby

    def wait_for(self, *names: str) -> None:
        """Let commits wait for the standbys of these names, from now on."""
        self.reload({"synchronous_standby_names": f"'{', '.join(names)}'"})
        sync = "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
        self.wait_until(sync, "t" if names else "f")

    def promote(self) -> None:
        """Make the standby a primary, and wait until it is one."""
        self.psql("SELECT pg_promote()")
        self.wait_until("SELECT pg_is_in_recovery()", "f")

    # Using

    def url(self, store: str = "txnctl", *others: Cluster) -> str:
        """The URL of a store on this server, or on the primary of several."""
        hosts = ",".join([self.directory, *(other.directory for other in others)])
        return f"postgresql://postgres@/postgres?host={hosts}&store={store}"

    def psql(self, sql: str, database: str = "postgres") -> str:
        """The answer of the server to statements, as text: a line a row, columns parted by `|`."""
        done = self._psql(sql, database)
        assert done.returncode == 0, f"{sql}: {done.stderr}\n{self.log}"
        return done.stdout.strip()

    def wait_until(self, sql: str, answer: str, timeout_s: float = PATIENCE_S) -> None:
        """Wait until a query has an answer."""
        until = time.monotonic() + timeout_s
        while (done := self._psql(sql)).returncode != 0 or done.stdout.strip() != answer:
            assert time.monotonic() < until, f"{sql}: {done.stdout}{done.stderr}, not {answer}\n{self.log}"
            assert self._process is None or self._process.poll() is None, f"the server has ended\n{self.log}"
            let_pass(0.05, "between two queries")

    def _psql(self, sql: str, database: str = "postgres") -> subprocess.CompletedProcess[str]:
        command = [
            program("psql"),
            "-X",
            "-h",
            self.directory,
            "-U",
            "postgres",
            "-Atq",
            "-v",
            "ON_ERROR_STOP=1",
        ]
        return subprocess.run(
            [*command, "-c", sql, database], capture_output=True, text=True, timeout=120, check=False
        )


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """One running server for all tests of a worker, which leave it running; tests carry `needs_program("initdb")`."""
    cluster = Cluster()
    try:
        yield cluster.initdb().start()
    finally:
        cluster.remove()

"""PostgreSQL servers of a test: each in a short directory of its own, on a UNIX socket, killed at the latest at the end.

The server refuses to run as root; then the user `postgres` of the system runs it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

PATIENCE_S = 30.0
_SETTINGS = {
    "listen_addresses": "''", "shared_buffers": "16MB", "max_connections": "40", "wal_level": "replica",
    "max_wal_senders": "4", "min_wal_size": "32MB", "max_wal_size": "128MB", "wal_keep_size": "64MB",
    "hot_standby": "on", "logging_collector": "off", "dynamic_shared_memory_type": "mmap",
}  # fmt: skip


def program(name: str) -> str:
    """The path of a program of PostgreSQL, which Debian keeps apart from the others."""
    apart = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = str(apart[-1]) if apart else shutil.which(name)
    assert found is not None, f"{name} is missing (apt-get install postgresql)"
    return found


def is_installed() -> bool:
    """Whether this machine has the programs of a server."""
    return (
        bool(sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))) or shutil.which("initdb") is not None
    )


def _as_user(command: Sequence[str]) -> list[str]:
    if os.geteuid() != 0:
        return list(command)
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command]


def run(*command: str) -> str:
    """Run a program of PostgreSQL to its end; return its output."""
    done = subprocess.run(
        _as_user(command), cwd="/", capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    return done.stdout


@cache
def _template() -> str:
    """An empty cluster of this test run, which each server copies."""
    directory = new_directory()
    run(
        program("initdb"), "-D", directory, "-U", "postgres", "--no-sync", "--no-locale", "-E", "UTF8",
        "--wal-segsize=1", "--auth=trust",
    )  # fmt: skip
    return directory


def new_directory() -> str:
    """A short directory, for the user that runs servers: the path of a socket has at most 107 bytes."""
    directory = tempfile.mkdtemp(prefix="pg", dir="/tmp")
    if os.geteuid() == 0:
        shutil.chown(directory, "postgres", "postgres")
    return directory


class Server:
    """A server.

    Attributes:
        directory: of the socket; the data lies below.
    """

    def __init__(
        self,
        *,
        standby_of: Server | None = None,
        settings: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
        directory: str | None = None,
    ) -> None:
        """Args:
        environment: further variables of the server's processes.
        """
        self.directory = directory or new_directory()
        self.data = os.path.join(self.directory, "data")
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        if standby_of is None:
            run("cp", "-r", _template(), self.data)
            self.configure({**_SETTINGS, **(settings or {})})
        else:
            self._copy(standby_of)
        try:
            self.start()
        except BaseException:
            self.remove()
            raise

    def configure(self, settings: dict[str, str]) -> None:
        """Append settings to the configuration; the last one of a name counts."""
        with open(os.path.join(self.data, "postgresql.conf"), "a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def reload(self, settings: dict[str, str]) -> None:
        """Change settings of a running server, and wait until its sessions have them."""
        self.configure(settings)
        self.sql("SELECT pg_reload_conf()")
        for name, value in settings.items():
            until = time.monotonic() + PATIENCE_S
            while self.sql(f"SHOW {name}") != value.strip("'") and time.monotonic() < until:
                time.sleep(0.02)

    def _copy(self, primary: Server) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        run(
            program("pg_basebackup"), "-h", primary.directory, "-U", "postgres", "-D", self.data, "-R", "-X", "stream",
            "-c", "fast", "--no-sync",
        )  # fmt: skip

    def start(self, *, is_ready: bool = True) -> None:
        """Start the server, and wait until it answers."""
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self._process = subprocess.Popen(
                _as_user([
                    "env", *[f"{name}={value}" for name, value in self._environment.items()],
                    program("postgres"), "-D", self.data, "-k", self.directory,
                ]),
                cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        if is_ready:
            self.wait_until("SELECT true", "t")

    def wait_until(self, text: str, value: str, timeout: float = PATIENCE_S) -> None:
        """Wait until a query answers with a value."""
        until = time.monotonic() + timeout
        while True:
            answer = self.try_sql(text)
            if answer == value:
                return
            assert time.monotonic() < until, f"{text}: {answer}, not {value}\n{self.log()}"
            time.sleep(0.02)

    def try_sql(self, text: str) -> str | None:
        """The answer to a query; None where the server does not answer."""
        done = subprocess.run(
            [program("psql"), "-h", self.directory, "-U", "postgres", "-Atqc", text],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return done.stdout.strip() if done.returncode == 0 else None

    def sql(self, text: str) -> str:
        """The answer to a query, as text."""
        answer = self.try_sql(text)
        assert answer is not None, f"{text} failed\n{self.log()}"
        return answer

    def log(self) -> str:
        """The end of the server's log."""
        return Path(self.directory, "log").read_text(errors="replace")[-2000:]

    def url(self, store: str = "s", user: str = "postgres", *others: Server) -> str:
        """The URL of a store on this server, or on any of several."""
        hosts = ",".join([self.directory, *(server.directory for server in others)])
        return f"postgresql://{user}@/postgres?host={hosts}&store={store}"

    def add_standby(self) -> Server:
        """A synchronous standby of this server, which commits wait for from now on."""
        standby = Server(standby_of=self)
        self.reload({"synchronous_standby_names": "'*'"})
        self.wait_until("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")
        standby.configure({"synchronous_standby_names": "'*'"})
        standby.sql("SELECT pg_reload_conf()")
        return standby

    def copy_data(self) -> str:
        """Copy the files of the stopped server; return the copy."""
        copy = os.path.join(self.directory, "copy")
        run("cp", "-r", self.data, copy)
        return copy

    def put_back(self, copy: str) -> None:
        """Put a copy in the place of the files of the stopped server."""
        shutil.rmtree(self.data)
        os.rename(copy, self.data)

    def follow(self, primary: Server) -> None:
        """Be made anew, as the standby of another server."""
        self.kill()
        self._copy(primary)
        self.start()
        primary.wait_until("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")

    def promote(self) -> None:
        """Make the standby a primary, and wait until it is one."""
        self.sql("SELECT pg_promote()")
        self.wait_until("SELECT pg_is_in_recovery()", "f")

    def processes(self) -> list[int]:
        """The main process, and its children."""
        assert self._process is not None
        try:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:
            children = []
        return [self.pid, *map(int, children)]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill every process of the server by -9, as the end of its machine would; nothing if it does not run."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGSTOP)  # or its children would say farewell to their clients
        for pid in reversed(self.processes()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        """Stop every process of the server by SIGSTOP."""
        for pid in self.processes():
            os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server go on."""
        for pid in self.processes():
            os.kill(pid, signal.SIGCONT)

    def wait_for_standby_wait(self) -> None:
        """Wait until a commit waits for the standby."""
        self.wait_until("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", "1")

    def stop(self) -> None:
        """Shut the server down in order."""
        if self._process is not None:
            os.kill(self.pid, signal.SIGINT)
            self._process.wait(PATIENCE_S)
            self._process = None

    def remove(self) -> None:
        """Kill the server, and remove its files."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

"""A cluster of two PostgreSQL servers of the demo's own: a primary, and a standby for which every commit waits.

Servers listen on UNIX sockets below one temporary directory, on no network. Every server ends with the process that
started it, however that process ends.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import glob
from time import monotonic, sleep
from typing import Final

from storage.errors import ProgramMissing, TxnctlError
from storage.process.machine import proc_file, temporary_directory
from storage.values.named_tuple import NamedTuple

PORT: Final = 5432
"""Of the socket's name alone."""

STANDBY: Final = "standby"
USER: Final = "postgres"
_PATIENCE_S: Final = 30.0
_LOOK_S: Final = 0.05
_SOCKET_CHARACTERS: Final = 70
"""Bytes of a directory in which a socket's path still fits the 107 that Linux takes."""

_SETTINGS: Final = {
    "listen_addresses": "",
    "port": str(PORT),
    "max_connections": "40",
    "shared_buffers": "32MB",
    "synchronous_standby_names": STANDBY,
    "synchronous_commit": "on",
    "fsync": "on",
    "wal_level": "replica",
    "log_min_messages": "warning",
}


class Programs(NamedTuple):
    """The programs of PostgreSQL.

    Attributes:
        directory: of the programs.
        prefix: words before each command, which run the program as a user other than root and end the program with
            its parent.
        user: id of the user that owns the data; None for the user of this process.
    """

    directory: str
    prefix: tuple[str, ...]
    user: int | None

    @classmethod
    def found(cls) -> Programs:
        """Find the programs of this machine.

        Raises:
            ProgramMissing: PostgreSQL, or for root the user postgres, is missing.
        """
        directory = _directory()
        if directory is None:
            raise ProgramMissing(
                "PostgreSQL's server is not installed here (initdb, pg_basebackup, postgres)",
                hint="On Debian and Ubuntu: apt-get install postgresql. Elsewhere put its bin directory on PATH.",
                program="postgres",
            )
        setpriv = shutil.which("setpriv")
        ends = (setpriv, "--pdeathsig", "QUIT") if setpriv else ()
        if os.geteuid() != 0:
            return cls(directory, ends, None)
        try:
            user = pwd.getpwnam(USER).pw_uid
        except KeyError:
            user = None
        if setpriv is None or user is None:
            raise ProgramMissing(
                "PostgreSQL refuses to run as root, and here is no user postgres to run it as (with setpriv)",
                hint="Run the demo as another user, or install the package of PostgreSQL, which makes that user.",
                program="setpriv",
            )
        return cls(directory, (*ends, f"--reuid={USER}", f"--regid={USER}", "--init-groups"), user)

    def command(self, program: str, *words: str) -> list[str]:
        return [*self.prefix, os.path.join(self.directory, program), *words]

    def output_of(self, program: str, *words: str) -> str:
        """Run a program to its end, and return its output.

        Raises:
            TxnctlError: the program failed.
        """
        # A directory that the user of the programs may enter.
        done = subprocess.run(
            self.command(program, *words), cwd="/", capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise TxnctlError(f"{program} failed: {(done.stderr or done.stdout).strip()}")
        return done.stdout


def _directory() -> str | None:
    """The directory of the programs: on PATH, or the newest of Debian's."""
    debian = sorted(glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4].split(".")[0]))
    on_path = shutil.which("initdb")
    candidates = ([os.path.dirname(os.path.realpath(on_path))] if on_path else []) + debian[::-1]
    programs = ("initdb", "pg_basebackup", "postgres", "psql")
    return next(
        (path for path in candidates if all(os.path.exists(os.path.join(path, name)) for name in programs)),
        None,
    )


class Server:
    """One server: its data and its socket lie in a directory of the server's own.

    Attributes:
        name: of the server.
        directory: of the socket.
    """

    def __init__(self, programs: Programs, name: str, directory: str) -> None:
        self.name = name
        self.directory = directory
        self._programs = programs
        self._data = os.path.join(directory, "data")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Of the server's first process; None while it does not run."""
        return None if self._process is None else self._process.pid

    def make(self) -> None:
        """Make an empty database cluster, and start the server as a primary."""
        self._programs.output_of(
            "initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
        )
        self._start()

    def make_standby_of(self, primary: Server) -> None:
        """Copy the primary anew, start the server as its standby, and wait until commits wait for the standby."""
        shutil.rmtree(self._data, ignore_errors=True)
        self._programs.output_of(
            "pg_basebackup", "-h", primary.directory, "-p", str(PORT), "-U", USER, "-D", self._data,
            "--checkpoint=fast", "--no-sync",
        )  # fmt: skip
        signal_file = os.path.join(self._data, "standby.signal")
        with open(signal_file, "wb"):
            pass
        if self._programs.user is not None:
            os.chown(signal_file, self._programs.user, -1)
        self._start(
            primary_conninfo=f"host={primary.directory} port={PORT} user={USER} application_name={STANDBY}"
        )
        primary.wait_for("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")

    def promote(self) -> None:
        """Make the primary of a standby."""
        self.ask("SELECT pg_promote()")
        self.wait_for("SELECT pg_is_in_recovery()", "f")

    def kill(self) -> int:
        """Kill all processes of the server by SIGKILL, as a machine that is gone would; return their number."""
        assert self._process is not None, "the server was started"
        pid = self._process.pid
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        pids = [pid, *map(int, (proc_file(f"{pid}/task/{pid}/children") or b"").split())]
        for each_pid in pids:
            with suppress(ProcessLookupError):
                os.kill(each_pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.directory, f".s.PGSQL.{PORT}"))
        return len(pids)

    def stop(self) -> None:
        """End the server, if it runs."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def ask(self, sql: str) -> str:
        """Run one statement, and return the value of its only row.

        Raises:
            TxnctlError: the server refused, or does not answer.
        """
        words = ("-h", self.directory, "-p", str(PORT), "-U", USER, "-d", USER, "-qAtX", "-c", sql)
        return self._programs.output_of("psql", *words).strip()

    def wait_for(self, sql: str, answer: str) -> None:
        """Wait until a statement has an answer.

        Raises:
            TxnctlError: the server has ended, or the answer did not come.
        """
        until, last = monotonic() + _PATIENCE_S, ""
        while monotonic() < until:
            try:
                last = self.ask(sql)
            except TxnctlError as error:
                last = error.message
            if last == answer:
                return
            if self._process is None or self._process.poll() is not None:
                break
            sleep(_LOOK_S)
        raise TxnctlError(
            f"server {self.name} did not come to {answer} of {sql}: {last}; its last words: {self._last_words()}"
        )

    def _start(self, **settings: str) -> None:
        """Start the server, and wait until it answers."""
        words = ["-D", self._data, "-k", self.directory]
        for name, value in {**_SETTINGS, **settings}.items():
            words += "-c", f"{name}={value}"
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self._process = subprocess.Popen(
                self._programs.command("postgres", *words), cwd="/", stdin=subprocess.DEVNULL, stdout=log,
                stderr=log,
            )  # fmt: skip
        self.wait_for("SELECT 1", "1")

    def _last_words(self) -> str:
        with open(os.path.join(self.directory, "log"), errors="replace") as log:
            return " ".join(log.read()[-500:].split())


class Cluster:
    """Two servers, the first of which is the primary.

    Attributes:
        primary, standby: the servers by their present part.
    """

    def __init__(self, primary: Server, standby: Server) -> None:
        self.primary = primary
        self.standby = standby
        self._directories = f"{primary.directory},{standby.directory}"

    def url(self, store: str) -> str:
        """The URL of a store: both servers by name, of which clients take the one that is the primary."""
        return f"postgresql://{USER}@/{USER}?host={self._directories}&port={PORT}&store={store}"

    def promote(self) -> None:
        """Let the standby take over."""
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Run a cluster within the block, in a temporary directory; nothing of the cluster is left behind.

    Raises:
        ProgramMissing: PostgreSQL is not installed.
        TxnctlError: a server does not start.
    """
    programs = Programs.found()
    parent = temporary_directory()
    directory = tempfile.mkdtemp(prefix="txnctl-", dir=parent if len(parent) < _SOCKET_CHARACTERS else "/tmp")
    servers: list[Server] = []
    try:
        os.chmod(directory, 0o711)
        for name in ("north", "south"):
            place = os.path.join(directory, name)
            os.mkdir(place, 0o700)
            if programs.user is not None:
                os.chown(place, programs.user, -1)
            servers.append(Server(programs, name, place))
        north, south = servers
        north.make()
        south.make_standby_of(north)
        yield Cluster(north, south)
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)

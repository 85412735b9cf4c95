"""Servers that tests of failures kill, stop, promote and put back."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from tests.postgres_cluster import Cluster, _run, new_directory

_SMALL = {
    "shared_buffers": "'16MB'",
    "max_connections": "40",
    "min_wal_size": "'32MB'",
    "max_wal_size": "'128MB'",
}


def run(*command: str) -> str:
    """Run a program as the user of servers; return its output."""
    return _run(*command)


@cache
def _template() -> str:
    """The files of an empty server of this test run, which each server copies."""
    directory = new_directory()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    template = Cluster(os.path.join(directory, "t"))
    run("mkdir", template.directory)
    template.initdb(**_SMALL)
    return template.data


class Server(Cluster):
    """A running server."""

    def __init__(
        self,
        *,
        standby_of: Server | None = None,
        settings: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
        directory: str | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        """Args:
        environment: further variables of the server's processes.
        prefix: a command that runs another one, which runs the server.
        """
        super().__init__(directory, variables=environment, prefix=prefix)
        try:
            if standby_of is None:
                run("cp", "-r", _template(), self.data)
                self.configure(settings or {})
            else:
                self._copy(standby_of)
            self.start()
        except BaseException:
            self.remove()
            raise

    def _copy(self, primary: Server) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        run(
            "pg_basebackup", "-h", primary.directory, "-U", "postgres", "-D", self.data, "-R", "-X", "stream",
            "-c", "fast", "--no-sync",
        )  # fmt: skip

    def copy_data(self) -> str:
        """Copy the files of the stopped server; return the copy."""
        copy = os.path.join(self.directory, "copy")
        run("cp", "-r", self.data, copy)
        return copy

    def put_back(self, copy: str) -> None:
        """Put a copy in the place of the files of the stopped server."""
        shutil.rmtree(self.data)
        os.rename(copy, self.data)

    def add_standby(self) -> Server:
        """A synchronous standby of this server, which commits wait for from now on."""
        standby = Server(standby_of=self)
        self.reload({"synchronous_standby_names": "'*'"})
        self.wait_for_standby()
        standby.configure({"synchronous_standby_names": "'*'"})
        standby.psql("SELECT pg_reload_conf()")
        return standby

    def wait_for_standby(self) -> None:
        """Wait until a synchronous standby is connected."""
        self.wait_until("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")

    def wait_for_standby_wait(self) -> None:
        """Wait until a commit waits for the standby."""
        self.wait_until("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", "1")

    def follow(self, primary: Server) -> None:
        """Be made anew, as the standby of another server."""
        self.kill()
        self._copy(primary)
        self.start()
        primary.wait_for_standby()

    def pause(self) -> None:
        """Stop every process of the server by SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        """Signal the main process first, which starts no more children then, and every child that has not ended."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def url(self, store: str = "s", *others: Cluster, user: str = "postgres") -> str:
        """The URL of a store on this server, or on any of several."""
        return super().url(store, *others).replace("postgres@", f"{user}@", 1)

"""Random transactions of eight processes on two hosts, which are killed, and whose server crashes: serializable.

The hosts share nothing but the server: see `hosts.py`. `TRANSACTIONS=100000` makes the run longer, and `SEED` another one.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from storage import Store
from tests.processes.child import Child, Children
from tests.processes.postgres.hosts import Host, server_with_hosts
from tests.processes.postgres.servers import Server
from tests.processes.test_table_serializability import Run, check

TRANSACTIONS = int(os.environ.get("TRANSACTIONS", "600"))
SEED = int(os.environ.get("SEED", "1"))


class RunOnHosts(Run):
    """The workers on two hosts, in turns; a reboot is a crash of the server."""

    workers = 8

    def __init__(
        self, directory: Path, children: Children, chance: random.Random, server: Server, hosts: list[Host]
    ) -> None:
        super().__init__(directory, children, chance)
        self.path = server.url()
        self._server = server
        self._hosts = hosts

    def _begin(self, number: int, seed: int) -> Child:
        host = self._hosts[number % len(self._hosts)]
        arguments = (host.url("s"), self.logs, f"w{number}", seed, self.life)
        return self._children.module("table_workload", *arguments, prefix=host.prefix)

    def _reboot(self) -> None:
        self._server.kill()
        self._server.start()


@pytest.mark.slow
@pytest.mark.needs_program("ip")
def test_what_processes_of_two_hosts_did_is_serializable(tmp_path: Path) -> None:
    """However they are killed: no cycle, no lost commit, no half of one, no stale or dirty read."""
    with server_with_hosts(2) as (server, hosts):
        children = Children("")
        try:
            run = RunOnHosts(tmp_path, children, random.Random(SEED), server, hosts)
            Store.create(run.path, durability="local")
            check(run, TRANSACTIONS)
        finally:
            children.close()

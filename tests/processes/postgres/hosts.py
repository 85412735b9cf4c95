"""Hosts of tests: network namespaces, joined by cables to that of a server.

Processes of two hosts share nothing but the server: no network with each other, no file system in memory, no name.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.not_run import forbidden
from tests.processes.postgres.servers import Server

_PRIVATE = (
    'hostname "$0" && mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /run'
    ' && exec "$@"'
)
_numbers = itertools.count()


class Host:
    """A host with a name and a cable to the server's. `prefix` before a command runs the command there."""

    def __init__(self, space: str, server_space: str, number: int) -> None:
        self._space = self.name = space
        self._server_address = f"10.0.{number}.1"
        self.prefix = ("ip", "netns", "exec", space, "unshare", "-m", "-u", "sh", "-c", _PRIVATE, space)
        cable = f"eth{number}"
        _ip(f"-n {server_space} link add {cable} type veth peer name eth0 netns {space}")
        _ip(f"-n {server_space} addr add {self._server_address}/30 dev {cable}")
        _ip(f"-n {server_space} link set {cable} up")
        _ip(f"-n {space} addr add 10.0.{number}.2/30 dev eth0")
        self.plug()

    def cut(self) -> None:
        """Pull the cable: no packet passes, and no side is told."""
        _ip(f"-n {self._space} link set eth0 down")

    def plug(self) -> None:
        """Plug the cable in."""
        _ip(f"-n {self._space} link set eth0 up")

    def url(self, store: str) -> str:
        """The URL of a store on the server, for processes of the host."""
        return f"postgresql://postgres@{self._server_address}/postgres?store={store}"


@contextmanager
def server_with_hosts(count: int) -> Iterator[tuple[Server, list[Host]]]:
    """A server in a network of its own, and hosts; the test is skipped where the system forbids namespaces."""
    if os.geteuid() != 0:
        forbidden("making network namespaces")
    prefix = f"txnctl{os.getpid()}n{next(_numbers)}"
    spaces = [f"{prefix}h{number}" for number in range(count + 1)]
    try:
        for space in spaces:
            _ip(f"netns add {space}")
            _ip(f"-n {space} link set lo up")
        server = Server(settings={"listen_addresses": "'*'"}, prefix=("ip", "netns", "exec", spaces[0]))
        try:
            with open(f"{server.data}/pg_hba.conf", "a") as file:
                file.write("host all all 10.0.0.0/8 trust\n")
            server.psql("SELECT pg_reload_conf()")
            yield server, [Host(space, spaces[0], number) for number, space in enumerate(spaces[1:], 1)]
        finally:
            server.remove()
    finally:
        for space in spaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)


def _ip(words: str) -> None:
    done = subprocess.run(["ip", *words.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {words}: {done.stderr}"

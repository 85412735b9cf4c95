"""Settings of a role that would change what a session does: a session sets its own against them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from storage import EARLIEST, Store
from storage.errors import NotPermitted
from tests.hostile_role import SETTINGS
from tests.processes.postgres.servers import Server

pytestmark = pytest.mark.needs_program("initdb")


@pytest.fixture(scope="module")
def hostile() -> Iterator[Server]:
    """A server whose role `postgres` has every hostile setting."""
    server = Server()
    for name, value in SETTINGS.items():
        server.psql(f"ALTER ROLE postgres SET {name} = {value}")
    yield server
    server.remove()


def test_an_idle_session_stays(hostile: Server) -> None:
    """Longer than the idle_session_timeout of the role; the commit of the command that waits is kept."""
    url = hostile.url("idle")
    Store.create(url, durability="local")
    with Store.open(url) as store:
        store.create_topic("t")
        consumer = store.subscribe("t", "s", initial_position=EARLIEST)
        # Real time: no event tells that the server would have ended the session.
        words = ("transactions", "run", "--store", url, "--", "sh", "-c", "sleep 4; txnctl produce t -m x")
        path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        done = subprocess.run(
            [sys.executable, "-m", "txnctl", *words],
            env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert consumer.receive(timeout=30).value == b"x"


def test_a_role_that_reads_only_reads(server: Server, path: str) -> None:
    """A write names the setting; the server is no standby."""
    server.psql("CREATE ROLE reader LOGIN; GRANT postgres TO reader")
    server.psql("ALTER ROLE reader SET default_transaction_read_only = on")
    with Store.open(path) as store:
        store.create_producer("t").send(b"1")
    mine = path.replace("postgres@", "reader@")
    with Store.open(mine, read_only=True) as store:
        assert [message.value for message in store.reader("t", start=EARLIEST)] == [b"1"]
    with Store.open(mine) as store:
        with pytest.raises(NotPermitted, match="default_transaction_read_only is on") as refused:
            store.create_topic("u")
        assert not refused.value.retryable

"""Clients on other hosts: one that is cut off, and connections with TLS."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import AccessMode, Store
from tests.processes.child import Child, Children
from tests.processes.postgres.hosts import Host, server_with_hosts
from tests.processes.postgres.servers import Server
from tests.waiting import wait_for

pytestmark = pytest.mark.needs_program("ip")

_LIMIT_S = 10.0
"""A host that is cut off frees its leases within this time."""
_OWNER = """
with Store.open(path) as store:
    producer = store.create_producer("t", access_mode="Exclusive", producer_name="owner")
    producer.send(b"before")
    say("ready")
    hear()
    try:
        while True:
            producer.send(b"cut")
    except errors.TxnctlError as error:
        say("error", error.code)
    hear()
    try:
        producer.send(b"behind")
    except errors.TxnctlError as error:
        say("error", error.code)
"""
_IDLE = """
with Store.open(path) as store:
    producer = store.create_producer("t", access_mode="Exclusive", producer_name="owner")
    producer.send(b"before")
    say("ready")
    hear()
    try:
        producer.send(b"behind")
    except errors.TxnctlError as error:
        say("error", error.code)
"""


@pytest.fixture
def far() -> Iterator[tuple[Server, Host]]:
    """A server and one host, with the topic `t` in a store."""
    with server_with_hosts(1) as (server, (host,)):
        Store.create(server.url(), durability="local")
        with Store.open(server.url()) as store:
            store.create_topic("t")
        yield server, host
        with Store.open(server.url()) as store:
            assert store.maintenance.verify_store(full=True) == []


@pytest.fixture
def children() -> Iterator[Children]:
    """Children of the tests here, which have stores of their own."""
    started = Children("")
    yield started
    started.close()


def owner_on(host: Host, children: Children, code: str) -> Child:
    """A client on the host that owns the topic and has sent a message."""
    owner = children.run(code, path=host.url("s"), prefix=host.prefix)
    owner.expect("ready")
    return owner


def owner_is_gone(server: Server) -> float:
    """Wait for the topic, and return how long that took."""
    began = time.monotonic()
    with Store.open(server.url(), lock_timeout=15.0) as store:
        store.create_producer("t", access_mode=AccessMode.WAIT_FOR_EXCLUSIVE, timeout=20).send(b"after")
    return time.monotonic() - began


def values(server: Server) -> list[bytes | None]:
    """The messages of the topic."""
    with Store.open(server.url()) as store:
        return [message.value for message in store.reader("t")]


@pytest.mark.slow
def test_an_idle_host_that_is_cut_off_frees_its_topic(far: tuple[Server, Host], children: Children) -> None:
    """Within ten seconds, by the server's own look; plugged in again, the owner learns that it lost the server."""
    server, host = far
    owner = owner_on(host, children, _IDLE)
    host.cut()
    assert owner_is_gone(server) < _LIMIT_S
    host.plug()
    owner.say()
    assert owner.expect("error") == "server-lost"
    assert values(server) == [b"before", b"after"]


@pytest.mark.slow
def test_a_busy_host_that_is_cut_off_is_told(far: tuple[Server, Host], children: Children) -> None:
    """In the middle of sends: others go on within ten seconds, and what was cut off has one error, and no message twice."""
    server, host = far
    owner = owner_on(host, children, _OWNER)
    owner.say()
    wait_for(lambda: len(values(server)) > 5, "the owner is in the middle of its sends")
    host.cut()
    assert owner_is_gone(server) < _LIMIT_S
    assert owner.expect("error") in ("outcome-unknown", "server-lost")
    host.plug()
    owner.say()
    assert owner.expect("error") == "store-closed"
    sent = values(server)
    assert (sent[0], sent[-1], set(sent[1:-1])) == (b"before", b"after", {b"cut"})


_OPEN = """
try:
    with Store.open(path) as store:
        store.create_producer("t").send(b"safe")
        say("sent")
except errors.TxnctlError as error:
    say("error", error.code, error.message.replace("\\n", " "))
"""


@pytest.mark.needs_program("openssl")
def test_a_connection_with_tls(far: tuple[Server, Host], children: Children, tmp_path: Path) -> None:
    """By the parameters of libpq: a server that insists on TLS, a certificate that is checked, and a false one."""
    server, host = far
    for name in ("true", "false"):
        words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=bank -addext subjectAltName=IP:10.0.1.1"
        files = ("-keyout", tmp_path / f"{name}.key", "-out", tmp_path / f"{name}.certificate")
        subprocess.run(["openssl", *words.split(), *files], check=True, capture_output=True)
    for kind in ("key", "certificate"):
        target = Path(server.data, kind)
        target.write_bytes((tmp_path / f"true.{kind}").read_bytes())
        target.chmod(0o600)  # The server refuses a key that others may read.
        os.chown(target, os.stat(server.data).st_uid, -1)

    def opened(parameters: str) -> str:
        child = children.run(_OPEN, path=host.url("s") + parameters, prefix=host.prefix)
        line = child.line()
        assert line is not None, child.complaint()
        child.succeed()
        return line

    assert opened("&sslmode=require").startswith("error store-unsafe "), "the server has no certificate yet"
    Path(server.data, "pg_hba.conf").write_text("local all all trust\nhostssl all all 10.0.0.0/8 trust\n")
    server.reload({"ssl": "on", "ssl_cert_file": "'certificate'", "ssl_key_file": "'key'"})

    assert opened("&sslmode=require") == "sent"
    assert opened(f"&sslmode=verify-full&sslrootcert={tmp_path}/true.certificate") == "sent"
    refused = opened(f"&sslmode=verify-full&sslrootcert={tmp_path}/false.certificate")
    assert refused.startswith("error store-unsafe ")
    assert "certificate verify failed" in refused
    missing = opened("&sslmode=verify-full&sslrootcert=/nonexistent")
    assert missing.startswith("error store-unsafe ")
    assert "/nonexistent" in missing
    assert opened("&sslmode=disable").startswith("error not-permitted ")
    assert values(server) == [b"safe", b"safe"]

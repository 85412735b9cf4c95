"""Servers that refuse or disturb: poolers, rights, full disks, strangers' locks, clocks that step, dead hosts."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.gate import GateWait
from storage.errors import (
    NotPermitted,
    OutcomeUnknown,
    ServerUnreachable,
    StoreFull,
    StoreInUse,
    StoreInvalid,
    StoreUnsafe,
    TxnctlError,
    WriterBusy,
)
from tests.not_run import forbidden
from tests.processes.postgres.servers import Server, new_directory, run
from tests.waiting import wait_for

_FAKETIME = "/usr/$LIB/faketime/libfaketime.so.1"


@pytest.mark.needs_program("pgbouncer")
@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_is_refused(server: Server, path: str, tmp_path: Path, mode: str) -> None:
    """Locks of a session end with the server's session, which a pooler gives to others."""
    directory = tmp_path / mode
    directory.mkdir()
    for place in (*tmp_path.parents[:-1], tmp_path, directory):
        if place.is_relative_to("/tmp/pytest-of-root"):
            place.chmod(0o755)
    (directory / "ini").write_text(
        f"[databases]\npostgres = host={server.directory} user=postgres\n[pgbouncer]\nlisten_addr =\n"
        f"unix_socket_dir = {server.directory}\nlisten_port = 6432\nauth_type = any\npool_mode = {mode}\n"
    )
    (directory / "ini").chmod(0o644)
    shutil.copy(directory / "ini", os.path.join(server.directory, "pgbouncer.ini"))
    command = ["pgbouncer", os.path.join(server.directory, "pgbouncer.ini")]
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command]
    pooler = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    socket = os.path.join(server.directory, ".s.PGSQL.6432")
    try:
        wait_for(lambda: pooler.poll() is not None or os.path.exists(socket), "the pooler listens")
        assert pooler.poll() is None
        with pytest.raises(StoreUnsafe, match="a pooler is between") as refused:
            Store.open(path + "&port=6432")
        assert "two connections" in str(refused.value.hint)
        with pytest.raises(StoreUnsafe, match="a pooler is between"):
            Store.create(server.url("pooled") + "&port=6432", durability="local")
        shown = subprocess.run(
            ["psql", "-XAtq", "-h", server.directory, "-p", "6432", "-U", "postgres", "postgres",
             "-c", "SELECT name FROM pg_settings WHERE source = 'session' AND name NOT IN ('client_encoding', 'application_name')"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert shown == "", "the connection of the pool goes to the next program as it was"
    finally:
        pooler.send_signal(signal.SIGTERM)
        pooler.wait()
        # A socket that is left would pass for that of the next pooler.
        Path(socket).unlink(missing_ok=True)
    assert server.psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'pooled'") == "0"


def test_two_stores_in_one_database(server: Server, path: str) -> None:
    """Neither waits for the other's gate, nor sees the other's leases or messages."""
    other = server.url("second")
    Store.create(other, durability="local")
    with Store.open(path) as first, Store.open(other) as second:
        second.create_topic("t")
        owner = first.create_producer("t", access_mode="Exclusive")
        second.create_producer("t", access_mode="Exclusive").send(b"2")
        owner.send(b"1")

        environment = first.connection.environment
        assert isinstance(environment, PostgresEnvironment)
        with environment.gate(GateWait(5, None)):
            second.create_topic("u")
        assert [message.value for message in first.reader("t")] == [b"1"]
        assert [message.value for message in second.reader("t")] == [b"2"]
        assert first.identity != second.identity


def test_a_role_without_rights(server: Server, path: str) -> None:
    """It neither reads, nor writes, nor creates; a role that was granted them does."""
    server.psql("CREATE ROLE stranger LOGIN")
    strange = path.replace("postgres@", "stranger@")
    with pytest.raises(NotPermitted, match="permission denied for schema"):
        Store.open(strange)
    with pytest.raises(NotPermitted, match="permission denied"):
        Store.create(server.url("strange", user="stranger"), durability="local")
    with pytest.raises(NotPermitted, match="does not admit"):
        Store.open(server.url("s", user="nobody"))
    schema = path.rpartition("=")[2]
    server.psql(f"GRANT USAGE ON SCHEMA {schema} TO stranger")
    server.psql(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO stranger")
    with Store.open(path) as store:
        store.create_table("accounts")
        store.table("accounts").put(b"k", b"1")
    server.psql(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO stranger")
    with Store.open(strange) as store:
        assert len(store.topics()) == 1
        with pytest.raises(NotPermitted, match="permission denied"):
            store.create_topic("u")
    with Store.open(strange, read_only=True) as store:
        accounts = store.table("accounts")
        assert accounts.get(b"k", at=accounts.version_at()) == b"1"
        assert [change.key for change in accounts.changes()] == [b"k"]
    server.psql(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO stranger")
    with Store.open(strange) as store:
        store.create_producer("t").send(b"1")
    server.psql(f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM stranger")


@pytest.mark.parametrize("full", ["data", "log"])
def test_a_full_disk_of_the_server(full: str) -> None:
    """The change is refused, or its outcome unknown where the log is full; with room again the store goes on."""
    with small_disk("100m") as directory:
        server = Server(directory=directory)
        outside = new_directory()
        try:
            if full == "data":
                server.stop()
                wal = os.path.join(server.data, "pg_wal")
                run("mv", wal, outside)
                run("ln", "-s", os.path.join(outside, "pg_wal"), wal)
                server.start()
            url = server.url()
            Store.create(url, durability="local")
            with Store.open(url) as store:
                store.create_topic("t")
            sent = _send_until_full(server, url, StoreFull if full == "data" else OutcomeUnknown)
            server.kill()
            server.start()
            with Store.open(url) as store:
                producer = store.create_producer("t", producer_name="p")
                producer.send(b"last", sequence_id=5000)
                numbers = [message.sequence_id for message in store.reader("t")]
                assert numbers in ([*range(sent), 5000], [*range(sent + 1), 5000])
                assert store.maintenance.verify_store(full=True) == []
        finally:
            server.kill()
            shutil.rmtree(outside)


def _send_until_full(server: Server, url: str, expected: type[TxnctlError]) -> int:
    """Fill the disk of a server while a producer sends; return the number of acknowledged messages."""
    filler, sent = Path(server.data, "filler"), 0
    with Store.open(url) as store:
        producer = store.create_producer("t", producer_name="p")
        for _ in range(3):
            producer.send(b"small", sequence_id=sent)
            sent += 1
        disk = os.statvfs(server.data)
        with open(filler, "wb") as file:
            file.write(bytes(disk.f_bavail * disk.f_frsize - (6 << 20)))
        error = None
        while error is None:
            try:
                producer.send(os.urandom(1 << 20), sequence_id=sent)
                sent += 1
            except TxnctlError as refused:
                error = refused
        assert isinstance(error, expected)
    filler.unlink()
    return sent


@contextmanager
def small_disk(size: str) -> Iterator[str]:
    """A directory on a small disk, which the user of servers owns."""
    directory = f"/tmp/pgdisk{os.getpid()}"
    os.mkdir(directory)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=777", "tmpfs", directory],
        capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        os.rmdir(directory)
        forbidden("mounting a small disk")
    try:
        if os.geteuid() == 0:
            shutil.chown(directory, "postgres", "postgres")
        yield directory
    finally:
        subprocess.run(["umount", "-l", directory], check=True)
        os.rmdir(directory)


class TestStrangers:
    """Locks of sessions that are none of ours."""

    def test_the_gate(self, server: Server, path: str) -> None:
        """Who waits is told the session that holds it."""
        with (
            Store.open(path) as store,
            held(server, keys(store)[0], 0),
            pytest.raises(WriterBusy, match=r"session \d+ of the server \(psql, user postgres\)"),
        ):
            store.connection.write(lambda batch: batch.count, timeout_s=0.3)

    def test_the_store_in_use(self, server: Server, path: str) -> None:
        with Store.open(path) as store:
            lock_class = keys(store)[0]
        with held(server, lock_class, 1), pytest.raises(StoreInUse):
            Store.open(path)

    def test_leases(self, server: Server, path: str) -> None:
        """A number that a stranger holds is passed over."""
        with Store.open(path) as store:
            lease_class = keys(store)[1]
            with held(server, lease_class, 1), held(server, lease_class, 2):
                producer = store.create_producer("t", access_mode="Exclusive")
                producer.send(b"1")
                assert store.connection._lease == 3

    def test_all_locks_of_the_server(self) -> None:
        """The error names the setting; the store goes on once there is room."""
        server = Server(settings={"max_locks_per_transaction": "10", "max_connections": "10"})
        try:
            url = server.url()
            Store.create(url, durability="local")
            with Store.open(url) as store:
                store.create_topic("t")
            stranger = subprocess.Popen(
                ["psql", "-h", server.directory, "-U", "postgres", "-Atq"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            assert stranger.stdin is not None and stranger.stdout is not None
            stranger.stdin.write(
                "DO $$ BEGIN FOR i IN 1..100000 LOOP PERFORM pg_advisory_lock(7, i); END LOOP;"
                " EXCEPTION WHEN OTHERS THEN NULL; END $$;\n"
            )
            for number in range(200):
                stranger.stdin.write(
                    f"SELECT count(pg_advisory_lock(7, {number} * 100 + i)) FROM generate_series(1, 100) i;\n"
                )
            stranger.stdin.write("SELECT 'full';\n")
            stranger.stdin.flush()
            for line in stranger.stdout:
                if line.strip() == "full":
                    break
            with pytest.raises(StoreInvalid) as refused:
                Store.open(url)
            assert "max_locks_per_transaction" in str(refused.value.hint)
            stranger.stdin.close()
            stranger.wait()
            stranger.stdout.close()
            with Store.open(url) as store:
                store.create_producer("t").send(b"1")
        finally:
            server.remove()


def keys(store: Store) -> tuple[int, int]:
    """The first halves of the lock keys of a store."""
    record = store.connection.environment.server  # type: ignore[attr-defined]
    return record.lock_class, record.lease_class


@contextmanager
def held(server: Server, first: int, second: int) -> Iterator[None]:
    """A stranger's session holds an advisory lock."""
    stranger = subprocess.Popen(
        ["psql", "-h", server.directory, "-U", "postgres", "-Atq"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert stranger.stdin is not None and stranger.stdout is not None
    stranger.stdin.write(f"SELECT pg_advisory_lock({first}, {second}); SELECT 'held';\n")
    stranger.stdin.flush()
    while stranger.stdout.readline().strip() != "held":
        continue
    try:
        yield
    finally:
        stranger.stdin.close()
        stranger.wait()
        stranger.stdout.close()


@pytest.mark.needs_program("faketime")
def test_a_clock_of_the_server_that_steps(tmp_path: Path) -> None:
    """Steps by a day, forth and back, expire nobody: transactions and leased sessions live."""
    shared = tmp_path / "clock"
    for place in (*tmp_path.parents[:-1], tmp_path):
        if place.is_relative_to("/tmp/pytest-of-root"):
            place.chmod(0o755)
    shared.write_text("+0")
    shared.chmod(0o644)
    variables = {
        "LD_PRELOAD": _FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(shared), "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    server = Server(environment=variables)
    try:
        url = server.url()
        Store.create(url, durability="local")
        with Store.open(url) as store:
            store.create_topic("t")
            producer = store.create_producer("t")
            txn = store.begin_transaction(timeout=60)
            day = server.psql("SELECT now()::date")
            for step in ("+1d", "-1d", "+400d", "+0"):
                shared.write_text(step)
                if step == "+1d":
                    server.wait_until(f"SELECT now()::date > '{day}'", "t")
                producer.send(step.encode(), txn=txn)
                producer.send(step.encode())
                with Store.open(url) as other:
                    other.reports.list_transactions()
            store.commit_transaction(txn)
            assert len(list(store.reader("t"))) == 8
            assert store.maintenance.verify_store(full=True) == []
    finally:
        server.remove()


def test_a_dead_host_is_passed_over(path: str) -> None:
    """A machine that answers nothing keeps a client for two seconds, and a missing one not at all."""
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))
    silent.listen(1)
    port = silent.getsockname()[1]
    url = path.replace("host=", "host=127.0.0.1,/nonexistent,") + f"&port={port},5432,5432"
    began = time.monotonic()
    with Store.open(url) as store:
        assert len(store.topics()) == 1
    assert time.monotonic() - began < 30
    with pytest.raises(ServerUnreachable, match="no answer within"):
        Store.open(f"postgresql://postgres@127.0.0.1:{port}/postgres?store=s&connect_timeout=1")
    silent.close()


@pytest.mark.parametrize("way", ["url", "file"])
def test_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """It comes with the URL or from a file, and is in no name, message or list of sessions."""
    server = Server()
    try:
        # PostgreSQL 13 stores passwords for md5 alone, unless told.
        server.psql(
            "SET password_encryption = 'scram-sha-256'; CREATE ROLE bank SUPERUSER LOGIN PASSWORD 's3cret'"
        )
        hba = Path(server.data, "pg_hba.conf")
        hba.write_text("local all postgres trust\nlocal all all scram-sha-256\nlocal replication all trust\n")
        server.psql("SELECT pg_reload_conf()")
        url = server.url("s", user="bank")
        if way == "file":
            file = tmp_path / "pgpass"
            file.write_text("*:*:*:bank:s3cret\n")
            file.chmod(0o600)
            monkeypatch.setenv("PGPASSFILE", str(file))
        else:
            with pytest.raises(NotPermitted, match="password"):
                Store.create(url, durability="local")
            url = url.replace("bank@", "bank:s3cret@")
        Store.create(url, durability="local")
        with Store.open(url) as store:
            store.create_topic("t")
            assert "s3cret" not in store.path
        with pytest.raises(StoreInvalid) as refused:
            Store.open(url.replace("store=s", "store=other"))
        assert "s3cret" not in str(refused.value)
        if way == "url":
            with pytest.raises(NotPermitted) as wrong:
                Store.open(url.replace("s3cret", "s4cret"))
            assert "s4cret" not in str(wrong.value)
    finally:
        server.remove()

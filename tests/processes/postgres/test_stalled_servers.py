"""A server that says nothing, or whose tables a stranger has locked: each call has an end, with a cause."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import pytest

from storage import Store
from storage.errors import OutcomeUnknown, ServerLost, ServerUnreachable, TxnctlError, WriterBusy
from tests.processes.child import ROOT
from tests.processes.postgres.servers import Server
from tests.waiting import wait_for

_END_S = 10.0
"""An end in time, on a busy machine, where the limit is a second. Without a limit the calls end with the stranger."""
_HELD_S = 60.0


class Call(threading.Thread):
    """A call in a thread of its own, which a test does not wait for beyond the end in time."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._call()
        except TxnctlError as error:
            self.error = error

    def ended(self) -> BaseException | None:
        """The error, at the end of the call."""
        self.join(_END_S)
        assert not self.is_alive(), "the call has no end"
        return self.error


@contextmanager
def paused(server: Server) -> Iterator[None]:
    """A server whose processes are stopped within the block."""
    server.pause()
    try:
        yield
    finally:
        server.resume()


@contextmanager
def locked(server: Server, *tables: str) -> Iterator[str]:
    """Tables that another session has locked within the block; yields the number of the session."""
    psql = subprocess.Popen(
        ["psql", "-h", server.directory, "-U", "postgres", "-d", "postgres", "-qAt"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert psql.stdin is not None and psql.stdout is not None
    names = ", ".join(tables)
    psql.stdin.write(f"BEGIN; LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE; SELECT pg_backend_pid();\n")
    psql.stdin.flush()
    try:
        yield psql.stdout.readline().strip()
    finally:
        psql.kill()
        psql.wait()
        psql.stdin.close()
        psql.stdout.close()


def tables_of(server: Server, url: str) -> list[str]:
    """All tables of a store."""
    schema = url.partition("store=")[2]
    text = server.psql(
        f"SELECT string_agg(format('%I.%I', schemaname, tablename), ' ') FROM pg_tables"
        f" WHERE schemaname = '{schema}'"
    )
    return text.split()


def txnctl(url: str, *words: str) -> subprocess.Popen[str]:
    """A command on the store."""
    return subprocess.Popen(
        [sys.executable, "-m", "txnctl", "--store", url, *words],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_read_of_a_stopped_server(own: Server) -> None:
    """A read ends with the loss of the server, and so does each later one at once."""
    url = made(own)
    with Store.open(url, lock_timeout=1) as store:
        with paused(own):
            error = Call(store.topics).ended()
        assert isinstance(error, ServerLost), error
        assert isinstance(Call(store.topics).ended(), TxnctlError)
    with Store.open(url) as again:
        assert len(again.topics()) == 1


def test_a_commit_on_a_stopped_server(own: Server) -> None:
    """A send ends within its limit; the outcome is unknown where the commit was sent, and the store is whole."""
    url = made(own)
    with Store.open(url, lock_timeout=1) as store:
        producer = store.create_producer("t", producer_name="p")
        producer.send(b"1", sequence_id=1)
        with paused(own):
            error = Call(lambda: producer.send(b"2", sequence_id=2)).ended()
        assert isinstance(error, (ServerLost, OutcomeUnknown)), error
    with Store.open(url) as again:
        again.create_producer("t", producer_name="p").send(b"2", sequence_id=2)
        assert [message.value for message in again.reader("t")] == [b"1", b"2"]
        assert again.maintenance.verify_store(full=True) == []


def test_a_wait_for_the_gate_of_a_stopped_server(own: Server) -> None:
    """A writer behind a held gate, which is told of the holder after a second, ends as well."""
    url = made(own)
    with Store.open(url, lock_timeout=3) as store, Store.open(url) as other:
        told: list[str] = []
        other.create_producer("t")
        with paused(own):
            error = Call(lambda: store.create_topic("u")).ended()
        assert isinstance(error, ServerLost), (error, told)


def test_opening_a_stopped_server(own: Server) -> None:
    """A connection that is not answered ends within the limit of the handle."""
    url = made(own)
    with paused(own):
        error = Call(lambda: Store.open(url, lock_timeout=1)).ended()
    assert isinstance(error, ServerUnreachable), error


class Middlebox(threading.Thread):
    """Passes bytes between clients and a server, and drops those of the connections that were made before a cut."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._path = f"{server.directory}/.s.PGSQL.5432"
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open = ExitStack()
        self._open.enter_context(self._listening)
        self._others: dict[socket.socket, tuple[socket.socket, int]] = {}
        self._age, self._is_over = 0, False
        self.start()

    def url(self, url: str) -> str:
        """The URL through the middlebox."""
        port = self._listening.getsockname()[1]
        return f"postgresql://postgres@127.0.0.1:{port}/postgres?store={url.partition('store=')[2]}"

    def cut(self) -> None:
        """Drop all bytes of the connections that there are."""
        self._age += 1

    def close(self) -> None:
        """Close every connection."""
        self._is_over = True
        self.join()

    def run(self) -> None:
        with self._open:
            while not self._is_over:
                for each in select.select([self._listening, *self._others], [], [], 0.05)[0]:
                    if each is self._listening:
                        self._accept()
                    else:
                        self._pass(each)

    def _accept(self) -> None:
        client = self._open.enter_context(self._listening.accept()[0])
        behind = self._open.enter_context(socket.socket(socket.AF_UNIX))
        behind.connect(self._path)
        self._others |= {client: (behind, self._age), behind: (client, self._age)}

    def _pass(self, source: socket.socket) -> None:
        sink, age = self._others[source]
        with suppress(OSError):
            if data := source.recv(1 << 16):
                if age == self._age:
                    sink.sendall(data)
                return
            sink.shutdown(socket.SHUT_WR)
        del self._others[source]


def test_a_middlebox_that_drops(own: Server) -> None:
    """Reads and sends end with the loss of the server, though further connections are admitted."""
    url = made(own)
    box = Middlebox(own)
    try:
        for call in (Store.topics, lambda store: store.create_producer("t").send(b"1")):
            with Store.open(box.url(url), lock_timeout=1) as store:
                assert len(store.topics()) == 1
                box.cut()
                error = Call(partial(call, store)).ended()
                assert isinstance(error, (ServerLost, OutcomeUnknown)), error
    finally:
        box.close()


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "list", "--lock-timeout", "1s"),
        ("produce", "t", "-m", "x", "--lock-timeout", "1s"),
        ("consume", "t", "--timeout", "1s", "--lock-timeout", "1s"),
        ("consume", "t", "-s", "a", "--timeout", "1s", "--lock-timeout", "1s"),
    ],
    ids=["topics", "produce", "read", "consume"],
)
def test_locked_tables(server: Server, path: str, words: tuple[str, ...]) -> None:
    """A command on tables that an operator has locked ends busy, naming the session that holds."""
    with locked(server, *tables_of(server, path)) as session:
        command = txnctl(path, *words)
        try:
            _, errors = command.communicate(timeout=_HELD_S / 2)
        finally:
            command.kill()
    assert command.returncode == 5, errors
    assert f"session {session} of the server (psql, user postgres)" in errors


def test_a_handle_behind_locked_tables(server: Server, path: str) -> None:
    """Reads and writes of an open handle are refused as busy, and go on once the tables are free."""
    with Store.open(path, lock_timeout=1) as store:
        producer = store.create_producer("t")
        producer.send(b"1")
        with locked(server, *tables_of(server, path)) as session:
            for call in (store.topics, lambda: producer.send(b"2"), lambda: store.create_topic("u")):
                error = Call(call).ended()
                assert isinstance(error, WriterBusy), error
                assert f"session {session} of the server" in error.details["holder"]
        producer.send(b"3")
        assert [message.value for message in store.reader("t")] == [b"1", b"3"]


@pytest.mark.parametrize(
    "words",
    [("topics", "list", "--lock-timeout", "60s"), ("produce", "t", "-m", "x", "--lock-timeout", "60s")],
    ids=["read", "write"],
)
def test_an_interrupt_at_a_stopped_server(own: Server, words: tuple[str, ...]) -> None:
    """Ctrl-C ends a command that waits for a lock, though the server has stopped meanwhile."""
    url = made(own)
    with locked(own, *tables_of(own, url)):
        command = txnctl(url, *words)
        try:
            wait_for(
                lambda: own.psql("SELECT count(*) FROM pg_locks WHERE NOT granted").strip() == "1",
                "the command waits",
            )
            with paused(own):
                os.kill(command.pid, signal.SIGINT)
                began = time.monotonic()
                command.communicate(timeout=_HELD_S / 2)
                assert time.monotonic() - began < _END_S
        finally:
            command.kill()
            command.communicate()
    assert command.returncode in (130, -signal.SIGINT)


def test_completion_at_a_stopped_server(own: Server) -> None:
    """Tab ends in time, with nothing offered and without an error, also where tables are locked."""
    url = made(own)
    variables = os.environ | {
        "_TXNCTL_COMPLETE": "bash_complete", "COMP_LINE": "txnctl topics stats ", "TXNCTL_STORE": url,
    }  # fmt: skip
    command = [sys.executable, "-m", "txnctl"]
    with paused(own):
        done = subprocess.run(
            command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=_END_S, check=False
        )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
    with locked(own, *tables_of(own, url)):
        done = subprocess.run(
            command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=_END_S, check=False
        )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
    done = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=_END_S, check=False
    )
    assert "t" in done.stdout.split()


def made(server: Server) -> str:
    """The URL of a new store with the topic `t`."""
    url = server.url("s")
    Store.create(url, durability="local")
    with Store.open(url) as store:
        store.create_topic("t")
    return url

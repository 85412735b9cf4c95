"""A Redis stream on a private server, every reply after a flush of the append-only file (`appendfsync always`).

A batch is one pipeline inside MULTI/EXEC, and becomes durable as one commit. Without MULTI/EXEC the server flushes
after each 16 KB of its input buffer, and is slower still.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

HOW_TO_GET_IT = "redis-server is not on PATH (on Debian: apt install redis-server)"
_START_SECONDS = 10.0
_ENTRY = re.compile(rb"\$\d+\r\n(\d+-\d+)\r\n\*2\r\n\$1\r\nv\r\n\$\d+\r\n([^\r]*)\r\n")


def program() -> str | None:
    """Return the path of the server, if installed."""
    return shutil.which("redis-server")


def server_version(redis_server: str) -> str:
    """`Redis server v=7.0.15 sha=...` is 7.0.15."""
    text = subprocess.run([redis_server, "--version"], check=True, capture_output=True, text=True).stdout
    return text.partition("v=")[2].split()[0]


class RedisStream:
    """A `Queue`: XADD, XREADGROUP + XACK. Starts and stops its own server."""

    def __init__(self, redis_server: str, directory: Path) -> None:
        directory.mkdir()
        port = _free_port()
        self._server = subprocess.Popen(
            [
                redis_server, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", "",
                "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0",
            ],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self._connection = _Connection(port)
        self._connection.call([(b"XGROUP", b"CREATE", b"log", b"group", b"0", b"MKSTREAM")])

    def append(self, values: Sequence[bytes]) -> None:
        commands = [(b"XADD", b"log", b"*", b"v", value) for value in values]
        self._connection.call([(b"MULTI",), *commands, (b"EXEC",)])

    def take(self, count: int) -> int:
        number = str(count).encode()
        reply = self._connection.call(
            [(b"XREADGROUP", b"GROUP", b"group", b"consumer", b"COUNT", number, b"STREAMS", b"log", b">")]
        )
        entries = _ENTRY.findall(reply)
        if entries:
            self._connection.call([(b"XACK", b"log", b"group", *(identity for identity, _value in entries))])
        return len(entries)

    def close(self) -> None:
        self._connection.close()
        self._server.terminate()
        self._server.wait()


class _Connection:
    """Pipelines of commands.

    Replies are not parsed one by one, which would cost more in Python than in the server: a PING closes each pipeline,
    and all bytes before the reply of PING are the replies. Values must not contain line ends.
    """

    def __init__(self, port: int) -> None:
        self._socket = _connect(port)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, commands: Sequence[tuple[bytes, ...]]) -> bytes:
        """Send all commands in one write, and return the raw replies. `ConnectionError` if a reply is an error."""
        self._socket.sendall(b"".join(_packed(command) for command in (*commands, (b"PING",))))
        replies = bytearray()
        while not replies.endswith(b"+PONG\r\n"):
            received = self._socket.recv(1 << 18)
            if not received:
                raise ConnectionError("redis-server closed the connection")
            replies += received
        if replies.startswith(b"-") or b"\n-" in replies:
            raise ConnectionError(f"redis-server answered {bytes(replies[:200])!r}")
        return bytes(replies)

    def close(self) -> None:
        self._socket.close()


def _packed(command: tuple[bytes, ...]) -> bytes:
    return b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in command)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _connect(port: int) -> socket.socket:
    """The server needs a moment to listen."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)

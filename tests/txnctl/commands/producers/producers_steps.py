"""Steps that the tests of producers share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storage import Store
from tests.row_json import row_json
from tests.waiting import wait_for

PYTHON = [sys.executable, "-m", "txnctl"]


def rows(path: Path) -> list[dict[str, Any]]:
    """Who is connected to `orders`, and who waits."""
    with Store.open(path, read_only=True) as store:
        return row_json(store.reports.list_producers("orders"))


def values(path: Path, topic: str = "orders") -> list[bytes | None]:
    with Store.open(path, read_only=True) as store:
        return [message.value for message in store.reader(topic)]


@contextmanager
def producing(path: Path, *words: str, waits: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """`txnctl produce orders` that reads from a pipe: connected, or waiting for its turn."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    before = {row["sessionId"] for row in rows(path)}
    with subprocess.Popen([*PYTHON, "produce", "orders", *words], **streams) as process:
        try:
            wait_for(
                lambda: any(
                    row["sessionId"] not in before and row["isWaiting"] is waits for row in rows(path)
                ),
                "it is there",
            )
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[bytes], stdin: bytes | None = None) -> tuple[int, str]:
    """Its exit code and what it said."""
    _, err = process.communicate(stdin, timeout=30)
    return process.returncode, err.decode()


def send(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()

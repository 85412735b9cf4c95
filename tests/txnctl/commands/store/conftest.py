"""Fixtures of the tests in this folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from tests.txnctl.commands.store.store_commands_steps import WAITING


@pytest.fixture
def path(path: Path) -> Path:
    """A store with ten messages, named to every command of the test, and verified in full at the end."""
    with Store.open(path) as store:
        store.create_topic("orders")
        store.create_producer("orders", connected=False).send_batch([b"x"] * 10)
    return path


@pytest.fixture
def other(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has the store open and a consumer attached."""
    process = subprocess.Popen([sys.executable, "-c", WAITING, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.kill()
    process.communicate()

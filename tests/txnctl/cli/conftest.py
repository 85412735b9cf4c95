"""Fixtures of the tests in this folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from tests.txnctl.cli.context_steps import HOLDER


@pytest.fixture
def store_path(tmp_path: Path) -> str:
    """A store with one topic, found to be whole at the end."""
    path = str(tmp_path / "s")
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("orders")
    return path


@pytest.fixture
def holder(store_path: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stays inside the writer gate."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, store_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()

"""Places in memory for stores that are thrown away by the hundred, and processes that do so."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.child import Children


@pytest.fixture
def memory() -> Iterator[str]:
    """A directory in memory where the machine has one."""
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        yield directory


@pytest.fixture(scope="module")
def module_memory() -> Iterator[str]:
    """The same, for all tests of a module."""
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        yield directory


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    """Starts children; all of them are gone at the end."""
    started = Children(str(tmp_path))
    yield started
    started.close()

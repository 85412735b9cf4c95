"""A place in memory for stores that are written, damaged and thrown away by the hundred."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest


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

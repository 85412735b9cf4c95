"""Fixtures of the tests in this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def file_of(tmp_path: Path) -> Callable[[str | bytes], str]:
    """Write a file with the given content; return its path."""

    def write(content: str | bytes) -> str:
        path = tmp_path / "bank.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write

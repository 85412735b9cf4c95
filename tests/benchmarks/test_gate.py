"""The measurement of the writer gate runs: `benchmarks/gate.py`. No time is asserted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import gate


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory in memory where the machine has one, as the measurement has by default."""
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        yield Path(directory)


def test_each_change_is_measured(memory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With few messages in flight; each line ends with the operations of LMDB under the gate."""
    gate.main(["--in-flight", "60", "--batch", "10", "--dir", str(memory)])
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.endswith("operations")
    assert [line[:44].strip() for line in lines] == list(gate.SCENARIOS)
    assert all(line.split()[-1].replace(",", "").isdigit() for line in lines)
    assert list(memory.iterdir()) == []

"""The measurement of the writer gate runs: `benchmarks/gate.py`. No time is asserted."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import gate


def test_each_change_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With few messages in flight; each line ends with the operations of LMDB under the gate."""
    gate.main(["--in-flight", "60", "--batch", "10", "--dir", str(tmp_path)])
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.endswith("operations")
    assert [line[:44].strip() for line in lines] == list(gate.SCENARIOS)
    assert all(line.split()[-1].replace(",", "").isdigit() for line in lines)
    assert list(tmp_path.iterdir()) == []

"""The acceptance run of transfers in its short form: `make transfers` has the long one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scale.transfer_data import SHAPES, balances, prepare, transfers, write_files
from tests.scale.test_scale import processes_of
from txnctl.pipelines.hellers import parse_hellers

ROOT = Path(__file__).parents[2]


def test_the_same_seed_gives_the_same_transfers(tmp_path: Path) -> None:
    """In files of four shapes, each with what its shape is about; balances of all sum up to nothing."""
    lines = list(transfers(400, 16))
    assert lines == list(transfers(400, 16))
    assert lines != list(transfers(400, 17))
    assert [line.time for line in lines] == sorted(line.time for line in lines)
    parts = prepare(lines)
    write_files(parts, tmp_path)
    files = {shape.file: (tmp_path / shape.file).read_bytes() for shape in SHAPES}
    assert b";" in files["semicolon.csv"].splitlines()[0]
    assert "Überweisung".encode("latin-1") in files["latin-1.csv"]
    assert b'"Wire\r\nvia Z' in files["line-breaks.csv"]
    found = balances([line for part in parts for line in part])
    assert sum(parse_hellers(balance.decode()) for balance in found.values()) == 0
    assert len(found) > 50


@pytest.mark.slow
@pytest.mark.needs_program("java")
def test_transfers_come_through_both_engines_and_kills(tmp_path: Path) -> None:
    """Every check of the run holds, both engines were killed, and no process and no file is left."""
    place = tmp_path / "transfers"
    place.mkdir()
    words = [
        "--transfers",
        "300",
        "--kills",
        "3",
        "--spark-kills",
        "1",
        "--share",
        "0.5",
        "--dir",
        str(place),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "scale.transfers", *words],
        cwd=ROOT, capture_output=True, text=True, timeout=580, check=False,
    )  # fmt: skip
    # The JVM of a busy machine has warnings of its own for the standard error.
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("checks, all of them held"), done.stdout
    assert "killed Spark 1 of 1 times" in done.stdout
    assert processes_of(place) == []
    assert list(place.iterdir()) == []

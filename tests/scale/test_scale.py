"""The proof beyond one machine in its short form: `make scale` has the long one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scale.__main__ import main

ROOT = Path(__file__).parents[2]
MESSAGES = 60_000


def processes_of(place: Path) -> list[str]:
    """Command lines of living processes that name the place."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                words = (each / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(place) in words:
                found.append(words)
    return found


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Before anything is started."""
    assert main(["--dir", str(tmp_path / "none")]) == 2
    assert (
        capsys.readouterr().err
        == f"error: {tmp_path}/none is no directory; make it first, or leave --dir out\n"
    )


@pytest.mark.needs_program("java")
def test_a_cluster_without_lmdb_reads_and_writes_exactly_what_was_produced(tmp_path: Path):
    """An executor and the driver are killed on the way; every check holds, and no process and no file is left."""
    place = tmp_path / "scale"
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "scale", "--messages", str(MESSAGES), "--dir", str(place)],
        cwd=ROOT, capture_output=True, text=True, timeout=580, check=False,
    )  # fmt: skip
    # The JVM of a busy machine has warnings of its own for the standard error.
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    # The seconds before each line are padded to a width that a long run fills.
    assert re.match(r" *[\d.]+ s  14 checks, all of them held", lines[-1]), done.stdout
    for what in ("killed the executor", "killed the driver", "ok: the copy: ", "ok: the second copy: "):
        assert any(what in line for line in lines), done.stdout
    assert processes_of(place) == []
    assert list(place.iterdir()) == []

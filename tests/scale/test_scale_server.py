"""The proof beyond one machine on a server: executors without lmdb read the store itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.scale.test_scale import ROOT, processes_of
from txnctl.demo.cluster import running_cluster

MESSAGES = 20_000


@pytest.mark.needs_program("initdb", "java")
def test_a_cluster_reads_and_writes_a_store_on_a_server_exactly(tmp_path: Path):
    """The driver is killed on the way; every check holds, and no session is left on the server.

    The loss of an executor is the same on both engines: `test_scale.py` has it.
    """
    place = tmp_path / "scale"
    place.mkdir()
    with running_cluster() as server:
        words = [
            "--messages",
            str(MESSAGES),
            "--dir",
            str(place),
            "--url",
            server.url("scale"),
            "--spare-executors",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "scale", *words],
            cwd=ROOT, capture_output=True, text=True, timeout=580, check=False,
        )  # fmt: skip
        server.primary.wait_for(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'txnctl:%'", "0"
        )
    # The JVM of a busy machine has warnings of its own for the standard error.
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 checks, all of them held" in done.stdout
    for event in ("without lmdb", "killed the driver", "ok: the second copy: "):
        assert event in done.stdout
    assert processes_of(place) == []
    assert list(place.iterdir()) == []

"""The cluster of the demo: what it starts, and that it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import ProgramMissing
from txnctl.demo import cluster


def test_a_cluster_leaves_nothing_behind() -> None:
    """Both servers end with the block, and their directory is removed."""
    try:
        cluster.Programs.found()
    except ProgramMissing as error:
        pytest.skip(f"{error.message} (apt-get install postgresql)")
    with cluster.running_cluster() as running:
        place = Path(running.primary.directory)
        pids = [server.pid for server in (running.primary, running.standby)]
    assert not place.parent.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)

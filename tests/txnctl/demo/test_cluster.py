"""The cluster of the demo: what it starts, and that it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from txnctl.demo import cluster


@pytest.mark.needs_program("initdb")
def test_a_cluster_leaves_nothing_behind() -> None:
    """Both servers end with the block, and their directory is removed."""
    with cluster.running_cluster() as running:
        place = Path(running.primary.directory)
        pids = [server.pid for server in (running.primary, running.standby)]
    assert not place.parent.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)

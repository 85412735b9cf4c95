"""The servers of tests: started, killed, followed by a standby that is promoted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres_cluster import Cluster

pytestmark = pytest.mark.needs_program("initdb")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A server that the test may kill."""
    made = Cluster()
    try:
        yield made.initdb().start()
    finally:
        made.remove()


def test_the_shared_server_keeps_what_it_confirms(postgres_cluster: Cluster) -> None:
    """fsync and autovacuum are on, as with the users' servers."""
    assert postgres_cluster.psql("SHOW fsync") == postgres_cluster.psql("SHOW autovacuum") == "on"


def test_a_promoted_standby_has_each_row_confirmed_before_the_kill(cluster: Cluster) -> None:
    """A commit that waited for the standby is there after the primary was killed by -9."""
    standby = cluster.standby("beside")
    try:
        cluster.wait_for("beside")
        cluster.psql("CREATE TABLE t (n int8); INSERT INTO t VALUES (1)")
        pids = cluster.processes()
        cluster.kill()
        assert len(pids) > 1
        standby.promote()
        assert standby.psql("SELECT n FROM t") == "1"
    finally:
        standby.remove()


def test_a_killed_server_starts_again_with_its_rows(cluster: Cluster) -> None:
    """The server recovers from its log, and a restart in order keeps the rows too."""
    cluster.psql("CREATE TABLE t AS SELECT 1 AS n")
    cluster.kill()
    cluster.start()
    cluster.restart()
    assert cluster.psql("SELECT n FROM t") == "1"

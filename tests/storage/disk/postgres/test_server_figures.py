"""The server tells of its standbys, connections and transactions."""

from __future__ import annotations

import subprocess

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment
from tests.postgres_cluster import Cluster

ROLE = "onlooker"


def test_a_server_without_standbys(environment: PostgresEnvironment, postgres_cluster: Cluster) -> None:
    """All is known to a superuser."""
    status = environment.server_status()
    assert status.version == postgres_cluster.psql("SHOW server_version").split()[0]
    assert (status.durability, status.synchronous_standby_names, status.standbys) == ("local", "", [])
    assert status.unsafe_settings == []
    assert 2 <= status.connections < status.connections_max < 100


def test_a_bystander_with_a_snapshot_is_named(
    environment: PostgresEnvironment, bystander: subprocess.Popen[str]
) -> None:
    """With its session, which ends it."""
    (held,) = [held for held in environment.server_status().transactions if held.program == "psql"]
    assert (held.pid, held.user, held.state) == (None, "postgres", "idle in transaction")
    assert held.age_ms is not None
    assert f"session {held.session} of the server" in held.holder


def test_a_role_without_rights_knows_less(
    url: str, store: Store, postgres_cluster: Cluster, bystander: subprocess.Popen[str]
) -> None:
    """Unknown is None: neither an empty list nor 0."""
    store.create_topic("t")
    name = url.rpartition("store=")[2]
    postgres_cluster.psql(
        f"DROP ROLE IF EXISTS {ROLE}; CREATE ROLE {ROLE} LOGIN; GRANT USAGE ON SCHEMA {name} TO {ROLE};"
        f" GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {ROLE}"
    )
    try:
        with Store.open(url.replace("//postgres@", f"//{ROLE}@"), read_only=True) as reading:
            status = reading.reports.server_status()
            assert status is not None
            assert status.standbys is None
            assert [held.age_ms for held in status.transactions if held.program == "psql"] == [None]
            assert reading.reports.store_overview().verdict == "ok"
    finally:
        postgres_cluster.psql(f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")

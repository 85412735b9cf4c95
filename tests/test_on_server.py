"""Tests on a server: a store named by a directory is a schema of its own, in children too, and is gone at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres_cluster import Cluster

_ROOT = Path(__file__).parents[1]

_SUITE = """
import subprocess
import sys

from storage import Store

CHILD = "import sys; from storage import Store; Store.open(sys.argv[1]).create_topic('by-a-child')"


def test_a_child_finds_the_store(tmp_path):
    Store.create(tmp_path / "store")
    subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "store")], check=True)
    with Store.open(tmp_path / "store") as store:
        assert store.topics() == ["by-a-child"]
        assert store.path.startswith("postgresql://")
    assert list(tmp_path.iterdir()) == []


def test_another_test_has_another_store(tmp_path):
    Store.create(tmp_path / "store")
"""


@pytest.mark.needs_program("initdb")
def test_stores_are_schemas_that_a_test_leaves_no_trace_of(postgres_cluster: Cluster, tmp_path: Path) -> None:
    """Both processes of the inner test see one schema, which its end drops."""
    (tmp_path / "test_inner.py").write_text(_SUITE)
    server = f"postgresql://postgres@/postgres?host={postgres_cluster.directory}"
    count = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 't%\\_%'"
    before = postgres_cluster.psql(count)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "tests.on_server", "test_inner.py"],
        cwd=tmp_path, check=True, timeout=120,
        env={**os.environ, "TXNCTL_TEST_SERVER": server, "PYTHONPATH": str(_ROOT)},
    )  # fmt: skip
    assert postgres_cluster.psql(count) == before

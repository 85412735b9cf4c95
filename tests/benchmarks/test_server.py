"""The harness beside PostgreSQL's own commits runs, prints a ratio for each row, and removes what it made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import server
from txnctl.demo.cluster import running_cluster


@pytest.mark.needs_program("initdb")
def test_every_row_has_a_ratio_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a primary with a synchronous standby; the figures of so short a run mean nothing."""
    with running_cluster() as cluster:
        words = ["--url", cluster.url("bench"), "--rounds", "1", "--bystander", "0.2"]
        assert server.main([*words, "--json", str(tmp_path / "figures.json")]) in (0, 1)
        left = cluster.primary.ask("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench%'")
    assert left == "0"
    rows = json.loads((tmp_path / "figures.json").read_text())["rows"]
    assert {row["row"] for row in rows} == set(server.ROWS)
    assert all(row["measured"] > 0 for row in rows)
    assert "prepared INSERT + COMMIT" in capsys.readouterr().out

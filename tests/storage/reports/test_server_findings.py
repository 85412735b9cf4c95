"""Findings about the server of a store."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from storage.disk.server_status import ServerStatus, ServerTransaction, Standby
from storage.reports.facts import Facts
from storage.reports.server_findings import missing_standbys, server_findings

HEALTHY = ServerStatus("15.18", 0, "local", "", [], [], 12, 97, [])
SYNC = Standby("s1", None, "streaming", "sync", 0, None)
REPLICATED = HEALTHY._replace(durability="replicated", synchronous_standby_names="s1", standbys=[SYNC])


def found(server: ServerStatus | None) -> list[Any]:
    """The findings about a server."""
    facts = SimpleNamespace(store=SimpleNamespace(info=SimpleNamespace(server=server)))
    return list(server_findings(cast("Facts", facts)))


def held(age_ms: int | None, session: int | None = 77) -> ServerTransaction:
    """A transaction of a bystander."""
    return ServerTransaction(
        session, None, None, "psql", "anna", "active", age_ms, "session 77 of the server"
    )


@pytest.mark.parametrize(
    "server",
    [None, HEALTHY, REPLICATED, REPLICATED._replace(standbys=None), HEALTHY._replace(transactions=[held(299_999)]),
     HEALTHY._replace(transactions=[held(None)]), HEALTHY._replace(connections=87)],
)  # fmt: skip
def test_nothing_is_found_in_health(server: ServerStatus | None) -> None:
    """Nor about a directory, nor where this role may not see."""
    assert found(server) == []


@pytest.mark.parametrize(
    ("server", "code", "severity", "words"),
    [
        (HEALTHY._replace(unsafe_settings=["fsync"]), "server-unsafe", "critical", "fsync off"),
        (REPLICATED._replace(synchronous_standby_names="", standbys=[]), "standby-unnamed", "critical", "names none"),
        (REPLICATED._replace(standbys=[]), "standby-missing", "critical", "none is connected"),
        (
            REPLICATED._replace(synchronous_standby_names="ANY 2 (s1, s2)"),
            "standby-missing", "critical", "1 of 2 are connected",
        ),
        (
            REPLICATED._replace(standbys=[SYNC._replace(behind_bytes=64 << 20)]),
            "standby-behind", "warning", "standby s1 is 64 MiB",
        ),
        (
            REPLICATED._replace(standbys=[SYNC._replace(behind_ms=10_000)]),
            "standby-behind", "warning", "10s behind",
        ),
        (
            HEALTHY._replace(transactions=[held(360_000), held(300_000)]),
            "vacuum-held", "warning", "2 transactions have kept VACUUM from removing rows for 6m00s",
        ),
        (HEALTHY._replace(connections=88), "connections-low", "warning", "88 of 97 connections"),
        (HEALTHY._replace(connections=96), "connections-low", "critical", "96 of 97 connections"),
    ],
)  # fmt: skip
def test_each_rule_finds_its_own(server: ServerStatus, code: str, severity: str, words: str) -> None:
    """One finding, with a way out."""
    (finding,) = found(server)
    assert (finding.code, finding.severity) == (code, severity)
    assert words in finding.what


def test_the_way_to_end_a_transaction() -> None:
    """A prepared one has no session."""
    assert "pg_terminate_backend(77)" in found(HEALTHY._replace(transactions=[held(400_000)]))[0].why
    assert "ROLLBACK PREPARED" in found(HEALTHY._replace(transactions=[held(400_000, None)]))[0].why


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ("s1", 0),
        ("s1, s2", 0),
        ("*", 0),
        ("2 (s1, s2)", 1),
        ("FIRST 3 (*)", 2),
        ("any 1 (a, b)", 0),
        (" ", 1),
    ],
)
def test_the_number_of_standbys_is_that_of_the_setting(names: str, missing: int) -> None:
    """One, unless the setting has a number."""
    assert missing_standbys(REPLICATED._replace(synchronous_standby_names=names)) == missing

"""Check measures: `txnctl/commands/health/check_measures.py`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.txnctl.commands.health.check_steps import Run, facts, performance, samples
from txnctl.commands.health.check_measures import MEASURES, judge, thresholds, worst


def state_of(name: str, row: dict[str, Any], warn: dict[str, int] | None = None) -> tuple[int, str]:
    """Value and state of one measure."""
    (found,) = [each for each in judge(row, warn or {}, {}) if each["name"] == name]
    return found["value"], found["state"]


@pytest.mark.usefixtures("monitored")
def test_a_new_store_is_ok_in_every_format(run: Run) -> None:
    """0 for Nagios, up for Prometheus, OK in JSON; each measure once, with its thresholds."""
    outcome = run("check")
    assert (outcome.status, outcome.err) == (0, "")
    (line,) = outcome.out.splitlines()
    assert line.startswith("TXNCTL OK - all measures are within their thresholds | ")
    data = performance(line)
    assert list(data) == [each.name.replace("-", "_") for each in MEASURES]
    assert data["blocked_age"] == ("0", "s", "60", "600")
    assert data["space"][1:] == ("B", f"{1 << 30}:", f"{128 << 20}:")
    assert samples(run("check", "--format", "prometheus").out)["txnctl_up"] == [({}, 1)]
    row = run("check", "--format", "json", "--exit-code").json
    assert (row["state"], row["error"], row["findings"]) == ("OK", None, [])
    assert {each["state"] for each in row["measures"]} == {"OK"}


def test_a_threshold_itself_is_still_well() -> None:
    """Beyond is greater, for space less."""
    assert state_of("readers", facts(readers={"inUse": 400})) == (400, "OK")
    assert state_of("readers", facts(readers={"inUse": 401})) == (401, "WARNING")
    assert state_of("space", facts(store={"diskFreeBytes": 1 << 30})) == (1 << 30, "OK")
    assert state_of("space", facts(store={"diskFreeBytes": (128 << 20) - 1}))[1] == "CRITICAL"
    assert thresholds(("lag=1", "lag=7", "space=2G", "blocked-age=5m"), "--warn") == {
        "lag": 7, "space": 2 << 30, "blocked-age": 300_000,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("stopped", "owner-stopped"),
        ("stopped", "consumer-stopped"),
        ("stopped", "producers-waiting"),
        ("held", "acknowledgements-held"),
        ("held", "intents-held"),
    ],
)
def test_what_doctor_finds_is_measured(name: str, code: str) -> None:
    """One is too many, unless a threshold says otherwise; what only informs counts for nothing."""
    found = [{"code": code, "what": "x"}, {"code": "no-consumer", "what": "y"}]
    assert state_of(name, facts()) == (0, "OK")
    assert state_of(name, facts(findings=found)) == (1, "WARNING")
    assert state_of(name, facts(findings=found), {name: 1}) == (1, "OK")


def test_waiting_producers_are_measured() -> None:
    """Of the topic with the most; how many are too many only a threshold says."""
    row = facts(producers=[{"name": "a", "waiting": 1}, {"name": "b", "waiting": 3}])
    assert state_of("waiting", row) == (3, "OK")
    assert state_of("waiting", row, {"waiting": 2}) == (3, "WARNING")


def test_the_oldest_blocked_and_the_stopped_gate_are_measured() -> None:
    """Where the oldest blocked message was not looked for, its blocker's age stands for it; a held gate is well."""
    near = {"name": "a", "blockedBy": "0:1", "blockedByAgeMs": 90_000, "oldestBlockedMs": 970_000}
    far = {"name": "b", "blockedBy": "0:2", "blockedByAgeMs": 80_000, "oldestBlockedMs": None}
    assert state_of("blocked-age", facts(topics=[near])) == (30_000, "OK")
    assert state_of("blocked-age", facts(topics=[near, far])) == (80_000, "WARNING")
    assert state_of("gate", facts(writerGate={"state": "held", "pid": 7})) == (0, "OK")
    assert state_of("gate", facts(writerGate={"state": "stopped", "pid": 7})) == (1, "CRITICAL")
    assert worst([{"state": "WARNING"}, {"state": "CRITICAL"}, {"state": "OK"}]) == "CRITICAL"

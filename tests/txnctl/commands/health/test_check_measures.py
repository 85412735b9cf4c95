"""Check measures: `txnctl/commands/health/check_measures.py`."""

from __future__ import annotations

from typing import Any

import pytest

from storage.disk.environment import HolderProcess
from storage.errors import InvalidValue
from storage.reports.finding import Finding
from storage.reports.overview import Overview
from storage.reports.quiet_consumers import QuietConsumer
from tests.txnctl.commands.health.check_steps import (
    NO_ENDS,
    Run,
    billing,
    blocked_topic,
    disk_left,
    held_table,
    overview_of,
    performance,
    queue,
    readers_of,
    samples,
    stopped_queue,
)
from tests.txnctl.typed_rows import OWNER
from txnctl.commands.health.check_measures import EVERY, Judged, judge, thresholds, worst


def state_of(name: str, overview: Overview, warn: dict[str, int] | None = None) -> tuple[int, str]:
    """Value and state of one measure."""
    (judged,) = [measure for measure in judge(overview, NO_ENDS, warn or {}, {}) if measure.name == name]
    return judged.value, judged.state


def judged_as(state: str) -> Judged:
    """A measure in this state."""
    return Judged("late", state, 0, None, None, None, None, "x")


@pytest.mark.usefixtures("monitored")
def test_a_new_store_is_ok_in_every_format(run: Run) -> None:
    """0 for Nagios, up for Prometheus, OK in JSON; each measure once, with its thresholds."""
    outcome = run("check")
    assert (outcome.status, outcome.err) == (0, "")
    (line,) = outcome.out.splitlines()
    assert line.startswith("TXNCTL OK - all measures are within their thresholds | ")
    data = performance(line)
    of_server = {"standby", "standby-lag", "vacuum", "connections"}
    assert list(data) == [each.name.replace("-", "_") for each in EVERY if each.name not in of_server]
    assert data["blocked_age"] == ("0", "s", "60", "600")
    assert data["space"][1:] == ("B", f"{1 << 30}:", f"{128 << 20}:")
    assert samples(run("check", "--format", "prometheus").out)["txnctl_up"] == [({}, 1)]
    row = run("check", "--format", "json", "--exit-code").json
    assert (row["state"], row["error"], row["findings"]) == ("OK", None, [])
    assert {each["state"] for each in row["measures"]} == {"OK"}


@pytest.mark.parametrize("typed", ["unknown=1", "lag", *[f"{measure.name}=x" for measure in EVERY]])
def test_a_threshold_that_cannot_be_read_is_shown_one_that_can(typed: str) -> None:
    """The hint ends in a command, with a threshold of the same measure where there is one."""
    with pytest.raises(InvalidValue) as caught:
        thresholds((typed,), "--critical")
    name = typed.partition("=")[0] if typed[-1] == "x" else "lag"
    begin, _, example = str(caught.value.hint).rpartition("For example: txnctl check --critical ")
    assert begin.startswith(("Expected: ", "Did you mean "))
    assert list(thresholds((example,), "--critical")) == [name]


def test_a_threshold_itself_is_still_well() -> None:
    """Beyond is greater, for space less."""
    assert state_of("readers", overview_of(readers=readers_of(400))) == (400, "OK")
    assert state_of("readers", overview_of(readers=readers_of(401))) == (401, "WARNING")
    assert state_of("space", overview_of(store=disk_left(1 << 30))) == (1 << 30, "OK")
    assert state_of("space", overview_of(store=disk_left((128 << 20) - 1)))[1] == "CRITICAL"
    assert thresholds(("lag=7", "space=2G", "blocked-age=5m"), "--warn") == {
        "lag": 7, "space": 2 << 30, "blocked-age": 300_000,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "changed", "where"),
    [
        (
            "stopped",
            {"producers": [stopped_queue("a"), stopped_queue("b")]},
            "producer next of a, producer next of b",
        ),
        (
            "stopped",
            {"subscriptions": [billing(stopped=("c1", "c2"))]},
            "consumer c1 of subscription billing of topic a, consumer c2 of subscription billing of topic a",
        ),
        (
            "held",
            {"subscriptions": [billing(held_by=3)], "tables": [held_table("rows", 7)]},
            "subscription billing of topic a, table rows",
        ),
    ],
)
def test_what_doctor_finds_is_measured(name: str, changed: dict[str, Any], where: str) -> None:
    """One is too many, unless a threshold says otherwise; every one is named."""
    overview = overview_of(**changed)
    assert state_of(name, overview_of()) == (0, "OK")
    assert state_of(name, overview) == (2, "WARNING")
    assert state_of(name, overview, {name: 2}) == (2, "OK")
    (measure,) = [each for each in judge(overview, NO_ENDS, {}, {}) if each.name == name]
    assert measure.where == where


def test_livelocks_are_measured() -> None:
    """One is too many, unless a threshold says otherwise."""
    assert state_of("livelocks", overview_of()) == (0, "OK")
    findings = [Finding("livelock", "warning", "", "key n of table rows", "", "")]
    overview = overview_of()._replace(findings=findings)
    assert state_of("livelocks", overview) == (1, "WARNING")
    assert state_of("livelocks", overview, {"livelocks": 1}) == (1, "OK")


def test_waiting_producers_are_measured() -> None:
    """Of the topic with the most; how many are too many only a threshold says."""
    overview = overview_of(producers=[queue("a", 1), queue("b", 3)])
    assert state_of("waiting", overview) == (3, "OK")
    assert state_of("waiting", overview, {"waiting": 2}) == (3, "WARNING")


def test_the_oldest_blocked_and_the_stopped_gate_are_measured() -> None:
    """Where the oldest blocked message was not looked for, its blocker's age stands for it; a held gate is well."""
    near = blocked_topic("a", 1, 90_000, 970_000)
    far = blocked_topic("b", 2, 80_000, None)
    assert state_of("blocked-age", overview_of(topics=[near])) == (30_000, "OK")
    assert state_of("blocked-age", overview_of(topics=[near, far])) == (80_000, "WARNING")
    assert state_of("gate", overview_of(writer_gate=HolderProcess(7, "process 7", "held"))) == (0, "OK")
    assert state_of("gate", overview_of(writer_gate=HolderProcess(7, "process 7", "stopped"))) == (
        1,
        "CRITICAL",
    )
    assert worst([judged_as(state) for state in ("WARNING", "CRITICAL", "OK")]) == "CRITICAL"


def test_the_quietest_consumer_is_measured() -> None:
    """The time for which it acknowledges nothing, with its name; beyond a minute by default."""
    assert state_of("quiet", overview_of()) == (0, "OK")
    quiet = QuietConsumer("t", "t", "s", "worker", OWNER, 1, 0, messages=3, quiet_ms=60_001)
    overview = overview_of(quiet_consumers=[quiet, quiet._replace(quiet_ms=5)])
    assert state_of("quiet", overview) == (60_001, "WARNING")
    assert state_of("quiet", overview, {"quiet": 300_000}) == (60_001, "OK")

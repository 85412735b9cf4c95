"""`txnctl check`: thresholds, the formats as their readers parse them, and a store that cannot be opened."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from storage import EARLIEST, IsolationLevel, Store
from storage.reports.reports import Reports
from tests.txnctl.an_hour_ago import an_hour_ago
from txnctl.commands.health.check_formats import nagios
from txnctl.commands.health.check_measures import MEASURES, judge, thresholds, worst
from txnctl.output.prometheus import Metric

Run = Callable[..., Any]

_VALUE = r"-?\d+(?:\.\d+)?"
PERFORMANCE = re.compile(rf"([a-z_]+)=({_VALUE})(s|B)?;({_VALUE}:?)?;({_VALUE}:?)?;({_VALUE})?")
SAMPLE = re.compile(rf"([a-z_]+)(?:\{{(.*)\}})? ({_VALUE})")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


@pytest.fixture
def path(hour_old: Path) -> Path:
    """A store with the topic `orders`: `billing` reads what is committed, `monitor` everything."""
    level = IsolationLevel.READ_UNCOMMITTED
    with Store.open(hour_old, clock=an_hour_ago()) as store:
        store.admin.subscriptions.create_subscription(
            "orders", "monitor", initial_position=EARLIEST, subscription_isolation_level=level
        )
    return hour_old


@pytest.fixture
def stuck(path: Path) -> None:
    """0:1 holds two messages, and three wait behind them for an hour; 0:2 is past its deadline."""
    with Store.open(path, clock=an_hour_ago()) as store:
        producer = store.create_producer("orders")
        producer.send_batch([b"half"] * 2, txn=store.begin_transaction(timeout=7200))
        producer.send_batch([b"whole"] * 3)
        producer.close()
        store.begin_transaction(timeout=60)


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """What Prometheus reads: every metric has HELP and TYPE once, and its samples stand together below them."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    lines = text.splitlines()
    assert text.endswith("\n")
    while lines:
        _, keyword, name, _ = lines.pop(0).split(" ", 3)
        assert (keyword, lines.pop(0)) == ("HELP", f"# TYPE {name} gauge")
        assert name not in found
        found[name] = []
        while lines and not lines[0].startswith("#"):
            match = SAMPLE.fullmatch(lines.pop(0))
            assert match is not None
            assert match[1] == name
            labels = LABEL.findall(match[2] or "")
            assert ",".join([f'{label}="{value}"' for label, value in labels]) == (match[2] or "")
            found[name].append((dict(labels), float(match[3])))
        assert found[name]
    return found


def performance(line: str) -> dict[str, tuple[str, ...]]:
    """The performance data of a plugin's first line: value, unit, warn, critical by name."""
    text, bar, data = line.partition(" | ")
    assert bar
    assert "|" not in text
    matches = [PERFORMANCE.fullmatch(word) for word in data.split(" ")]
    assert all(matches)
    return {match[1]: match.groups()[1:5] for match in matches if match is not None}


@pytest.mark.usefixtures("path")
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


@pytest.mark.usefixtures("stuck")
def test_nagios_is_told_the_worst_and_why(run: Run) -> None:
    """The worst state is the exit code; below it one line for each measure that is beyond its threshold."""
    outcome = run("check")
    assert outcome.status == 2
    first, *others = outcome.out.splitlines()
    assert first.startswith("TXNCTL CRITICAL - blocked-age 1h00m, late 1 | ")
    assert performance(first)["late"] == ("1", None, "0", None)
    assert others[0].startswith("CRITICAL: blocked-age 1h00m > 10m00s (orders behind 0:1): ")
    assert others[1].startswith("WARNING: late 1 > 0 (first 0:2): ")
    assert run("check", "--critical", "blocked-age=2h").status == 1
    words = ("--warn", "blocked-age=2h", "--critical", "blocked-age=3h", "--warn", "late=1")
    assert run("check", *words).status == 0
    assert run("check", *words, "--warn", "lag=4").status == 1


@pytest.mark.usefixtures("stuck")
def test_prometheus_is_told_every_topic_subscription_and_table(run: Run) -> None:
    """With the isolation level as a label; the numbers are those of `subscriptions lag`."""
    outcome = run("check", "--format", "prometheus")
    assert outcome.status == 0
    found = samples(outcome.out)
    assert found["txnctl_late_transactions"] == [({}, 1)]
    topic = {"topic": "persistent://public/default/orders"}
    assert found["txnctl_topic_blocked_messages"] == [(topic, 3)]
    for name in ("visible", "blocked", "uncommitted"):
        told = {
            labels["subscription"]: value for labels, value in found[f"txnctl_subscription_{name}_messages"]
        }
        lag = run("subscriptions", "lag", "orders", "-o", "json").json
        assert told == {row["subscription"]: row[name] for row in lag}
    levels = [each["subscriptionIsolationLevel"] for each, _ in found["txnctl_subscription_blocked_messages"]]
    assert levels == ["READ_COMMITTED", "READ_UNCOMMITTED"]
    assert found["txnctl_table_intents"] == [({"table": "balances"}, 0)]
    states = {labels["measure"]: value for labels, value in found["txnctl_check_state"]}
    assert (states["blocked-age"], states["late"], states["lag"]) == (2, 1, 0)
    assert run("check", "--format", "prometheus", "--exit-code").status == 8


def test_labels_and_help_are_escaped() -> None:
    """Whatever a name holds, it comes back as it was; a metric without samples is left out."""
    hostile = 'a"b\\c\nd} 1\n# TYPE x counter'
    text = "".join(
        [f"{line}\n" for line in Metric("txnctl_x", "One\nline.", [({"name": hostile}, 2)]).lines()]
    )
    ((labels, value),) = samples(text)["txnctl_x"]
    assert (re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), labels["name"]), value) == (
        hostile,
        2,
    )
    assert list(Metric("txnctl_x", "None.", [({}, None)]).lines()) == []


def test_a_store_that_cannot_be_opened(run: Run, path: Path, tmp_path: Path) -> None:
    """Not there: UNKNOWN; broken: CRITICAL. Prometheus reads that it is not up; nothing is created."""
    missing = ("--store", str(tmp_path / "missing"))
    outcome = run("check", *missing)
    assert outcome.status == 3
    assert outcome.out.startswith("TXNCTL UNKNOWN - there is no store at ")
    assert samples(run("check", "--format", "prometheus", *missing).out) == {"txnctl_up": [({}, 0)]}
    row = run("check", "--format", "json", *missing).json
    assert (row["state"], row["error"]["code"], row["measures"]) == ("UNKNOWN", "store-not-found", [])
    assert not (tmp_path / "missing").exists()
    os.truncate(path / "data.mdb", 100)
    assert run("check").status == 2
    assert run("check").out.startswith("TXNCTL CRITICAL - ")
    assert run("check", "--format", "json", "--exit-code").status == 8


@pytest.mark.usefixtures("path")
@pytest.mark.usefixtures("path")
def test_a_bug_is_unknown_and_no_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit code, 1, would say WARNING to Nagios; the others are told as every command tells it."""

    def fail(_: Reports) -> NoReturn:
        raise KeyError("what nobody has thought of")

    monkeypatch.setattr(Reports, "store_overview", fail)
    outcome = run("check", "--debug")
    assert outcome.status == 3
    first, *_ = outcome.out.splitlines()
    assert first.startswith("TXNCTL UNKNOWN - unexpected failure: KeyError: 'what nobody has thought of'")
    assert "Traceback" in outcome.err
    assert "This is a bug" in outcome.err
    for format in ("prometheus", "json"):
        assert (run("check", "--format", format).status, run("check", "--format", format).out) == (1, "")


@pytest.mark.parametrize(
    "typed", ["late", "late=", "late=-1", "late=x", "speed=3", "lag=1m", "space=1m2", "blocked-age=5"]
)
def test_a_threshold_that_cannot_be_read(run: Run, typed: str) -> None:
    """For Nagios it is UNKNOWN, as 2 would say CRITICAL; elsewhere bad input."""
    outcome = run("check", "--warn", typed)
    assert outcome.status == 3
    assert outcome.out.startswith("TXNCTL UNKNOWN - ")
    assert run("check", "--format", "json", "--critical", typed).status == 2


def facts(**changed: Any) -> dict[str, Any]:
    """The facts that are measured."""
    return {
        "asOfMs": 1_000_000, "writerGate": None, "topics": [], "subscriptions": [], "transactions": {"late": []},
        "producers": [], "findings": [],
        "store": {"diskFreeBytes": 1 << 40}, "readers": {"inUse": 1}, **changed,
    }  # fmt: skip


def state_of(name: str, row: dict[str, Any], warn: dict[str, int] | None = None) -> tuple[int, str]:
    """Value and state of one measure."""
    (found,) = [each for each in judge(row, warn or {}, {}) if each["name"] == name]
    return found["value"], found["state"]


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


def test_performance_data_has_plain_numbers() -> None:
    """Of any size, in seconds to the millisecond; the text before them has no bar."""
    for age_ms, expected in ((10, "0.01"), (60_000, "60"), (1_036_800_001, "1036800.001")):
        topic = {"name": "a|b", "blockedBy": "0:1", "blockedByAgeMs": age_ms, "oldestBlockedMs": None}
        first, *others = nagios(judge(facts(topics=[topic]), {}, {"blocked-age": 0}))
        assert performance(first)["blocked_age"][0] == expected
        assert "(a/b behind 0:1)" in others[0]


def test_the_oldest_blocked_and_the_stopped_gate_are_measured() -> None:
    """Where the oldest blocked message was not looked for, its blocker's age stands for it; a held gate is well."""
    near = {"name": "a", "blockedBy": "0:1", "blockedByAgeMs": 90_000, "oldestBlockedMs": 970_000}
    far = {"name": "b", "blockedBy": "0:2", "blockedByAgeMs": 80_000, "oldestBlockedMs": None}
    assert state_of("blocked-age", facts(topics=[near])) == (30_000, "OK")
    assert state_of("blocked-age", facts(topics=[near, far])) == (80_000, "WARNING")
    assert state_of("gate", facts(writerGate={"state": "held", "pid": 7})) == (0, "OK")
    assert state_of("gate", facts(writerGate={"state": "stopped", "pid": 7})) == (1, "CRITICAL")
    assert worst([{"state": "WARNING"}, {"state": "CRITICAL"}, {"state": "OK"}]) == "CRITICAL"

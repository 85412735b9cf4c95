"""`txnctl check`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NoReturn

import pytest

from storage import Store
from storage.reports.reports import Reports
from tests.txnctl.an_hour_ago import an_hour_ago
from tests.txnctl.commands.health.check_steps import Run, performance, samples
from txnctl.output.prometheus import Metric


@pytest.fixture
def stuck(monitored: Path) -> None:
    """0:1 holds two messages, and three wait behind them for an hour; 0:2 is past its deadline."""
    with Store.open(monitored, clock=an_hour_ago()) as store:
        producer = store.create_producer("orders")
        producer.send_batch([b"half"] * 2, txn=store.begin_transaction(timeout=7200))
        producer.send_batch([b"whole"] * 3)
        producer.close()
        store.begin_transaction(timeout=60)


@pytest.mark.usefixtures("stuck")
def test_nagios_is_told_the_worst_and_why(run: Run) -> None:
    """The worst state is the exit code; below it one line for each measure that is beyond its threshold."""
    outcome = run("check")
    assert outcome.status == 2
    first, *others = outcome.out.splitlines()
    assert first.startswith("TXNCTL CRITICAL - blocked-age 1h00m, late 1 | ")
    assert performance(first)["late"] == ("1", None, "0", None)
    assert others[0].startswith("CRITICAL: blocked-age 1h00m > 10m00s (orders behind 0:1): ")
    assert others[1].startswith("WARNING: late 1 > 0 (0:2): ")
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


def test_a_store_that_cannot_be_opened(run: Run, monitored: Path, tmp_path: Path) -> None:
    """Not there: UNKNOWN; broken: CRITICAL. Prometheus reads that it is not up; nothing is created."""
    missing = ("--store", str(tmp_path / "missing"))
    outcome = run("check", *missing)
    assert outcome.status == 3
    assert outcome.out.startswith("TXNCTL UNKNOWN - there is no store at ")
    assert samples(run("check", "--format", "prometheus", *missing).out) == {"txnctl_up": [({}, 0)]}
    row = run("check", "--format", "json", *missing).json
    assert (row["state"], row["error"]["code"], row["measures"]) == ("UNKNOWN", "store-not-found", [])
    assert not (tmp_path / "missing").exists()
    os.truncate(monitored / "data.mdb", 100)
    assert run("check").status == 2
    assert run("check").out.startswith("TXNCTL CRITICAL - ")
    assert run("check", "--format", "json", "--exit-code").status == 8


@pytest.mark.usefixtures("monitored")
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


@pytest.mark.parametrize("output", ["json", "table", "xml"])
def test_no_variable_changes_what_a_plugin_is_told(
    run: Run, monitored: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """Neither output nor exit code: those of JSON would hide a CRITICAL."""
    before = run("check", "--critical", "blocked-age=0")
    monkeypatch.setenv("TXNCTL_OUTPUT", output)
    after = run("check", "--critical", "blocked-age=0")
    assert before.status == after.status
    assert after.out.partition(" ")[0] == "TXNCTL"
    assert run("check", "-o", "json").json["state"] in ("OK", "WARNING", "CRITICAL")
    schema = run("check", "--json-schema").json["$defs"]
    assert set(run("check", "--format", "json").json) == set(schema["row"]["properties"])


def test_a_file_without_a_format_ends_in_the_line_with_one(run: Run, monitored: Path) -> None:
    """The default is a plugin of Nagios, which prints; the file is that of the refused line."""
    outcome = run("check", "--output", str(monitored.parent / "x.prom"))
    assert outcome.status == 2
    assert outcome.err.endswith(f"txnctl check --format prometheus --output {monitored.parent / 'x.prom'}\n")

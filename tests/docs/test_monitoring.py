"""The rules and the dashboard of examples/monitoring: over metrics that exist, and rules that Prometheus accepts."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from storage import Store
from txnctl.cli.main import root
from txnctl.commands.health.check_measures import EVERY, judge
from txnctl.commands.health.check_metrics import prometheus

FOLDER = Path(__file__).parents[2] / "examples" / "monitoring"
RULES, DASHBOARD = FOLDER / "rules.yml", FOLDER / "dashboard.json"
METRIC = re.compile(r"\btxnctl_[a-z_]+")


@cache
def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def panels() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return listed


@pytest.fixture
def printed(tmp_path: Path) -> str:
    """The metrics of a store that has one of everything."""
    path = tmp_path / "store"
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("orders")
        store.subscribe("orders", "billing").close()
        store.create_table("accounts")
        overview, activity = store.reports.store_overview(), store.reports.store_activity()
    lines = prometheus(overview, activity, judge(overview, activity.ends, {}, {}))
    return "".join([f"{line}\n" for line in lines])


def test_rules_and_dashboard_are_over_metrics_that_exist(printed: str) -> None:
    """Every name, to the suffix of a histogram."""
    names = {line.partition(" ")[0].partition("{")[0] for line in printed.splitlines() if line[0] != "#"}
    for what, expressions in (
        ("rules", [alert["expr"] for alert in alerts()]),
        ("dashboard", [target["expr"] for panel in panels() for target in panel["targets"]]),
    ):
        used = set(METRIC.findall(" ".join(expressions)))
        assert used
        assert used - names == set(), what


def test_each_measure_that_is_a_warning_alone_has_an_alert() -> None:
    """CRITICAL has an alert for all of them."""
    expressions = " ".join([alert["expr"] for alert in alerts()])
    warned = re.findall(r"[a-z-]+", expressions.partition('measure=~"')[2].partition('"')[0])
    alone = {measure.name for measure in EVERY if measure.warn is not None and measure.critical is None}
    assert alone - set(warned) == {"late"}
    assert "txnctl_late_transactions > 0" in expressions


def runbook() -> Iterator[str]:
    """The commands of the alerts."""
    for alert in alerts():
        yield from alert["annotations"]["runbook"].split("; ")


@pytest.mark.parametrize("command", sorted(set(runbook())))
def test_command_of_a_runbook_exists(command: str) -> None:
    """With its options; a word in capitals stands for a name."""
    program, *words = command.split()
    assert program == "txnctl"
    found: click.Command = root()
    context = click.Context(found)
    while isinstance(found, click.Group):
        child = found.get_command(context, words.pop(0))
        assert child is not None, command
        found = child
    options = {name for parameter in found.params for name in parameter.opts}
    for word in words:
        assert word.isupper() or word in options, word


def test_dashboard_asks_for_its_data_source() -> None:
    """No panel names the data source of the machine on which it was made; none overlaps a second one."""
    variables = {each["name"]: each for each in json.loads(DASHBOARD.read_text())["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    cells: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        taken = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells
        assert place["x"] + place["w"] <= 24
        cells |= taken
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"


@pytest.mark.needs_program("promtool")
def test_prometheus_accepts_the_metrics(printed: str) -> None:
    """Only the labels of topics and subscriptions are not in its style: they are Pulsar's names."""
    checked = subprocess.run(
        ["promtool", "check", "metrics"], check=False, input=printed, capture_output=True, text=True
    )
    complaints = [line for line in checked.stderr.splitlines() if "snake_case" not in line]
    assert complaints == []


CASES = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: txnctl_up, values: "1 1 0 0 0 0 0 0 0 0"}}
      - {{series: txnctl_check_timestamp_seconds, values: "0+60x4 240x20"}}
      - {{series: 'txnctl_topic_oldest_blocked_age_seconds{{topic="orders"}}', values: "0+120x20"}}
      - {{series: 'txnctl_check_state{{measure="quiet"}}', values: "0 1x20"}}
      - {{series: 'txnctl_aborts_total{{reason="asked"}}', values: "0+30x40"}}
      - {{series: 'txnctl_aborts_total{{reason="fenced"}}', values: "0+10x40"}}
      - {{series: txnctl_commits_total, values: "0+40x40"}}
      - {{series: 'txnctl_flush_duration_seconds_bucket{{le="0.5"}}', values: "0+50x40"}}
      - {{series: 'txnctl_flush_duration_seconds_bucket{{le="1.0"}}', values: "0+100x40"}}
      - {{series: 'txnctl_flush_duration_seconds_bucket{{le="+Inf"}}', values: "0+100x40"}}
    promql_expr_test:
      - {{expr: "count(ALERTS{{alertstate='firing', alertname='TxnctlStoreDown'}})", eval_time: 5m, exp_samples: [{{value: 1}}]}}
      - {{expr: "count(ALERTS{{alertstate='firing', alertname='TxnctlBlocked'}})", eval_time: 9m, exp_samples: [{{value: 1}}]}}
      - {{expr: "count(ALERTS{{alertstate='firing', alertname='TxnctlCheckStale'}})", eval_time: 12m, exp_samples: [{{value: 1}}]}}
      - {{expr: "count(ALERTS{{alertstate='firing', alertname='TxnctlAbortRate'}})", eval_time: 15m, exp_samples: [{{value: 1}}]}}
      - {{expr: "count(ALERTS{{alertstate='firing', alertname='TxnctlSlowCommits'}})", eval_time: 25m, exp_samples: [{{value: 1}}]}}
      - {{expr: "count(ALERTS{{alertstate='firing', alertname='TxnctlCheckWarning'}})", eval_time: 5m, exp_samples: [{{value: 1}}]}}
      - {{expr: "count(ALERTS{{alertname=~'TxnctlTakeovers|TxnctlReaders|TxnctlCheckAbsent'}})", eval_time: 20m, exp_samples: []}}
  - interval: 1m
    promql_expr_test:
      - {{expr: "count(ALERTS{{alertstate='firing', alertname='TxnctlCheckAbsent'}})", eval_time: 11m, exp_samples: [{{value: 1}}]}}
"""
"""Alerts that fire, and some that have no reason to."""


@pytest.mark.needs_program("promtool")
def test_rules_are_valid_and_fire(tmp_path: Path) -> None:
    """As Prometheus reads and evaluates them."""
    cases = tmp_path / "cases.yml"
    cases.write_text(CASES.format(rules=RULES))
    for arguments in (["check", "rules", str(RULES)], ["test", "rules", str(cases)]):
        checked = subprocess.run(["promtool", *arguments], check=False, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr

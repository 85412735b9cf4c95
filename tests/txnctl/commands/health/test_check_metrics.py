"""The metrics of check: `txnctl/commands/health/check_metrics.py`."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from storage import Store
from storage.values.txn_state import AbortReason
from tests.txnctl.an_hour_ago import an_hour_ago
from tests.txnctl.commands.health.check_steps import NO_ENDS, Run, overview_of, samples
from txnctl.commands.health.check_measures import judge


def test_counters_are_told_beside_gauges(run: Run, monitored: Path) -> None:
    """Every reason of an abort has a sample, so that its first one is an increase."""
    with Store.open(monitored) as store, store.create_producer("orders") as producer:
        before = samples(run("check", "--format", "prometheus").out)
        producer.send_batch([b"a", b"b"])
        txn = store.begin_transaction()
        producer.send(b"c", txn=txn)
        store.admin.transactions.abort_transaction(txn)
        after = samples(run("check", "--format", "prometheus").out)
    for name, number in (("messages", 3), ("commits", 0), ("flushes", 4), ("takeovers", 0)):
        ((_, old),), ((_, new),) = before[f"txnctl_{name}_total"], after[f"txnctl_{name}_total"]
        assert new - old == number, name
    aborts = {labels["reason"]: value for labels, value in after["txnctl_aborts_total"]}
    assert set(aborts) == {reason.value for reason in AbortReason}
    assert (
        aborts["asked"]
        - {labels["reason"]: value for labels, value in before["txnctl_aborts_total"]}["asked"]
        == 1
    )
    buckets = [(labels["le"], value) for labels, value in after["txnctl_flush_duration_seconds_bucket"]]
    assert [value for _, value in buckets] == sorted(value for _, value in buckets)
    assert buckets[-1] == ("+Inf", after["txnctl_flush_duration_seconds_count"][0][1])
    assert after["txnctl_flush_duration_seconds_sum"][0][1] > 0
    assert after["txnctl_counters_start_timestamp_seconds"][0][1] > 1e9


def test_oldest_visible_and_blocked_have_an_age(run: Run, monitored: Path) -> None:
    """0 where there is none."""
    ages = samples(run("check", "--format", "prometheus").out)
    assert [age for _, age in ages["txnctl_subscription_oldest_visible_age_seconds"]] == [0, 0]
    assert [age for _, age in ages["txnctl_topic_oldest_blocked_age_seconds"]] == [0]
    with Store.open(monitored, clock=an_hour_ago()) as store:
        producer = store.create_producer("orders")
        producer.send(b"visible")
        producer.send(b"half", txn=store.begin_transaction(timeout=7200))
        producer.send(b"blocked")
        producer.close()
    ages = samples(run("check", "--format", "prometheus").out)
    for name in ("subscription_oldest_visible", "topic_oldest_blocked"):
        assert all(3500 < age < 3700 for _, age in ages[f"txnctl_{name}_age_seconds"]), name


def test_abort_rate_needs_some_ends() -> None:
    """One of one is no rate."""
    for ends, rate in (
        (NO_ENDS, 0),
        (NO_ENDS._replace(aborted=9), 0),
        (NO_ENDS._replace(aborted=4, committed=8), 33),
    ):
        (judged,) = [
            each for each in judge(overview_of(), ends, {"abort-rate": 32}, {}) if each.name == "abort-rate"
        ]
        assert (judged.value, judged.state) == (rate, "WARNING" if rate else "OK")
    conflicts = NO_ENDS._replace(conflicts=3, contended="a")
    (judged,) = [
        each for each in judge(overview_of(), conflicts, {}, {"conflicts": 2}) if each.name == "conflicts"
    ]
    assert (judged.value, judged.state, judged.where) == (3, "CRITICAL", "most of table a")


class TestOutput:
    """`--output FILE`."""

    def test_file_is_replaced_whole(self, run: Run, monitored: Path, tmp_path: Path) -> None:
        """Readable by the collector under any umask; nothing else stays in the directory."""
        file = tmp_path / "collected" / "txnctl.prom"
        file.parent.mkdir()
        file.write_text("old")
        inode, before = file.stat().st_ino, os.umask(0o077)
        try:
            outcome = run("check", "--format", "prometheus", "--output", str(file))
        finally:
            os.umask(before)
        assert (outcome.status, outcome.out) == (0, "")
        assert samples(file.read_text())["txnctl_up"] == [({}, 1)]
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
        assert file.stat().st_ino != inode
        assert os.listdir(file.parent) == ["txnctl.prom"]
        inside = run("check", "--format", "prometheus", "--output", str(monitored / "x.prom"))
        assert inside.status == 2

    def test_store_that_is_missing_is_down_in_the_file(self, run: Run, tmp_path: Path) -> None:
        """An old file must not go on saying that it is up."""
        file = tmp_path / "txnctl.prom"
        missing = ("--store", str(tmp_path / "missing"), "--output", str(file))
        assert run("check", "--format", "prometheus", *missing).status == 0
        assert samples(file.read_text()) == {"txnctl_up": [({}, 0)]}
        assert run("check", "--format", "prometheus", "--exit-code", *missing).status == 8

    @pytest.mark.usefixtures("monitored")
    def test_plugin_of_nagios_writes_no_file(self, run: Run, tmp_path: Path) -> None:
        """Its line goes to the caller."""
        outcome = run("check", "--output", str(tmp_path / "x"))
        assert outcome.status == 2
        assert "--format prometheus" in outcome.err
        assert not (tmp_path / "x").exists()

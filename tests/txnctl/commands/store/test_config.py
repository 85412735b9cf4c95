"""`txnctl store config`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from txnctl.commands.store import config
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sequence-retention", "0"), "sequence ids are kept for 1m to 36600d, or unset, not 0"),
        (("table-retention", "5ms"), "table versions are kept for 1s to 3660d, not 5ms"),
        (("ttl", "5ms"), "a time to live is 1s to 36600d, or unset, not 5ms"),
    ],
)
def test_bounds_are_durations(run: Any, words: tuple[str, ...], said: str) -> None:
    """As they are typed, in place of milliseconds."""
    outcome = run("store", "config", *words)
    assert outcome.status == 2
    assert said in outcome.err


class TestUpkeep:
    """`store compact`, `gc`, `config`."""

    def test_the_reap_policy_is_a_setting(self, run: Any, path: Path) -> None:
        """Shown, tried in a dry run, set with a reason."""
        rows = run("store", "config", "-o", "json").json
        assert [(row["name"], row["value"]) for row in rows] == [
            ("dead-letter-retention-time", "unset"),
            ("dead-letter-retention-size", "unset"),
            ("reap-policy", "all"),
            ("reserve", "1M"),
            ("retention-time", "unset"),
            ("retention-size", "unset"),
            ("retention-hard", "off"),
            ("ttl", "unset"),
            ("expire-after", "unset"),
            ("sequence-retention", "7d"),
            ("table-retention", "1h"),
        ]
        assert not undeclared(rows[0], config.SETTINGS)
        before = (path / "data.mdb").read_bytes()
        dry = run("store", "config", "reap-policy", "manual", "--dry-run", "-o", "json").json
        assert (dry["before"], dry["value"], dry["dryRun"]) == ("all", "manual", True)
        assert run("store", "config", "reap-policy").out == "all\n"
        assert (path / "data.mdb").read_bytes() == before
        assert run("store", "config", "reap-policy", "manual", "--reason", "quiet").status == 0
        assert run("store", "config", "reap-policy").out == "manual\n"
        with Store.open(path) as store:
            assert row_json(store.reports.list_audit_records())[0]["reason"] == "quiet"

    def test_the_reserve_is_a_setting(self, run: Any, path: Path) -> None:
        """A size, shown as it can be typed; the file has it at once, and a dry run and a refusal change nothing."""
        dry = run("store", "config", "reserve", "0", "--dry-run", "-o", "json").json
        assert (dry["before"], dry["value"], dry["dryRun"]) == ("1M", "0", True)
        for value in ("4K", "2G", "much"):
            assert run("store", "config", "reserve", value).status == 2
        assert (path / "reserve").stat().st_size == 1 << 20
        assert run("store", "config", "reserve", "3M").status == 0
        assert run("store", "config", "reserve").out == "3M\n"
        assert (path / "reserve").stat().st_size == 3 << 20

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("dead-letter-retention-time", ("14d", "0", "unset")),
            ("dead-letter-retention-size", ("1G", "0", "unset")),
            ("sequence-retention", ("1h", "unset", "30d")),
        ],
    )
    def test_further_retentions_are_settings(self, run: Any, name: str, values: tuple[str, ...]) -> None:
        """Shown as they can be typed; tried in a dry run; and nothing else is accepted."""
        before = run("store", "config", name).out.strip()
        dry = run("store", "config", name, values[0], "--dry-run", "-o", "json").json
        assert (dry["before"], dry["value"], dry["dryRun"]) == (before, values[0], True)
        for value in values:
            assert run("store", "config", name, value, "--reason", "bounds").status == 0
            assert run("store", "config", name).out == f"{value}\n"
        assert run("store", "config", name, "much").status == 2

    def test_the_table_retention_is_a_setting(self, run: Any, path: Path) -> None:
        """A duration, shown as it can be typed; tried in a dry run, set with a reason, refused out of its bounds."""
        before = (path / "data.mdb").read_bytes()
        dry = run("store", "config", "table-retention", "5400s", "--dry-run", "-o", "json").json
        assert (dry["before"], dry["value"], dry["dryRun"]) == ("1h", "90m", True)
        for value in ("999ms", "4000d", "forever", "-1h", ""):
            assert run("store", "config", "table-retention", "--", value).status == 2
        assert (path / "data.mdb").read_bytes() == before
        for value in ("1s", "90m", "1d", "1500ms"):
            assert run("store", "config", "table-retention", value, "--reason", "audit").status == 0
            assert run("store", "config", "table-retention").out == f"{value}\n"
        with Store.open(path) as store:
            assert (
                row_json(store.reports.list_audit_records())[0]["action"],
                row_json(store.reports.list_audit_records())[0]["reason"],
            ) == ("store config", "audit")

    @pytest.mark.parametrize("words", [("nothing",), ("nothing", "1"), ("reap-policy", "sometimes")])
    def test_an_unknown_setting_is_bad_input(self, run: Any, words: tuple[str, ...]) -> None:
        """And the hint says what there is."""
        outcome = run("store", "config", *words, "-o", "json")
        assert outcome.status == 2
        assert "reap-policy" in outcome.error["hint"] or "manual" in outcome.error["hint"]

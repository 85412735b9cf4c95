"""`txnctl config show`: where each setting comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def settings(outcome: Any) -> dict[str, tuple[str | None, str]]:
    """Value and source by name."""
    return {row["name"]: (row["value"], row["source"]) for row in outcome.json}


def test_an_option_counts_before_the_variable_and_the_variable_before_the_default(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For the store as for everything; the store need not be there."""
    before = settings(run("config", "show", "-o", "json"))
    monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "of the variable"))
    of_variable = settings(run("config", "show", "-o", "json"))
    of_option = settings(run("config", "show", "--store", str(tmp_path / "of the option"), "-o", "json"))
    assert of_variable["store"][0] == str(tmp_path / "of the variable")
    assert of_option["store"][0] == str(tmp_path / "of the option")
    assert len({before["store"][1], of_variable["store"][1], of_option["store"][1]}) == 3
    assert not (tmp_path / "of the option").exists()


def test_every_setting_names_its_variable(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And setting that variable is seen."""
    rows = run("config", "show", "-o", "json").json
    assert all(row["variable"].startswith(("TXNCTL_", "NO_COLOR")) for row in rows)
    monkeypatch.setenv("TXNCTL_LOCK_TIMEOUT", "30s")
    changed = settings(run("config", "show", "-o", "json"))
    (name,) = [row["name"] for row in rows if row["variable"] == "TXNCTL_LOCK_TIMEOUT"]
    assert changed[name] != settings_of(rows)[name]


def settings_of(rows: list[dict[str, Any]]) -> dict[str, tuple[str | None, str]]:
    """As `settings`, of rows."""
    return {row["name"]: (row["value"], row["source"]) for row in rows}

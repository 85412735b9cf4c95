"""Fixtures of the tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store
from txnctl.spark.runtime import java


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a topic and a table, which commands find by themselves."""
    place = str(tmp_path / "store")
    Store.create(place)
    with Store.open(place) as store:
        store.create_topic("requests")
        store.create_table("accounts")
    monkeypatch.setenv("TXNCTL_STORE", place)
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    monkeypatch.chdir(tmp_path)
    return place


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has none."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.setattr(java, "_PATTERNS", ())

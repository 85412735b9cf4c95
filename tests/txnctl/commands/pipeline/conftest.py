"""Fixtures of the tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from txnctl.spark.runtime import java


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has none."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.setattr(java, "_PATTERNS", ())

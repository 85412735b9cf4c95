"""`txnctl store gc` and what writes by Spark have staged in the store's directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.process.clock import SYSTEM_CLOCK

DAY_S = 86_400


@pytest.fixture
def staging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a store has what tasks stage."""
    Store.create(tmp_path / "store")
    monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "store"))
    return tmp_path / "store" / "staging"


def staged(staging: Path, name: str, age_s: float) -> Path:
    """A write whose last file is so old."""
    write = staging / f"write-{name * 16}"
    write.mkdir(parents=True)
    file = write / f"0-0-{name * 16}.batches"
    file.write_bytes(b"rows")
    then = SYSTEM_CLOCK.wall_ms() / 1000 - age_s
    for each in (file, write):
        os.utime(each, (then, then))
    return write


def test_writes_that_ended_without_a_word_go_after_a_day(run: Any, staging: Path) -> None:
    """A dry run tells of them; what may still be adopted stays."""
    old, young = staged(staging, "a", DAY_S + 60), staged(staging, "b", DAY_S - 60)
    assert run("store", "gc", "--dry-run", "-o", "json").json["stagedWrites"] == 1
    assert old.exists()
    assert "Remove what 1 write by Spark had staged." in run("store", "gc", "--dry-run").out
    assert "Removed what 1 write by Spark had staged." in run("store", "gc").out
    assert (old.exists(), young.exists()) == (False, True)
    assert run("store", "gc", "-o", "json").json["stagedWrites"] == 0


def test_a_store_that_spark_never_wrote_has_nothing_staged(run: Any, staging: Path) -> None:
    """And nothing is made there."""
    assert run("store", "gc", "-o", "json").json["stagedWrites"] == 0
    assert not staging.exists()

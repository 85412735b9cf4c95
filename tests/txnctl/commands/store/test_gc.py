"""`txnctl store gc`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from storage import Store, faults
from storage.limits import FINALIZE_INLINE_MAX
from storage.process.clock import SYSTEM_CLOCK
from txnctl.commands.store import gc
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


def interrupt() -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


class TestUpkeep:
    """`store compact`, `gc`, `config`."""

    def test_a_dry_run_of_gc_says_what_is_left(self, run: Any, path: Path) -> None:
        """Of a topic whose deletion was killed; the real one removes it and leaves a record."""
        with Store.open(path) as store:
            store.create_topic("large")
            store.create_producer("large", connected=False).send_batch([b"x"] * 5)
            faults.arm("topic.between_purge_steps", interrupt)
            with pytest.raises(KeyboardInterrupt):
                store.admin.topics.delete_topic("large")
            faults.disarm()
        before = (path / "data.mdb").read_bytes()
        row = run("store", "gc", "--dry-run", "-o", "json").json
        assert not undeclared(row, gc.COLLECTED)
        assert (row["deletedTopics"], row["purgeSteps"], row["dryRun"]) == (1, None, True)
        assert "remove what 1 deleted topic left.\n" in run("store", "gc", "--dry-run").out
        assert (path / "data.mdb").read_bytes() == before
        row = run("store", "gc", "--reason", "killed", "-o", "json").json
        assert (row["deletedTopics"], row["dryRun"]) == (1, False) and row["purgeSteps"] > 0
        assert run("store", "gc", "-o", "json").json["deletedTopics"] == 0
        changes = [(each["action"], each["reason"]) for each in run("audit", "list", "-o", "json").json]
        assert changes == [("store gc", "killed"), ("topics delete", None)]

    def test_a_dry_run_of_gc_has_the_numbers_of_the_real_one(self, run: Any, path: Path) -> None:
        """Of tables too: what was deleted, and write intents that wait; in sentences as in JSON."""
        with Store.open(path) as store:
            for name in ("kept", "gone"):
                store.create_table(name)
                store.table(name).put(b"k", b"v")
            txn = store.begin_transaction()
            store.table("kept").import_rows(
                ((b"%d" % n, b"v") for n in range(FINALIZE_INLINE_MAX + 1)), txn=txn
            )
            store.commit_transaction(txn)
            faults.arm("table.between_purge_steps", interrupt)
            with pytest.raises(KeyboardInterrupt):
                store.admin.tables.delete_table("gone")
            faults.disarm()
        dry = run("store", "gc", "--dry-run", "-o", "json").json
        text = run("store", "gc", "--dry-run").out
        done = run("store", "gc", "-o", "json").json
        assert (dry["intentsFinalized"], dry["deletedTables"], dry["versionsRemoved"]) == (65, 1, 0)
        moment = ("tableWindowStart", "purgeSteps", "dryRun")
        assert {k: v for k, v in dry.items() if k not in moment} == {
            k: v for k, v in done.items() if k not in moment
        }
        assert "remove what 0 deleted topics and 1 deleted table left" in text
        assert "Would finalise 65 write intents; remove 0 old versions and 0 deleted keys" in text
        assert run("store", "gc", "--dry-run", "-o", "json").json["deletedTables"] == 0

    def test_gc_may_always_run(self, run: Any) -> None:
        """It says what it freed."""
        row = run("store", "gc", "-o", "json").json
        assert not undeclared(row, gc.COLLECTED)
        assert row["purgeSteps"] == 0
        assert run("store", "gc").out.startswith("Freed ")


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

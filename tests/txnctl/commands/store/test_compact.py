"""`txnctl store compact`."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.commands.store import compact
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestUpkeep:
    """`store compact`, `gc`, `config`."""

    def test_compacting_makes_the_file_smaller_and_loses_nothing(self, run: Any, path: Path) -> None:
        """What a deleted topic left free goes back to the disk."""
        with Store.open(path) as store:
            store.create_topic("large")
            with store.create_producer("large") as producer:
                producer.send_batch([b"x" * 100_000] * 20)
            store.admin.topics.delete_topic("large")
        row = run("store", "compact", "-o", "json").json
        assert not undeclared(row, compact.COMPACTED)
        assert row["bytesAfter"] < row["bytesBefore"] - 1_000_000
        assert row["bytesAfter"] == (path / "data.mdb").stat().st_size
        with Store.open(path) as store:
            assert len(list(store.reader("orders"))) == 10

    def test_compacting_needs_the_store_alone(
        self, run: Any, path: Path, other: subprocess.Popen[bytes]
    ) -> None:
        """Exit 5 names who has it."""
        before = (path / "data.mdb").stat().st_ino
        outcome = run("store", "compact", "-o", "json")
        assert outcome.status == 5
        assert outcome.error["code"] == "store-in-use"
        assert str(other.pid) in outcome.error["message"]
        assert outcome.error["hint"].startswith("Close it there, or ")
        assert (path / "data.mdb").stat().st_ino == before

    def test_a_stopped_process_is_to_be_continued_first(
        self, run: Any, path: Path, other: subprocess.Popen[bytes]
    ) -> None:
        """It closes nothing as long as it is stopped."""
        other.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, other.pid, os.WSTOPPED)
        hint = run("store", "compact", "-o", "json").error["hint"]
        assert hint.startswith(
            f"Continue the stopped process with `kill -CONT {other.pid}`, and close it there, "
        )

    def test_a_dry_run_of_compacting_tells_the_size(self, run: Any, path: Path) -> None:
        """The same as the real one gets, which leaves a record with its reason; the file stays as it was."""
        with Store.open(path) as store:
            store.create_topic("large")
            store.create_producer("large", connected=False).send_batch([b"x" * 100_000] * 20)
            store.admin.topics.delete_topic("large")
        before = (path / "data.mdb").read_bytes()
        dry = run("store", "compact", "--dry-run", "-o", "json").json
        assert not undeclared(dry, compact.COMPACTED)
        assert run("store", "compact", "--dry-run").out.startswith(
            "DRY RUN: nothing was changed.\n\nWould compact "
        )
        assert (path / "data.mdb").read_bytes() == before
        assert sorted(each.name for each in path.iterdir()) == [
            "data.mdb",
            "lock.mdb",
            "reserve",
            "store.lock",
            "store.metrics",
        ]
        row = run("store", "compact", "--reason", "full disk", "-o", "json").json
        change = run(
            "audit", "show", run("audit", "list", "-o", "name").out.splitlines()[0], "-o", "json"
        ).json
        assert (change["action"], change["reason"]) == ("store compact", "full disk")
        assert dry == row | {"dryRun": True}
        assert change["effects"]["bytesCopied"] <= row["bytesAfter"] < row["bytesBefore"]

    @pytest.mark.parametrize("words", [("store", "gc"), ("store", "compact")])
    def test_a_reason_that_is_too_long_is_refused_first(
        self, run: Any, path: Path, words: tuple[str, ...]
    ) -> None:
        """Exit 2, nothing done."""
        before = (path / "data.mdb").read_bytes()
        assert run(*words, "--reason", "x" * 4097).status == 2
        assert (path / "data.mdb").read_bytes() == before

    def test_compacting_to_another_place_says_how_to_go_on(
        self, run: Any, path: Path, tmp_path: Path
    ) -> None:
        """The new directory, the old one, and the command that proves the new one; a place that is taken ends with 4."""
        new = tmp_path / "new store"
        told = run("store", "compact", "--to", str(new)).out
        assert told.startswith(f"Compacted {path} to {new}: ")
        assert f"Go on with {new} alone" in told
        assert f"remove it after `txnctl store verify --store '{new}'`" in told
        assert run("store", "verify", "--store", str(new)).status == 0
        row = run("store", "compact", "--to", str(tmp_path / "again"), "-o", "json").json
        assert not undeclared(row, compact.COMPACTED)
        assert (row["path"], row["original"]) == (str(tmp_path / "again"), str(path))
        assert run("store", "compact", "-o", "json").json["original"] is None
        assert run("store", "compact", "--to", str(new)).status == 4

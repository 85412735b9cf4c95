"""Staged files: what was staged is read back, and nothing else is ever taken for it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyarrow import fs

from storage.errors import InvalidValue, NotFound, TxnctlError
from storage.topic.entry import PackedColumns
from tests.txnctl.spark.sink.staging_steps import CHANCE, WRITE, packed, read, staged
from txnctl.spark.sink.staging import ORPHAN_MS, Staging, file_name, write_name


class TestLeavingNothing:
    """What is not needed any more goes; what is not ours stays."""

    def test_what_fails_leaves_no_file(self, tmp_path: Path) -> None:
        """A file that was not closed because something failed is gone."""
        staging = Staging.at(str(tmp_path))

        def broken() -> Iterator[PackedColumns]:
            yield packed(b"1")[0]
            raise KeyError

        with pytest.raises(KeyError):
            staged(staging, {"a": broken()})
        assert list((tmp_path / WRITE).iterdir()) == []

    def test_removing_twice(self, staging: Staging) -> None:
        """A write that is gone may be removed again."""
        file = staged(staging, {"a": packed(b"1")})
        staging.remove(WRITE)
        staging.remove(WRITE)
        with pytest.raises(NotFound):
            read(staging, file, "a")

    def test_orphans_go_by_age(self, tmp_path: Path) -> None:
        """A write goes when the newest of its files is a day old, not before; one without files too."""
        staging, old, young, empty = (
            Staging.at(str(tmp_path)),
            *map(write_name, ("0" * 16, "1" * 16, "2" * 16)),
        )
        for write in (old, young):
            staged(staging, {"a": packed(b"1")}, write)
        (tmp_path / young / file_name(1, 1, CHANCE)).write_bytes(b"newer")
        (tmp_path / empty).mkdir()
        now_s = 1_700_000_000
        for path in tmp_path.rglob("*"):
            os.utime(path, (now_s, now_s))
        day_s = ORPHAN_MS // 1000
        newest = tmp_path / young / file_name(1, 1, CHANCE)
        os.utime(newest, (now_s + 60, now_s + 60))
        assert staging.collect((now_s + day_s) * 1000 - 1) == []
        assert sorted(staging.collect((now_s + day_s) * 1000)) == [old, empty]
        assert staging.collect((now_s + 60 + day_s) * 1000) == [young]
        assert list(tmp_path.iterdir()) == []

    def test_orphans_on_other_file_systems(self) -> None:
        """Age is what the file system says, also where there are no real directories."""
        then = datetime(2024, 5, 1, tzinfo=UTC)
        staging = Staging(fs._MockFileSystem(then), "place", "mock")
        staging.make_directory()
        staged(staging, {"a": packed(b"1")})
        then_ms = int(then.timestamp() * 1000)
        assert staging.collect(then_ms + ORPHAN_MS - 1) == []
        assert staging.collect(then_ms + int(timedelta(days=1).total_seconds() * 1000)) == [WRITE]

    def test_a_task_that_outlives_the_abort(self, tmp_path: Path) -> None:
        """An abort removes the file of a task that still writes, whether it closes the file before or after."""
        staging = Staging.at(str(tmp_path))

        def outlive() -> Iterator[PackedColumns]:
            yield packed(b"1")[0]
            staging.abort(WRITE)
            # A different task of the write makes the directory anew, and is killed.
            directory = tmp_path / WRITE
            directory.mkdir()
            (directory / file_name(1, 1, CHANCE)).write_bytes(b"half")

        with pytest.raises(TxnctlError, match=f"{WRITE} was aborted while a task of it was running"):
            staged(staging, {"a": outlive()})
        assert [path.name for path in tmp_path.rglob("*")] == [f"{WRITE}.aborted"]

    def test_a_task_that_begins_after_the_abort(self, tmp_path: Path) -> None:
        """A task that Spark started before the abort and that opens its file after it writes none."""
        staging = Staging.at(str(tmp_path))
        staging.abort(WRITE)
        with pytest.raises(TxnctlError, match="was aborted"):
            staged(staging, {"a": packed(b"1")})
        assert [path.name for path in tmp_path.rglob("*")] == [f"{WRITE}.aborted"]

    def test_notes_of_aborts_go_by_age(self, tmp_path: Path) -> None:
        """The note of an abort goes after a day; it is no write, and a file that only looks like one stays."""
        staging = Staging.at(str(tmp_path))
        staging.abort(WRITE)
        (tmp_path / "letter.aborted").write_bytes(b"")
        (tmp_path / f"{write_name('b' * 16)}.aborted").write_bytes(b"of mine")
        written_ms = (tmp_path / f"{WRITE}.aborted").stat().st_mtime_ns // 1_000_000
        assert staging.collect(written_ms + ORPHAN_MS - 1) == []
        assert len(list(tmp_path.iterdir())) == 3
        assert staging.collect(1 << 50, dry_run=True) == []
        assert len(list(tmp_path.iterdir())) == 3
        assert staging.collect(written_ms + ORPHAN_MS) == []
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "letter.aborted",
            "write-bbbbbbbbbbbbbbbb.aborted",
        ]

    def test_what_is_not_ours_stays(self, tmp_path: Path) -> None:
        """A directory with another name, or with a file that no task staged, is left alone whatever its age."""
        staging = Staging.at(str(tmp_path))
        (tmp_path / "write-of-mine").mkdir()
        (tmp_path / "notes.txt").write_text("x")
        (tmp_path / WRITE).mkdir()
        (tmp_path / WRITE / "letter.txt").write_text("x")
        assert staging.collect(1 << 50) == []
        assert len(list(tmp_path.rglob("*"))) == 4

    def test_collecting_where_nothing_is(self, tmp_path: Path) -> None:
        """A place that is not there has no orphans."""
        assert Staging.at(str(tmp_path / "none")).collect(1 << 50) == []


class TestPlaces:
    """Where files can be staged."""

    @pytest.mark.parametrize("place", ["relative/path", "nope://x", "", "s3:/"])
    def test_no_place(self, place: str) -> None:
        """What pyarrow cannot open is an error that names it, and says what can be given."""
        with pytest.raises(InvalidValue, match="not a directory for staged files") as caught:
            Staging.at(place)
        assert "stagingPath" in (caught.value.hint or "")

    def test_a_task_on_another_machine(self, tmp_path: Path) -> None:
        """A task that does not find the driver's directory makes none: it says on which machine it looked."""
        staging = Staging.at(str(tmp_path / "elsewhere"))
        with pytest.raises(NotFound, match=r"this task runs on .* no directory") as caught:
            staged(staging, {"a": packed(b"1")})
        assert "stagingPath" in (caught.value.hint or "")
        assert not (tmp_path / "elsewhere").exists()

    def test_a_message_is_small(self, staging: Staging) -> None:
        """A commit message names a file in a few hundred bytes, however many entries it has."""
        import pickle

        file = staged(staging, {"persistent://public/default/t": packed(*[b"x" * 300_000] * 40)})
        assert len(pickle.dumps(file)) < 500
        assert dataclasses.asdict(file)["bytes"] > 12_000_000

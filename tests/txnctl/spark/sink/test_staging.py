"""Staged files: what was staged is read back, and nothing else is ever taken for it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import fs

from storage.errors import InvalidValue, NotFound
from storage.topic.batching import columns_of, entries_of
from storage.topic.entry import PackedColumns
from tests.model_runs import examples
from txnctl.spark.sink import staged_file
from txnctl.spark.sink.staged_file import StagedFile
from txnctl.spark.sink.staging import ORPHAN_MS, Staging, file_name, write_name

WRITE = write_name("00000000000000aa")
CHANCE = "0123456789abcdef"


def packed(*values: bytes) -> list[PackedColumns]:
    return entries_of(columns_of(values, None, None, None))


def staged(staging: Staging, targets: dict[str, Iterable[PackedColumns]], write: str = WRITE) -> StagedFile:
    with staging.writing(write, file_name(0, 0, CHANCE)) as file:
        for target, entries in targets.items():
            for entry in entries:
                file.add(target, entry)
        return file.close()


def read(staging: Staging, file: StagedFile, target: str) -> list[tuple[int, bytes]]:
    return [(entry.count, entry.data) for entry in staging.entries(file, target)]


@pytest.fixture(params=["path", "uri", "mock subtree"])
def staging(request: pytest.FixtureRequest, tmp_path: Path) -> Staging:
    """A place on each kind of file system; the mock one keeps its files in memory."""
    if request.param == "mock subtree":
        found = Staging(fs.SubTreeFileSystem("a", fs._MockFileSystem(datetime.now(UTC))), "b/c", "mock")
    else:
        found = Staging.at(f"{'file://' if request.param == 'uri' else ''}{tmp_path}/deep/staging")
    found.make_directory()
    return found


class TestReading:
    """An entry comes back as it was staged, or not at all."""

    def test_every_target_has_its_entries_in_order(self, staging: Staging) -> None:
        """Targets that take turns in a file are read one by one, each with what is its own."""
        one, two, three = packed(b"1", b"2"), packed(b"3"), packed(b"x" * 300_000)
        with staging.writing(WRITE, file_name(3, 4, CHANCE)) as writer:
            for target, entry in (("a", *one), ("b", *two), ("a", *three)):
                writer.add(target, entry)
            file = writer.close()
        assert read(staging, file, "a") == [(2, one[0].data), (1, three[0].data)]
        assert read(staging, file, "b") == [(1, two[0].data)]
        assert read(staging, file, "c") == []
        assert (file.rows, file.count, file.name) == ({"a": 3, "b": 1}, 4, f"3-4-{CHANCE}.batches")

    @given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=20), limit=st.integers(1, 60))
    @settings(
        max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    def test_however_much_a_read_fetches(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int], limit: int
    ) -> None:
        """Entries are the same whether one read fetches one of them or all."""
        monkeypatch.setattr(staged_file, "READ_BYTES", limit)
        staging = Staging.at(str(tmp_path))
        entries = [entry for size in sizes for entry in packed(b"v" * size)]
        file = staged(staging, {"a": entries, "b": entries[:1]})
        assert read(staging, file, "a") == [(1, entry.data) for entry in entries]

    def test_a_file_that_is_not_here(self, staging: Staging) -> None:
        """The error names the file, the host that staged it, and the option that helps."""
        file = staged(staging, {"a": packed(b"1")})
        staging.remove(WRITE)
        with pytest.raises(NotFound, match=rf"{file.name}, which a task on {file.host} staged") as caught:
            read(staging, file, "a")
        assert "stagingPath" in (caught.value.hint or "")

    def test_every_flipped_byte_is_noticed(self, tmp_path: Path) -> None:
        """No byte of a staged file can change without an error, nor can its length."""
        staging = Staging.at(str(tmp_path))
        file = staged(staging, {"a": packed(b"1", b"2"), "b": packed(b"3")})
        path = tmp_path / WRITE / file.name
        whole = path.read_bytes()
        assert len(whole) == file.bytes
        for damaged in [
            *(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))),
            whole[:-1],
            whole + b"\0",
            b"",
        ]:
            path.write_bytes(damaged)
            with pytest.raises(InvalidValue, match="is damaged"):
                [read(staging, file, target) for target in "ab"]

    def test_another_file_of_that_name(self, staging: Staging) -> None:
        """A whole file that is not the one which the commit message names is refused."""
        first = staged(staging, {"a": packed(b"first")})
        staged(staging, {"a": packed(b"other")})
        with pytest.raises(InvalidValue, match="is damaged"):
            read(staging, first, "a")


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

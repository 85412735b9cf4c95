"""Staged file: `txnctl/spark/sink/staged_file.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage.errors import InvalidValue, NotFound
from tests.model_runs import examples
from tests.txnctl.spark.sink.staging_steps import CHANCE, WRITE, packed, read, staged
from txnctl.spark.sink import staged_file
from txnctl.spark.sink.staging import Staging, file_name


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

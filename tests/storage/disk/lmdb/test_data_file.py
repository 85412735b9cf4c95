"""The data file: made with all databases, and refused before anything is read where it is not whole."""

from __future__ import annotations

import os
from pathlib import Path

import lmdb
import pytest

from storage.disk import schema
from storage.disk.codec import pack, seal
from storage.disk.lmdb import data_file
from storage.disk.schema import ALL, NEW_IN_2, STORE
from storage.errors import CorruptStore, NotAStore, StoreFull, UnknownFormat
from storage.process.clock import Clock, ManualClock


def made(path: Path, format_number: int | None) -> str:
    """A data file with a format record, or without one."""

    def records(clock: Clock) -> dict[schema.Database, dict[bytes, bytes]]:
        if format_number is None:
            return {}
        return {STORE: {b"format": seal(STORE, b"format", pack([format_number, b"i" * 16, clock.wall_ms()]))}}

    path.mkdir()
    data_file.create(str(path), ManualClock(), records)
    return str(path)


@pytest.fixture
def new_in_2(monkeypatch: pytest.MonkeyPatch) -> schema.Database:
    """A further database of the present format, which a store made before lacks."""
    database = schema.Database("later")
    monkeypatch.setattr(schema, "ALL", (*ALL, database))
    monkeypatch.setattr(schema, "NEW_IN_2", (*NEW_IN_2, database))
    return database


@pytest.mark.parametrize("read_only", [True, False])
def test_a_new_file_has_all_databases(tmp_path: Path, read_only: bool) -> None:
    """Opened in either way."""
    path = made(tmp_path / "s", schema.FORMAT_NUMBER)
    raw, number = data_file.mapped(path, read_only)
    assert number == schema.FORMAT_NUMBER
    try:
        assert sorted(data_file.databases(raw, path, read_only)) == sorted(each.name for each in ALL)
    finally:
        raw.close()


def test_a_file_without_a_format_is_no_store(tmp_path: Path) -> None:
    """Nor is one that something else made by LMDB."""
    with pytest.raises(NotAStore, match="the format record is missing"):
        data_file.mapped(made(tmp_path / "s", None), True)
    (tmp_path / "other").mkdir()
    lmdb.open(str(tmp_path / "other")).close()
    with pytest.raises(NotAStore, match="not a txnctl store"):
        data_file.mapped(str(tmp_path / "other"), True)


def test_another_format_is_refused_and_named(tmp_path: Path) -> None:
    """And can be opened by nobody here, again and again."""
    path = made(tmp_path / "s", 99)
    before = Path(path, "data.mdb").read_bytes()
    for _ in range(2):
        with pytest.raises(UnknownFormat, match="has format 99") as unknown:
            data_file.mapped(path, True)
        assert unknown.value.details == {"format": 99}
    assert Path(path, "data.mdb").read_bytes() == before


def test_a_file_that_lost_its_end_is_refused(tmp_path: Path) -> None:
    """Reading a page that is not there would kill the process."""
    path = made(tmp_path / "s", schema.FORMAT_NUMBER)
    size = os.stat(Path(path, "data.mdb")).st_size
    os.truncate(Path(path, "data.mdb"), size - 4096)
    with pytest.raises(CorruptStore, match=f"is truncated to {size - 4096} of {size} bytes"):
        data_file.mapped(path, True)


def test_a_missing_database_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every store of this format has them all."""
    path = made(tmp_path / "s", schema.FORMAT_NUMBER)
    monkeypatch.setattr(schema, "ALL", (*ALL, schema.Database("later")))
    raw, _ = data_file.mapped(path, True)
    try:
        with pytest.raises(CorruptStore, match="lacks a database"):
            data_file.databases(raw, path, True)
    finally:
        raw.close()


@pytest.mark.parametrize("read_only", [True, False])
def test_a_database_new_in_this_format_may_be_missing_in_an_earlier_one(
    tmp_path: Path, read_only: bool, request: pytest.FixtureRequest
) -> None:
    """The handles are those of the databases that the store has."""
    path = made(tmp_path / "s", 1)
    request.getfixturevalue("new_in_2")
    raw, number = data_file.mapped(path, read_only)
    try:
        names = data_file.databases(raw, path, read_only, number)
        assert sorted(names) == sorted(each.name for each in ALL if each not in NEW_IN_2)
    finally:
        raw.close()


def test_without_address_space_the_store_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller maps are tried first; the hint says how to get more."""
    path, tried = made(tmp_path / "s", schema.FORMAT_NUMBER), []

    def refuse(where: str, *, map_size: int, **options: object) -> None:
        tried.append(map_size)
        raise lmdb.MemoryError("Cannot allocate memory")

    monkeypatch.setattr(lmdb, "open", refuse)
    with pytest.raises(StoreFull, match="no address space") as full:
        data_file.mapped(path, True)
    assert tried == sorted(tried, reverse=True)
    assert len(tried) == 3
    assert full.value.hint is not None
    assert "ulimit -v" in full.value.hint

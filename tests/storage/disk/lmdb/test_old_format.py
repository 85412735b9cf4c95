"""Views of a store of an earlier format, in which databases of the present one are empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store
from storage.disk import schema
from storage.disk.codec import key1
from storage.disk.lmdb.old_format import OldFormatView
from storage.disk.view import ReadView
from storage.errors import OldFormat
from tests.format.small_store import unpacked

LATER = schema.Database("later")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of format 1, which lacks the database `LATER`."""
    monkeypatch.setattr(schema, "ALL", (*schema.ALL, LATER))
    monkeypatch.setattr(schema, "NEW_IN_2", (*schema.NEW_IN_2, LATER))
    return unpacked(1, tmp_path / "store")


@pytest.mark.parametrize("read_only", [True, False])
def test_a_database_that_the_format_lacks_is_empty(path: Path, read_only: bool) -> None:
    """To each method of a view; the databases that the store has are read as ever."""
    with Store.open(path, read_only=read_only) as store, store.connection.view() as view:
        assert isinstance(view, OldFormatView)
        assert view.get(LATER, key1(1)) is None
        assert not view.has(LATER, key1(1))
        assert view.open(LATER, key1(1), bytes) is None  # type: ignore[type-var]
        assert list(view.scan(LATER)) == list(view.keys(LATER)) == []
        assert list(view.scan_back(LATER, b"", key1(9))) == []
        assert view.first(LATER, b"") is view.last(LATER, b"", key1(9)) is None
        assert view.count(LATER) == 0
        assert LATER.name not in view.database_stats()
        assert view.count(schema.TOPICS) == len(list(view.keys(schema.TOPICS))) > 0


def test_every_way_of_reading_knows_of_missing_databases() -> None:
    """A method of views that reads a database by its name is answered here, or uses one that is."""
    by_name = {
        name for name, method in vars(ReadView).items()
        if {"_databases", "_cursor"}.intersection(getattr(getattr(method, "__code__", None), "co_names", ()))
    }  # fmt: skip
    assert by_name - {"__init__", "_cursor", "_read_superblock", "_superblock_record", "database_stats"} == {
        name for name in vars(OldFormatView) if not name.startswith("_") and name != "lacks"
    }


def test_every_write_is_refused_before_it_begins(path: Path) -> None:
    """A change, a dry run, a serializable read and the check before work, all by the same error."""
    with Store.open(path) as store:
        connection = store.connection
        for attempt in (
            lambda: connection.write(lambda batch: batch.delete(schema.STORE, b"format")),
            lambda: connection.write(lambda _: None, dry_run=True),
            lambda: connection.recorded_view(lambda _view, _wall_ns: None),
            connection.check_writable,
            store.transaction,
            store.begin_transaction,
        ):
            with pytest.raises(OldFormat, match="has format 1, which this release only reads") as refused:
                attempt()
            assert refused.value.details == {"format": 1}
            assert "store.maintenance.upgrade_store" in (refused.value.hint or "")


def test_views_and_writes_go_on_after_the_upgrade(path: Path) -> None:
    """In handles that were open before, for reading and for writing; the new database is used by the next batch."""
    with Store.open(path, read_only=True) as reading, Store.open(path) as store:
        topics = store.topics()
        with store.connection.view() as early:
            store.maintenance.upgrade_store()
            assert early.count(LATER) == 0
        store.connection.write(lambda batch: batch.put(LATER, key1(1), b"x"))
        store.create_topic("new")
        for handle in (reading, store):
            assert len(handle.topics()) == len(topics) + 1
            with handle.connection.view() as view:
                assert type(view) is ReadView
                assert view.get(LATER, key1(1)) == b"x"
    with Store.open(path, read_only=True) as store, store.connection.view() as view:
        assert view.count(LATER) == 1


def test_a_dry_run_leaves_no_handle_behind(path: Path) -> None:
    """After it the store is refused as before, and the upgrade makes the database."""
    with Store.open(path) as store:
        for _ in range(3):
            result = store.maintenance.upgrade_store(dry_run=True)
            assert (result.format_before, result.format) == (1, 2)
            with pytest.raises(OldFormat):
                store.create_topic("new")
        store.maintenance.upgrade_store()
        store.connection.write(lambda batch: batch.put(LATER, key1(1), b"x"))

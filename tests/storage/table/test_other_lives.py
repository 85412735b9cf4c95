"""Versions that a table never had: `storage/table/other_lives.py`, as followers bring them from outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from storage import Store, Table, TxnID
from storage.errors import RequestTooOld, TransactionNotFound
from storage.limits import FORMER_TABLES
from storage.process.clock import ManualClock
from storage.table import catalogue, other_lives

Use = Callable[[Table, int], object]
USES: list[Use] = [
    lambda table, version: list(table.changes(since=version)),
    lambda table, version: list(table.changes(until=version)),
    lambda table, version: table.get(b"a", at=version),
    lambda table, version: list(table.scan(at=version)),
    lambda table, version: table.version_at(version),
]


@pytest.fixture
def restored(store: Store, table: Table, clock: ManualClock, tmp_path: Path) -> tuple[Store, int, int]:
    """A store restored from a backup at a=1; the last version before the backup, and one of a=2 and b=7 behind it."""
    table.put(b"a", b"1")
    before = table.version_at().version
    clock.advance(1)
    store.maintenance.backup_store(tmp_path / "backup")
    table.put(b"a", b"2")
    table.put(b"b", b"7")
    behind = table.version_at().version
    clock.advance(1)
    Store.restore(tmp_path / "backup", tmp_path / "restored")
    return Store.open(tmp_path / "restored", clock=clock), before, behind


@pytest.mark.parametrize("use", USES)
def test_a_version_that_the_original_issued_behind_the_backup_is_refused(
    restored: tuple[Store, int, int], table: Table, use: Use
) -> None:
    """Right after the restore, and behind later writes; a version of before the backup goes on."""
    store, before, behind = restored
    with store:
        again = store.table(table.name)
        for _ in range(2):
            with pytest.raises(RequestTooOld, match=f"goes on from .*: version {behind} is from before that"):
                use(again, behind)
            use(again, before)
            use(again, again.version_at().version)
            again.put(b"c", b"3")
        assert [change.key for change in again.changes(since=before)] == [b"c", b"c"]
        with pytest.raises(RequestTooOld) as refused:
            use(again, behind)
        assert refused.value.retryable is False
        assert [
            change.key for change in again.changes(since=int(refused.value.details["oldestVersion"]))
        ] == [
            b"c",
            b"c",
        ]


def test_a_second_restore_forgets_no_earlier_one(
    restored: tuple[Store, int, int], table: Table, clock: ManualClock, tmp_path: Path
) -> None:
    """Versions behind the first backup stay refused in a restore of a restored store."""
    store, before, behind = restored
    with store:
        store.table(table.name).put(b"c", b"3")
        between = store.table(table.name).version_at().version
        store.maintenance.backup_store(tmp_path / "second")
    Store.restore(tmp_path / "second", tmp_path / "again")
    with Store.open(tmp_path / "again", clock=clock) as twice:
        with pytest.raises(RequestTooOld):
            twice.table(table.name).changes(since=behind)
        for version in (before, between):
            assert list(twice.table(table.name).changes(since=version))[1:] == []


def test_a_version_above_a_transaction_that_was_open_in_the_backup_is_refused(
    store: Store, table: Table, tmp_path: Path, clock: ManualClock
) -> None:
    """The original committed it behind the backup, below the last version that the backup has issued."""
    first, second = store.begin_transaction(), store.begin_transaction()
    table.put(b"a", b"1", txn=first)
    table.put(b"b", b"1", txn=second)
    last = table.put(b"c", b"1")
    store.maintenance.backup_store(tmp_path / "backup")
    store.commit_transaction(first)
    seen = table.version_at().version
    assert [change.key for change in table.changes(until=seen)] == [b"a"]
    assert seen < last
    Store.restore(tmp_path / "backup", tmp_path / "restored")
    with (
        Store.open(tmp_path / "restored", clock=clock) as restored,
        pytest.raises(RequestTooOld, match="is from before that"),
    ):
        restored.table(table.name).changes(since=seen)


def test_a_transaction_that_the_original_began_behind_the_backup_is_not_found(
    store: Store, tmp_path: Path
) -> None:
    """A delayed commit of it meets no transaction of the restored store, whose ids begin far behind."""
    store.begin_transaction()
    store.maintenance.backup_store(tmp_path / "backup")
    late = store.begin_transaction()
    Store.restore(tmp_path / "backup", tmp_path / "restored")
    with Store.open(tmp_path / "restored") as restored:
        own = [restored.begin_transaction() for _ in range(3)]
        assert late not in own
        with pytest.raises(TransactionNotFound):
            restored.commit_transaction(late)
        assert own[0] > TxnID(late.least)


@pytest.mark.parametrize("use", USES)
def test_a_version_of_a_deleted_table_is_refused_by_a_later_one_of_the_name(
    store: Store, clock: ManualClock, use: Use
) -> None:
    """The later table starts without the rows; all its own versions, and those of before both, can be read."""
    before = store.table("first", create=True).put(b"k", b"v")
    clock.advance(1)
    store.table("accounts", create=True).put(b"a", b"1")
    seen = store.table("accounts").version_at().version
    store.admin.tables.delete_table("accounts")
    again = store.table("accounts", create=True)
    again.put(b"b", b"2")
    with pytest.raises(RequestTooOld, match=f"deleted at .* version {seen} is from before that"):
        use(again, seen)
    use(again, again.version_at().version)
    use(store.table("first"), seen)
    assert [change.key for change in again.changes(since=before)] == [b"b"]


def test_the_last_tables_deleted_are_remembered(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bounded number of them, in one record."""
    monkeypatch.setattr(other_lives, "FORMER_TABLES", 3)
    seen = {}
    for number in range(5):
        name = f"t{number}"
        seen[name] = store.table(name, create=True).put(b"k", b"v")
        store.connection.write(lambda batch, name=name: catalogue.delete(batch, catalogue.get(batch, name)))
        store.table(name, create=True).put(b"k", b"v")
    refused = []
    for name, version in seen.items():
        try:
            store.table(name).version_at(version)
        except RequestTooOld:
            refused.append(name)
    assert (refused, FORMER_TABLES) == (["t2", "t3", "t4"], 1000)

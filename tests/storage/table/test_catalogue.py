"""Creating, finding, listing and deleting tables."""

from __future__ import annotations

import pytest

from storage import Store, Table, TransactionState
from storage.disk.schema import ROWS, TXN_KEYS, VERSIONS
from storage.errors import AlreadyExists, InvalidName, InvalidValue, ObjectHeld, TableNotFound
from tests.row_json import row_json


def test_tables_are_listed_by_name(store: Store) -> None:
    """And found by it."""
    for name in ("b", "a"):
        store.create_table(name)
    assert store.tables() == ["a", "b"]
    assert (store.has_table("a"), store.has_table("c")) == (True, False)
    assert store.table("b").name == "b"


def test_a_table_is_created_once(store: Store, table: Table) -> None:
    """The second time is a conflict, and the table keeps what it has."""
    table.put(b"k", b"v")
    with pytest.raises(AlreadyExists):
        store.create_table("accounts")
    assert store.table("accounts").get(b"k") == b"v"


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 129, "ü"])
def test_a_name_is_no_path(store: Store, name: str) -> None:
    """Letters, digits and -_.=: only."""
    with pytest.raises(InvalidName):
        store.create_table(name)


def test_a_table_that_is_not_there_is_named_with_near_ones(store: Store, table: Table) -> None:
    """The error helps with the name."""
    with pytest.raises(TableNotFound) as raised:
        store.table("acounts")
    assert "accounts" in str(raised.value.hint)


def test_a_deleted_table_takes_its_rows_with_it(store: Store, table: Table) -> None:
    """Created again, it is another table and empty; nothing of the old one is left on disk."""
    for number in range(300):
        table.put(b"k%d" % number, b"v")
    table.put(b"k1", b"w")
    old = store.begin_transaction()
    for number in range(100):
        table.put(b"k%d" % number, b"x", txn=old)
    store.commit_transaction(old)
    store.admin.tables.delete_table("accounts")
    with pytest.raises(TableNotFound):
        table.get(b"k1")
    with store.connection.view() as view:
        assert [view.count(each) for each in (ROWS, VERSIONS, TXN_KEYS)] == [0, 0, 0]
    store.create_table("accounts")
    again = store.table("accounts")
    assert again.get(b"k1") is None
    assert again.table_id != table.table_id


def test_a_table_with_intents_of_an_open_transaction_is_held(store: Store, table: Table) -> None:
    """Deleting is refused and names the transaction; force aborts it first."""
    txn = store.begin_transaction()
    table.put(b"k", b"v", txn=txn)
    with pytest.raises(ObjectHeld) as raised:
        store.admin.tables.delete_table("accounts")
    assert str(txn) in raised.value.message
    assert table.get(b"k", txn=txn) == b"v"
    result = row_json(store.admin.tables.delete_table("accounts", force=True))
    assert result["transactionsAborted"] == [str(txn)]
    assert row_json(store.reports.show_transaction(txn))["state"] == "ABORTED"


def test_deleting_on_trial_changes_nothing(store: Store, table: Table) -> None:
    """The dry run counts the rows."""
    table.put(b"k", b"v")
    assert row_json(store.admin.tables.delete_table("accounts", dry_run=True))["rows"] == 1
    assert table.get(b"k") == b"v"


def test_a_handle_of_a_deleted_table_says_so(store: Store, table: Table) -> None:
    """Whatever it is asked for, also in a transaction that had written, which stays usable."""
    txn = store.transaction()
    table.put(b"k", b"v", txn=txn)
    store.admin.tables.delete_table("accounts")
    for action in (
        lambda: table.get(b"k"),
        lambda: table.get_row(b"k"),
        lambda: list(table.scan()),
        lambda: table.put(b"k", b"v"),
        lambda: table.delete(b"k"),
        table.stats,
        lambda: row_json(table.versions(b"k")),
        lambda: table.get(b"other", txn=txn),
        txn.commit,
    ):
        with pytest.raises(TableNotFound):
            action()
    assert txn.state is TransactionState.OPEN
    txn.abort()


@pytest.mark.parametrize("value", ["text", None, 5, b"x" * (5 * 1024 * 1024 + 1)])
def test_what_is_no_value_is_refused(table: Table, value: object) -> None:
    """Only bytes, up to 5 MiB."""
    with pytest.raises(InvalidValue):
        table.put(b"k", value)  # type: ignore[arg-type]
    assert table.get(b"k") is None


def test_the_largest_key_and_value_are_stored(table: Table) -> None:
    """400 bytes of key, 5 MiB of value; with older versions of them too."""
    key, value = b"\xff" * 400, b"v" * (5 * 1024 * 1024)
    table.put(key, value)
    table.put(key, b"")
    assert table.get(key) == b""
    assert [each.value for each in table.versions(key)] == [b"", value]


def test_stats_count_what_is_there(store: Store, table: Table) -> None:
    """Keys, rows of deleted keys too, superseded versions, intents."""
    table.put(b"a", b"1")
    table.put(b"a", b"2")
    table.put(b"b", b"1")
    table.delete(b"b")
    txn = store.begin_transaction()
    table.put(b"c", b"1", txn=txn)
    stats = row_json(table.stats())
    assert [stats[name] for name in ("keys", "rows", "versions", "intents")] == [1, 3, 2, 1]
    assert [row["table"] for row in row_json(store.reports.list_tables())] == ["accounts"]

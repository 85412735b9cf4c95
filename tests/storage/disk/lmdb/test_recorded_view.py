"""Looks inside the writer gate: the superblock without a view, and what a recorded view knows meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from storage import Store
from storage.disk.lmdb import recorded_view, writer
from storage.disk.schema import PURGES
from storage.disk.superblock import Superblock
from storage.disk.view import ReadView, WriteBatch
from storage.errors import StoreInvalid
from storage.process import writer_gate
from storage.table import state as states
from tests.storage.interrupt_lines import interrupted_runs

_PUT = (
    "import sys; from storage import Store; Store.open(sys.argv[1]).table('accounts').put(b'key', b'other')"
)


def looked_at(store: Store) -> bytes:
    """The superblock that a look inside the gate sees."""

    def look(superblock: Superblock, wall_ns: int) -> bytes:
        assert wall_ns > 0
        return superblock.encode()

    return store.connection.look_at_superblock(look)


def stored(store: Store) -> bytes:
    """The superblock as stored."""
    with store.connection.view() as view:
        return view.superblock.encode()


@pytest.fixture
def bank(store: Store) -> Store:
    """The store, with a table `accounts`."""
    store.create_table("accounts")
    return store


def test_superblock_of_an_own_commit_is_known_without_a_view(bank: Store) -> None:
    """And is the stored one."""
    bank.table("accounts").put(b"key", b"value")
    assert bank.connection.environment.data_map.kept_superblock() is not None
    assert looked_at(bank) == stored(bank)


def test_superblock_after_a_dropped_batch_is_the_stored_one(bank: Store) -> None:
    """The batch has changed the kept object, and leaves none."""
    before = stored(bank)

    def change(batch: WriteBatch) -> None:
        batch.superblock.last_txn += 1000
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bank.connection.write(change)
    assert bank.connection.environment.data_map.kept_superblock() is None
    assert looked_at(bank) == stored(bank) == before


def test_commit_of_another_process_is_seen(tmp_path: Path) -> None:
    """By the begin of a transaction, by its reads, and by its commit."""
    path = tmp_path / "store"
    Store.create(path)
    with Store.open(path) as store:
        store.create_table("accounts")
        table = store.table("accounts")
        table.put(b"key", b"own")
        subprocess.run([sys.executable, "-c", _PUT, path], check=True)
        assert store.connection.environment.data_map.kept_superblock() is None
        assert looked_at(store) == stored(store)
        with store.transaction() as txn:
            assert table.get(b"key", txn=txn) == b"other"
            table.put(b"key", b"again", txn=txn)
        assert [version.value for version in table.versions(b"key")] == [b"again", b"other", b"own"]
        assert store.maintenance.verify_store(full=True) == []


def test_view_knows_the_records_of_the_commit_inside_the_gate_only(bank: Store) -> None:
    """Outside the next batch may change them."""
    bank.table("accounts").put(b"key", b"value")
    state = states.record_of(bank.table("accounts").table_id)
    known_inside: list[bool] = []

    def record(view: ReadView, wall_ns: int) -> None:
        assert view.known is not None
        known_inside.append(state in view.known.records)

    with bank.connection.recorded_view(record) as view:
        assert view.known is None
        assert view.count(PURGES) == 0
    assert known_inside == [True]


def test_look_that_fails_leaves_the_gate(bank: Store) -> None:
    """And the next write passes."""

    def look(superblock: Superblock, wall_ns: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bank.connection.look_at_superblock(look)
    assert not bank.connection.environment.locks.gate._threads._is_owned()  # type: ignore[attr-defined]


def test_for_reading_only_there_is_no_look(path: str) -> None:
    """A look may note what a writer has to see."""
    with Store.open(path, read_only=True) as store, pytest.raises(StoreInvalid, match="for reading only"):
        looked_at(store)


def test_dry_run_asks_for_the_existence_of_a_record(bank: Store) -> None:
    """As a batch does."""
    state = states.record_of(bank.table("accounts").table_id)
    assert bank.connection.rehearse(lambda batch: batch.holds(*state))


def test_interrupt_at_any_line_of_a_read_leaves_no_view_and_no_gate(bank: Store) -> None:
    """A change of the map would wait for the view for ever, and other writers for the gate of an idle program."""
    accounts, txn = bank.table("accounts"), bank.transaction()
    accounts.get(b"key", txn=txn)
    data_map = bank.connection.environment.data_map
    for line in interrupted_runs(lambda: accounts.get(b"key", txn=txn), recorded_view, writer_gate):
        assert data_map._views == set(), f"a view is open behind an interrupt at line {line}"
        # Python may handle a signal at the entry of a function, so before `leave` has begun.
        data_map.locks.gate.leave()


def test_interrupt_at_any_line_of_a_commit_leaves_no_transaction_of_lmdb(bank: Store) -> None:
    """The traceback would keep it, and its lock: an exception that is being handled does not keep writers out."""
    accounts = bank.table("accounts")

    def put_twice() -> None:
        try:
            accounts.put(b"key", b"value")
        except KeyboardInterrupt:
            accounts.put(b"key", b"again")
            raise

    for _line in interrupted_runs(put_twice, writer):
        assert accounts.get(b"key") in (b"value", b"again")

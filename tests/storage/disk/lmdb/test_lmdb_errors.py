"""Errors of LMDB, translated: which kind, and what the user is told to do."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from storage import Store
from storage.disk.lmdb.lmdb_errors import damaged, readers_full, refused
from storage.disk.schema import ROWS, Database
from storage.disk.view import WriteBatch
from storage.errors import CorruptStore, ReadersFull, StoreFull, StoreInvalid
from txnctl.output import shell


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A directory with a data file."""
    (tmp_path / "data.mdb").write_bytes(b"x" * 8192)
    return str(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["mdb_txn_commit: No space left on device", "write: File too large", "Disk quota exceeded", "ENOSPC"],
)
def test_no_room_is_a_full_store(path: str, text: str) -> None:
    """Whatever words the system has for it."""
    error = refused(path, lmdb.Error(text))
    assert type(error) is StoreFull
    assert text in error.message
    assert error.hint is not None
    assert "Free some space" in error.hint


def test_an_input_output_error_with_room_is_the_disks(path: str) -> None:
    """Not a full disk's."""
    error = refused(path, lmdb.DiskError("mdb_txn_commit: Input/output error"))
    assert type(error) is StoreInvalid
    assert error.hint == "Nothing was stored."


def test_an_input_output_error_at_the_limit_is_a_full_store(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB calls a write so that the limit on files cut short."""
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (8192, 8192))
    assert type(refused(path, lmdb.DiskError("Input/output error"))) is StoreFull


@pytest.mark.parametrize("delete", [WriteBatch.delete, WriteBatch.delete_prefix])
def test_a_node_with_a_flipped_flag_is_damage(
    tmp_path: Path, delete: Callable[[WriteBatch, Database, bytes], object]
) -> None:
    """LMDB takes the row for a tree; py-lmdb raises an error of LMDB, or a SystemError with one behind."""
    store_path = tmp_path / "store"
    Store.create(store_path)
    with Store.open(store_path) as store:
        store.create_table("a")
        store.table("a").put(b"the only row", b"value")
        with store.connection.view() as view:
            (key,) = view.keys(ROWS)
    data = bytearray((store_path / "data.mdb").read_bytes())
    at = data.find(key)
    while at >= 0:
        data[at - 4] |= 2
        at = data.find(key, at + 1)
    (store_path / "data.mdb").write_bytes(data)
    with Store.open(store_path) as store, pytest.raises(CorruptStore):
        store.connection.write(lambda batch: delete(batch, ROWS, key))


def test_damage_leads_to_a_backup() -> None:
    """By way of verify, which names it."""
    error = damaged("/s", lmdb.CorruptedError("page 3"))
    assert type(error) is CorruptStore
    assert "/s" in error.message
    assert "page 3" in error.message
    assert error.hint is not None
    assert "verify --full" in shell.spell(error.hint)


def test_readers_are_counted() -> None:
    """Busy, so that it may be tried again."""
    error = readers_full("/s")
    assert type(error) is ReadersFull
    assert error.retryable
    assert "512" in error.message

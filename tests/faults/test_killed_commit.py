"""A writer killed between the count of its commit and the moment from which views show it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from tests.faults.traps import compiled

_ADD_ONE = """
import ctypes, sys
from storage import Store
from storage.errors import StoreInvalid
store = Store.open(sys.argv[1])
table = store.table("accounts")
with store.transaction() as txn:
    table.put(b"k", b"%d" % (int(table.get(b"k", txn=txn)) + 1), txn=txn)
    table.put(b"later", b"")
    ctypes.CDLL(None).arm()
"""

_READ_ALONE = """
import sys
from storage import Store
from storage.errors import StoreInvalid
with Store.open(sys.argv[1], read_only=True) as store:
    table = store.table("accounts")
    try:
        print(table.get(b"k", at=table.version_at()))
    except StoreInvalid as error:
        print(error.message)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with one row, opened before another process is killed in a commit that adds one to the row."""
    path = str(tmp_path / "store")
    Store.create(path)
    with Store.open(path) as opened:
        opened.create_table("accounts")
        opened.table("accounts").put(b"k", b"0")
        environment = {**os.environ, "LD_PRELOAD": compiled("killed_commit")}
        killed = subprocess.run([sys.executable, "-c", _ADD_ONE, path], env=environment, check=False)
        assert killed.returncode == -signal.SIGKILL
        with opened.connection.view() as view:
            assert opened.connection.environment.last_commit() == view.commit + 1, "counted, and not shown"
        yield opened
        opened.table("accounts").put(b"last", b"")
        assert opened.maintenance.verify_store(full=True) == []


def test_serializable_read_sees_the_commit(store: Store) -> None:
    """The commit would show up behind the read, whose transaction would overwrite it: a lost update."""
    accounts = store.table("accounts")
    with store.transaction() as txn:
        accounts.put(b"k", b"%d" % (int(accounts.get(b"k", txn=txn) or b"") + 1), txn=txn)
    assert accounts.get(b"k") == b"2"


def test_serializable_scan_sees_the_commit(store: Store) -> None:
    """The range is read at a timestamp above that of the killed transaction."""
    accounts = store.table("accounts")
    with store.transaction() as txn:
        assert [row.value for row in accounts.scan(txn=txn)] == [b"1", b""]


def test_begin_goes_on_from_the_timestamps_of_the_commit(store: Store) -> None:
    """No timestamp is issued twice."""
    txn = store.transaction()
    with store.connection.view() as view:
        assert txn.timestamp > view.superblock.last_timestamp
        assert view.commit == store.connection.environment.last_commit()


def test_final_version_has_the_commit(store: Store) -> None:
    """A read at the version has the same answer before and after the next commit."""
    accounts = store.table("accounts")
    version = accounts.version_at()
    before = accounts.get(b"k", at=version)
    accounts.put(b"next", b"")
    assert (before, accounts.get(b"k", at=version)) == (b"1", b"1")


def test_reader_alone_answers_no_final_version(store: Store) -> None:
    """It cannot show the commit, and an answer without the commit would change."""
    done = subprocess.run(
        [sys.executable, "-c", _READ_ALONE, store.path], capture_output=True, text=True, check=True
    )
    assert "killed in its commit" in done.stdout
    store.table("accounts").put(b"next", b"")
    done = subprocess.run(
        [sys.executable, "-c", _READ_ALONE, store.path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "b'1'\n"

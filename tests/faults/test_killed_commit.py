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
store = Store.open(sys.argv[1])
table = store.table("accounts")
with store.transaction() as txn:
    table.put(b"k", b"%d" % (int(table.get(b"k", txn=txn)) + 1), txn=txn)
    ctypes.CDLL(None).arm()
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
        assert [row.value for row in accounts.scan(txn=txn)] == [b"1"]


def test_begin_goes_on_from_the_timestamps_of_the_commit(store: Store) -> None:
    """No timestamp is issued twice."""
    txn = store.transaction()
    with store.connection.view() as view:
        assert txn.timestamp > view.superblock.last_timestamp
        assert view.commit == store.connection.environment.last_commit()

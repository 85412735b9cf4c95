"""The begin of a transaction without a record: `storage/client/work/beginning.py`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from storage import Store, Transaction
from storage.client.work import beginning
from storage.disk.lmdb import read_cache, recorded_view
from storage.disk.lmdb.read_cache_file import FILE_NAME
from storage.errors import WriteTooOld
from storage.process import byte_locks, open_timestamps
from storage.process.clock import ManualClock
from tests.storage.interrupt_lines import interrupted_runs
from tests.storage.records_read import records_read


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_begin_after_the_file_of_reads_was_removed_may_write(
    store: Store, path: str, is_plain: bool
) -> None:
    """The new transaction is not refused over reads that were forgotten before its begin."""
    store.create_table("accounts")
    accounts = store.table("accounts")
    accounts.put(b"k", b"1")
    os.unlink(os.path.join(path, FILE_NAME))
    if is_plain:
        accounts.put(b"k", b"2")
    else:
        with store.transaction() as txn:
            accounts.put(b"k", b"2", txn=txn)
    assert accounts.get(b"k") == b"2"


def test_a_begin_before_the_file_of_reads_was_removed_may_not_write(store: Store, path: str) -> None:
    """The forgotten reads may be of later transactions, which a write of an earlier transaction must not contradict."""
    store.create_table("accounts")
    accounts = store.table("accounts")
    early, late = store.transaction(), store.transaction()
    assert early.timestamp < late.timestamp
    assert accounts.get(b"k", txn=late) is None
    os.unlink(os.path.join(path, FILE_NAME))
    accounts.put(b"k", b"2", txn=early)
    with pytest.raises(WriteTooOld):
        early.flush()


def test_commits_of_one_second_reserve_timestamps_once(store: Store, clock: ManualClock) -> None:
    """Nine seconds are always left for begins without a commit."""
    store.create_table("accounts")
    accounts, ahead_s = store.table("accounts"), []
    for _ in range(4):
        accounts.put(b"k", b"v")
        with store.connection.view() as view:
            ahead_s.append((view.superblock.timestamp_mark - clock.wall_ns()) / 1e9)
        clock.advance(0.4)
    assert ahead_s == pytest.approx([10, 9.6, 9.2, 10])


def test_interrupt_at_any_line_of_a_begin_leaves_no_timestamp_held(store: Store) -> None:
    """Readers of final versions would wait for its deadline."""
    store.create_table("accounts")
    store.table("accounts").put(b"k", b"v")
    held, begun = store.connection.environment.locks.open_timestamps, list[Transaction]()

    def begin() -> None:
        begun.append(store.transaction())

    for line in interrupted_runs(begin, beginning, open_timestamps, byte_locks, read_cache, recorded_view):
        begun.clear()
        assert held.lowest(1 << 62) is None, f"the timestamp is held behind an interrupt at line {line}"


def test_a_begin_behind_an_own_commit_reads_no_record(store: Store) -> None:
    """The commit before has counted the tables: none; and no other process has written since."""
    producer = store.create_producer("t")
    for _ in range(2):
        with store.transaction() as txn:
            producer.send(b"v", txn=txn)
    with records_read() as reads:
        txn = store.transaction()
    assert reads.total == 0
    assert txn.work.known_timestamp() > 0


def test_a_begin_behind_a_commit_of_another_process_sees_the_tables(store: Store, path: str) -> None:
    """A table that a different process has created is known to the next begin, which is issued a timestamp."""
    producer = store.create_producer("t")
    with store.transaction() as txn:
        producer.send(b"v", txn=txn)
    create = "import sys; from storage import Store; Store.open(sys.argv[1]).create_table('accounts')"
    subprocess.run([sys.executable, "-c", create, path], check=True)
    early = store.transaction()
    late = store.transaction()
    assert late.timestamp > early.timestamp
    assert late.known_id is early.known_id is None

"""The begin of a transaction without a record: `storage/client/work/beginning.py`."""

from __future__ import annotations

import os

import pytest

from storage import Store
from storage.disk.read_cache_file import FILE_NAME
from storage.errors import WriteTooOld


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

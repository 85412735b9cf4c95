"""Table reader: `storage/client/table_reader.py`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from storage import CheckMode, Store, Table, TransactionIsolation, TransactionState, TxnID
from tests.row_json import row_json
from tests.storage.read_steps import MODES


@pytest.mark.parametrize("check", MODES)
def test_reading_leaves_every_byte_as_it_was(
    store: Store, table: Table, unfinalized: TxnID, path: str, check: CheckMode
) -> None:
    """Beginning, reading by key and by range, and ending write nothing; no file appears or changes."""
    store.begin_transaction(timeout=1)

    def contents() -> dict[str, str]:
        files = (Path(path) / name for name in os.listdir(path) if name not in ("lock.mdb", "store.lock"))
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    before = contents()
    with store.transaction(isolation=TransactionIsolation.READ_COMMITTED, check=check) as reader:
        table.get(b"k", txn=reader)
        table.get(b"missing", txn=reader)
        list(table.scan(txn=reader))
        list(table.scan(reverse=True, check=check))
        table.get(b"k", check=check)
    assert reader.state is TransactionState.COMMITTED
    assert contents() == before


def test_a_long_scan_neither_skips_nor_repeats_while_others_write(store: Store, table: Table) -> None:
    """Each page is a view of its own; going on by key keeps the order."""
    table.import_rows((b"%05d" % n, b"") for n in range(3000))
    seen = []
    for number, row in enumerate(table.scan()):
        seen.append(row.key)
        if number % 500 == 0:
            table.put(b"%05d+" % number, b"")
            table.delete(b"%05d" % (2999 - number))
    assert seen == sorted(set(seen))
    assert {b"%05d" % n for n in range(2000, 2400)} - {
        b"%05d" % (2999 - n) for n in range(0, 3000, 500)
    } <= set(seen)


@pytest.mark.parametrize("check", [None, CheckMode.FULL])
def test_a_scan_sees_the_commit_of_a_writer_that_began_before_the_scan(
    store: Store, table: Table, check: CheckMode | None
) -> None:
    """The writer began without a commit; the scan begins after the last timestamp issued, not the last committed."""
    table.import_rows((b"%05d" % n, b"old") for n in range(3000))
    writer = store.transaction()
    rows = table.scan(check=check)
    next(rows)
    table.import_rows(((b"%05d" % n, b"new") for n in range(1500, 2500)), txn=writer)
    writer.flush()
    writer.commit()
    assert row_json(table.stats())["intents"] > 1000
    assert [row.key for row in rows if row.value == b"new"] == [b"%05d" % n for n in range(1500, 2500)]

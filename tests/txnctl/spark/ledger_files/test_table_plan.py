"""Table plan: `txnctl/spark/ledger_files/table_plan.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import CheckMode, Store
from storage.process.clock import SYSTEM_CLOCK
from txnctl.spark import schemas
from txnctl.spark.ledger_files import upkeep
from txnctl.spark.ledger_files.root import Root
from txnctl.spark.ledger_files.table_plan import snapshot_partitions
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.table_range import TableRange


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.of_path(str(tmp_path / "off loaded"))


@pytest.mark.parametrize("as_of", [False, True])
def test_a_table_is_read_from_files(store: Store, root: Root, as_of: bool):
    """As committed, or as of a version: the rows are those of the store, whatever is written afterwards."""
    store.create_table("accounts")
    table = store.table("accounts")
    table.import_rows((b"%03d" % number, b"old") for number in range(100))
    version = table.put(b"050", b"new")
    table.delete(b"007")
    schema = schemas.arrow_columns(schemas.ROW_TYPES)
    at = version if as_of else None
    ranges = [
        TableRange(
            LocalStore.of_open_store(store), "accounts", table.table_id, start, end, CheckMode.MINIMAL, at
        )
        for start, end in ((b"", b"040"), (b"040", b"040a"), (b"040a", b"9"), (b"9", None))
    ]
    wanted = [row for each in ranges for batch in each.batches(schema) for row in batch.to_pylist()]
    pieces = snapshot_partitions(ranges, root.uri, 0)
    table.put(b"050", b"later")
    assert len(pieces) == 3
    assert [row for each in pieces for batch in each.batches(schema) for row in batch.to_pylist()] == wanted
    assert len(wanted) == (100 if as_of else 99)


def test_snapshots_of_tables_are_removed_by_their_age(store: Store, root: Root):
    """The next plan of the table removes those that are a day old."""
    store.create_table("accounts")
    table = store.table("accounts")
    table.put(b"B1", b"100")
    whole = TableRange(
        LocalStore.of_open_store(store), "accounts", table.table_id, b"", None, CheckMode.MINIMAL, None
    )
    for now_ms, left in ((0, 1), (0, 2), (SYSTEM_CLOCK.wall_ms() + 2 * upkeep.RETAIN_MS, 1)):
        (piece,) = snapshot_partitions([whole], root.uri, now_ms)
        directory = Path(root.for_spark(piece.path).removeprefix("file://")).parent
        assert len(list(directory.iterdir())) == left

"""Partitions of files: what a task reads from the files of a ledger."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from storage import Position, Store
from tests.txnctl.spark.offload_steps import COMMITTED, SCHEMA, fill, rows, span
from txnctl.spark import schemas
from txnctl.spark.ledger_files import offload as offloading, range_export
from txnctl.spark.ledger_files.layout import LEDGERS
from txnctl.spark.ledger_files.offload import offload
from txnctl.spark.ledger_files.range_plan import file_partitions
from txnctl.spark.ledger_files.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.of_path(str(tmp_path / "off loaded"))


def test_columns_come_as_the_schema_asks(store: Store, root: Root):
    """Any of them, in any order, keys and values as text."""
    fill(store)
    import pyarrow as pa

    schema = pa.schema([("txnId", pa.string()), ("value", pa.string())])
    batches = [
        batch
        for piece in file_partitions(store, [span(store, COMMITTED)], root.uri)
        for batch in piece.batches(schema)
    ]
    assert all(batch.schema == schema for batch in batches)
    values = [message.value.decode() for message in store.reader("t")]
    assert [row["value"] for batch in batches for row in batch.to_pylist()] == values


def test_a_file_without_a_column_has_null_there(store: Store, root: Root, monkeypatch: pytest.MonkeyPatch):
    """Files that were offloaded before messages had delivery times."""
    older = {name: kind for name, kind in schemas.MESSAGE_TYPES.items() if name != "deliveryTime"}
    fill(store)
    wanted = span(store, COMMITTED)
    with monkeypatch.context() as patch:
        patch.setattr(range_export.schemas, "MESSAGE_TYPES", older)
        offload(store, "t", root)
    pieces = file_partitions(store, [wanted], root.uri)
    assert rows(pieces) == rows([wanted])


def test_large_ledgers_have_files_of_their_own(store: Store, root: Root, monkeypatch: pytest.MonkeyPatch):
    """A file takes neighbouring ledgers up to its size, and a ledger is never split."""
    monkeypatch.setattr(offloading, "FILE_BYTES", 1)
    fill(store)
    assert [len(file.ledgers) for file in offload(store, "t", root).manifest.files] == [1] * 5


def test_a_file_is_written_in_row_groups(store: Store, root: Root, monkeypatch: pytest.MonkeyPatch):
    """They can be read apart, as many partitions as are asked for, and each read skips those out of its bounds."""
    monkeypatch.setattr(range_export, "ROW_GROUP_ROWS", 10)
    fill(store)
    done = offload(store, "t", root)
    (file,) = done.manifest.files
    assert file.content.row_groups > 5
    wanted = span(store, COMMITTED, through=Position(5, 4))
    pieces = file_partitions(store, [wanted], root.uri, min_partitions=5)
    assert len(pieces) >= 5
    assert rows(pieces) == rows([wanted])
    narrow = span(store, COMMITTED, after=Position(3, 1), through=Position(3, 3))
    pieces = file_partitions(store, [narrow], root.uri, min_partitions=100)
    assert rows(pieces) == rows([narrow])
    with done.directory.open_file(LEDGERS, file.name) as source:
        groups = pq.ParquetFile(source).metadata
        touched = [piece for piece in pieces if piece._touches(groups.row_group(piece.groups[0]))]
    assert 0 < len(touched) < len(pieces)


def test_a_task_reads_files_where_lmdb_cannot_be_imported(store: Store, root: Root, tmp_path: Path):
    """A piece, pickled and read in a process without lmdb, gives the rows; nothing of the engine's files is needed."""
    import pickle

    fill(store)
    wanted = span(store, COMMITTED)
    pieces = file_partitions(store, [wanted], root.uri)
    packed = tmp_path / "pieces"
    packed.write_bytes(pickle.dumps((pieces, SCHEMA)))
    program = (
        "import sys, pickle\n"
        "sys.modules['lmdb'] = None\n"
        "pieces, schema = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(sum(batch.num_rows for piece in pieces for batch in piece.batches(schema)))\n"
        "assert 'storage.disk.lmdb.environment' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(packed)], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[6])},
    )  # fmt: skip
    assert int(done.stdout) == len(rows([wanted]))

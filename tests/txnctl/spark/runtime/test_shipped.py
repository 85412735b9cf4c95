"""Objects that go to tasks, unpacked in a Python that lacks a package."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from socket import gethostname

import pytest

from storage.values.position import Position
from tests.txnctl.spark.asked import struct
from txnctl.spark import options
from txnctl.spark.ledger_files.file_partition import FilePartition
from txnctl.spark.ledger_files.root import Root
from txnctl.spark.source.table_reader import TableReader
from txnctl.spark.source.topic_reader import TopicReader

ROOT = Path(__file__).parents[4]
READER = TopicReader(options.topic_read({"path": "/bank/store", "topic": "t"}), struct("value"))
TABLE = TableReader(options.table_read({"path": "/bank/store", "table": "t"}), struct("value"))
FILE = FilePartition(Root("file:///files"), "a.parquet", (0, 1), None, False)
_PROGRAM = "import pickle, sys; print(type(pickle.load(sys.stdin.buffer)).__name__)"


def unpacked(shipped: object, directory: Path, without: str) -> tuple[str, str]:
    """Output and errors of a process that unpickles an object, and cannot import a package."""
    (directory / f"{without}.py").write_text(f'raise ModuleNotFoundError("No module", name={without!r})\n')
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=pickle.dumps(shipped),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(directory), str(ROOT)])},
        capture_output=True,
        check=False,
    )
    return done.stdout.decode().strip(), done.stderr.decode()


@pytest.mark.parametrize(
    ("shipped", "without", "place"),
    [
        (READER, "msgpack", "/bank/store"),
        (TABLE, "pyarrow", "/bank/store"),
        (FILE, "pyarrow", "file:///files"),
    ],
)
def test_a_missing_package_is_named_with_host_python_and_path(
    tmp_path: Path, shipped: object, without: str, place: str
) -> None:
    """And with the options that help: in the last lines of the traceback, which is all that Spark shows."""
    out, said = unpacked(shipped, tmp_path, without)
    sentence = f"on host {gethostname()} the Python of Spark ({sys.executable}) has no {without}: it cannot work on {place}"
    assert out == ""
    assert f"storage.errors.ProgramMissing: {sentence}\n" in said
    for option in ("--offload-path", "--staging-path", "spark.submit.pyFiles"):
        assert option in said.splitlines()[-1]


def test_files_are_read_without_msgpack_and_anything_without_lmdb(tmp_path: Path) -> None:
    """Offloaded files are Parquet, and need no package of the store."""
    assert unpacked(FILE, tmp_path, "msgpack") == ("FilePartition", "")
    (tmp_path / "msgpack.py").unlink()
    assert unpacked(READER, tmp_path, "lmdb") == ("TopicReader", "")


def test_an_object_comes_back_as_it_was() -> None:
    """By pickle and by copies; with all its attributes."""
    back = pickle.loads(pickle.dumps(FILE))
    assert back == FILE
    assert back.groups == (0, 1)
    assert Position(1, 2) == pickle.loads(pickle.dumps(Position(1, 2)))
    assert vars(pickle.loads(pickle.dumps(READER))).keys() == vars(READER).keys()

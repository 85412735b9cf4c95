"""What tasks load: nothing that opens a store, so that they run where it cannot be opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

PROGRAM = """
import pickle, sys
sys.modules["lmdb"] = None
from pyspark.sql.types import BinaryType, StructField, StructType
from storage.values.position import Position
from storage.subscription.isolation import IsolationLevel
from txnctl.spark import data_source, options
from txnctl.spark.source import row_columns, table_range, table_reader, topic_range, topic_reader, topic_stream
from txnctl.spark.source.local_store import LocalStore

schema = StructType([StructField("value", BinaryType())])
given = {"path": "/s", "topic": "t", "startingPosition": "earliest"}
place = LocalStore("/s", "id-1")
for carried in (
    topic_reader.TopicReader(options.topic_read(given), schema),
    topic_stream.TopicStreamReader(options.topic_stream(given), schema),
    table_reader.TableReader(options.table_read({"path": "/s", "table": "t"}), schema),
    topic_range.TopicRange(place, "t", 1, Position(1, -1), Position(1, 5), IsolationLevel.READ_COMMITTED),
):
    assert type(pickle.loads(pickle.dumps(carried))) is type(carried)
print("carried")
"""


def test_readers_and_partitions_are_carried_to_where_lmdb_cannot_be_imported() -> None:
    """They are unpickled there, and their modules load."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "carried\n", done.stderr


def test_the_format_is_found_without_loading_what_is_heavy() -> None:
    """Spark imports every module named pyspark_*: ours brings neither the engine nor pyarrow."""
    program = (
        "import sys, pyspark.sql.datasource\n"
        "before = set(sys.modules)\n"
        "from pyspark_txnctl import DefaultSource\n"
        "assert DefaultSource.name() == 'txnctl'\n"
        "print(*sorted({'lmdb', 'msgpack', 'click', 'pyarrow', 'pandas'} & (set(sys.modules) - before)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("\n", "")

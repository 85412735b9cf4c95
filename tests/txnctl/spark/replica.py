"""A streaming query in a driver of its own that copies the changes of one table into another, for a test that kills it.

    python -m tests.txnctl.spark.replica STORE CHECKPOINT

The changes of the table `source` are upserted into `replica`; the query ends when it has stored all.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from tests.processes.parent import say
from txnctl.spark.runtime.worker_python import worker_python

CHANGES_PER_BATCH = 20


def main() -> None:
    path, checkpoint = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = worker_python(os.path.dirname(checkpoint))
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", f"{checkpoint}.local")
        .config("spark.sql.warehouse.dir", f"{checkpoint}.warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    say("jvm", jvm.java.lang.ProcessHandle.current().pid())
    changes = (
        spark.readStream.format("txnctl")
        .options(path=path, table="source", readChanges="true", minPartitions="2")
        .option("maxChangesPerTrigger", CHANGES_PER_BATCH)
        .load()
    )
    query = (
        changes.selectExpr("key AS account", "value", "kind = 'delete' AS gone", "timestamp AS version")
        .writeStream.format("txnctl")
        .options(path=path, table="replica", upsert="true", key="account", deleteColumn="gone")
        .options(orderColumn="version", checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    say("done", query.id)
    spark.stop()


if __name__ == "__main__":
    main()

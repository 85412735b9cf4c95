"""A streaming query in a driver of its own, for a test that kills it.

    python -m tests.txnctl.spark.query STORE SOURCE CHECKPOINT

Each file of SOURCE is a micro-batch, whose lines go to the topic `t`; the query ends when it has stored all. A task
that meets the line `fail` fails at its first attempt, when it has handed on what came before.
"""

from __future__ import annotations

import os
import sys

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import StringType

from tests.processes.parent import say
from txnctl.spark.runtime.worker_python import worker_python


@udf(StringType())
def fragile(line: str) -> str:
    context = TaskContext.get()
    assert context is not None
    if line == "fail" and context.attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")
    return line


def main() -> None:
    path, source, checkpoint = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = worker_python(os.path.dirname(checkpoint))
    # The second number: tasks are tried twice.
    spark = (
        SparkSession.builder.master("local[2,2]")
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
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(source)
    query = (
        lines.select(fragile("value").alias("value"))
        .writeStream.format("txnctl")
        .options(path=path, topic="t", checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    say("done", query.id)
    spark.stop()


if __name__ == "__main__":
    main()

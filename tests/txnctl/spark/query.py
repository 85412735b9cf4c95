"""A streaming query in a driver of its own, for a test that kills it.

    python -m tests.txnctl.spark.query STORE SOURCE CHECKPOINT

Each file of SOURCE is a micro-batch, whose lines go to the topic `t`; the query ends when it has stored all. A task
that meets the line `fail` fails at its first attempt, when it has handed on what came before.
"""

from __future__ import annotations

import sys

from pyspark import TaskContext
from pyspark.sql.functions import udf
from pyspark.sql.types import StringType

from tests.processes.parent import say
from tests.txnctl.spark.session import started_session


@udf(StringType())
def fragile(line: str) -> str:
    context = TaskContext.get()
    assert context is not None
    if line == "fail" and context.attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")
    return line


def main() -> None:
    path, source, checkpoint = sys.argv[1:]
    # The second number: tasks are tried twice.
    spark = started_session("local[2,2]", checkpoint)
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

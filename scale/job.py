"""A driver of the proof: `python -m scale.job REQUEST` runs the steps of a request and prints a line of JSON for each.

The driver runs as a process that can be killed, on the store's host if that is a directory; its tasks run on the
cluster.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession, functions as f

from scale.steps import DriverRequest, Step
from txnctl.spark import read_topic

_SLOW_S = 120.0


def main() -> None:
    """Run the steps in order."""
    request = DriverRequest.from_json(sys.argv[1])
    spark = _session(request)
    for step in request.steps:
        began = time.monotonic()
        result = _STEPS[step.do](spark, request, step)
        print(json.dumps({"do": step.do, "seconds": time.monotonic() - began, "result": result}), flush=True)
    spark.stop()


def _session(request: DriverRequest) -> SparkSession:
    builder = SparkSession.builder.master(request.master).appName("txnctl scale")
    for name, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": request.events,
        "spark.eventLog.enabled": "true",
        "spark.executor.cores": "1",
        "spark.executor.memory": "1g",
        "spark.local.dir": request.local,
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.minTaskRuntime": "500ms",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.quantile": "0.5",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _messages(spark: SparkSession, request: DriverRequest, step: Step) -> DataFrame:
    options = {
        "path": request.store,
        "topic": step.topic,
        "isolationLevel": step.level,
        "minPartitions": "8",
    }
    if request.offloaded is not None:
        options["offloadPath"] = request.offloaded
    if step.native:
        return read_topic(spark, **options)
    reader = spark.read.format("txnctl").options(**options)
    return (reader if step.schema is None else reader.schema(step.schema)).load()


def _read(spark: SparkSession, request: DriverRequest, step: Step) -> dict[str, int]:
    """Return counts and checksums of a topic."""
    code = f.crc32("value")
    row = (
        _messages(spark, request, step)
        .agg(f.count("value").alias("count"), f.sum(code).alias("total"), f.bit_xor(code).alias("parity"))
        .collect()[0]
    )
    return {name: row[name] or 0 for name in ("count", "total", "parity")}


def _where(spark: SparkSession, _request: DriverRequest, _step: Step) -> list[str]:
    """Return the addresses where tasks run, and whether lmdb can be imported there."""

    def look(_number: int) -> str:
        import os
        import time

        time.sleep(0.5)  # so that one executor alone does not take all of them
        try:
            import lmdb  # noqa: F401
        except ImportError:
            return f"{os.environ['SPARK_LOCAL_IP']} without lmdb"
        return f"{os.environ['SPARK_LOCAL_IP']} with lmdb"

    return sorted(set(spark.sparkContext.parallelize(range(4), 4).map(look).collect()))


def _copy(spark: SparkSession, request: DriverRequest, step: Step) -> None:
    """Write a topic into a second topic; the first attempt of one task may be slow, so that Spark starts a second
    attempt.
    """
    rows = _messages(spark, request, step).select("key", "value")
    if step.slow:
        nothing = spark.sparkContext.parallelize([step.slow], 1).mapPartitions(_slow_once)
        rows = spark.createDataFrame(nothing, "key binary, value binary").unionAll(rows)
    writer = rows.write.format("txnctl").mode("append")
    writer.option("path", request.store).option("topic", step.to).option(
        "stagingPath", request.staging
    ).option("writeId", step.write_id).save()


def _slow_once(files: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """Return no rows; the first attempt is slow, and writes its address to the file."""
    import os
    import time
    from pathlib import Path

    context = TaskContext.get()
    assert context is not None, "a task has a context"
    if context.attemptNumber() == 0:
        Path(next(iter(files))).write_text(os.environ["SPARK_LOCAL_IP"])
        time.sleep(_SLOW_S)
    return []


def _totals(spark: SparkSession, request: DriverRequest, step: Step) -> None:
    """Write into a table, for each key, the number of its messages and the sum of their checksums."""
    rows = (
        _messages(spark, request, step)
        .groupBy("key")
        .agg(f.count("value").alias("messages"), f.sum(f.crc32("value")).alias("total"))
        .select("key", f.concat_ws(" ", "messages", "total").alias("value"))
    )
    writer = rows.write.format("txnctl").mode("append")
    writer.option("path", request.store).option("table", step.to).option(
        "stagingPath", request.staging
    ).option("writeId", step.write_id).save()


_STEPS = {"where": _where, "read": _read, "copy": _copy, "totals": _totals}

if __name__ == "__main__":
    main()

"""One driver of the proof: `python -m scale.job` takes what to do as JSON and says what came of it, a line a step.

It runs on the store's host, as a process that can be killed; its tasks run on the cluster.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession, functions as f

from txnctl.spark import read_topic

_SLOW_S = 120.0


def main() -> None:
    """Do the steps, one after the other."""
    asked = json.loads(sys.argv[1])
    spark = _session(asked)
    for step in asked["steps"]:
        began = time.monotonic()
        found = _STEPS[step["do"]](spark, asked, step)
        print(json.dumps({"do": step["do"], "seconds": time.monotonic() - began, "found": found}), flush=True)
    spark.stop()


def _session(asked: dict[str, Any]) -> SparkSession:
    builder = SparkSession.builder.master(asked["master"]).appName("txnctl scale")
    for name, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": asked["events"],
        "spark.eventLog.enabled": "true",
        "spark.executor.cores": "1",
        "spark.executor.memory": "1g",
        "spark.local.dir": asked["local"],
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


def _messages(spark: SparkSession, asked: dict[str, Any], step: dict[str, Any]) -> DataFrame:
    options = {
        "path": asked["store"],
        "topic": step["topic"],
        "offloadPath": asked["offloaded"],
        "isolationLevel": step.get("level", "READ_COMMITTED"),
        "minPartitions": "8",
    }
    if step.get("native"):
        return read_topic(spark, **options)
    reader = spark.read.format("txnctl").options(**options)
    return (reader.schema(step["schema"]) if "schema" in step else reader).load()


def _read(spark: SparkSession, asked: dict[str, Any], step: dict[str, Any]) -> dict[str, int]:
    """Counts and checksums of a topic."""
    code = f.crc32("value")
    row = (
        _messages(spark, asked, step)
        .agg(f.count("value").alias("count"), f.sum(code).alias("total"), f.bit_xor(code).alias("parity"))
        .collect()[0]
    )
    return {name: row[name] or 0 for name in ("count", "total", "parity")}


def _where(spark: SparkSession, _asked: dict[str, Any], _step: dict[str, Any]) -> list[str]:
    """On which addresses tasks run, and whether they can import lmdb."""

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


def _copy(spark: SparkSession, asked: dict[str, Any], step: dict[str, Any]) -> None:
    """Write a topic into another one; the first try of one task is slow, so that another one is started beside it."""
    rows = _messages(spark, asked, step).select("key", "value")
    if step.get("slow"):
        nothing = spark.sparkContext.parallelize([step["slow"]], 1).mapPartitions(_slow_once)
        rows = spark.createDataFrame(nothing, "key binary, value binary").unionAll(rows)
    writer = rows.write.format("txnctl").mode("append")
    writer.option("path", asked["store"]).option("topic", step["to"]).option(
        "stagingPath", asked["staging"]
    ).option("writeId", step["writeId"]).save()


def _slow_once(files: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """No rows, and at the first try no haste; the file says on which address that is."""
    import os
    import time
    from pathlib import Path

    context = TaskContext.get()
    assert context is not None, "a task has a context"
    if context.attemptNumber() == 0:
        Path(next(iter(files))).write_text(os.environ["SPARK_LOCAL_IP"])
        time.sleep(_SLOW_S)
    return []


def _totals(spark: SparkSession, asked: dict[str, Any], step: dict[str, Any]) -> None:
    """Write into a table, of each key how many messages it has and the sum of their checksums."""
    rows = (
        _messages(spark, asked, step)
        .groupBy("key")
        .agg(f.count("value").alias("messages"), f.sum(f.crc32("value")).alias("total"))
        .select("key", f.concat_ws(" ", "messages", "total").alias("value"))
    )
    writer = rows.write.format("txnctl").mode("append")
    writer.option("path", asked["store"]).option("table", step["to"]).option(
        "stagingPath", asked["staging"]
    ).option("writeId", step["writeId"]).save()


_STEPS = {"where": _where, "read": _read, "copy": _copy, "totals": _totals}

if __name__ == "__main__":
    main()
